"""Cross compilers. ``ziglang``'s clang links for every kind of machine, any other clang only for Linux."""

from litecl.delegate.native import compiler, linking
from litecl.delegate.native.clang import Compiler
from litecl.delegate.native.compiler import MISSING
from litecl.delegate.native.kinds import NATIVE, Machine, is_here
from litecl.interpreter.errors import DeviceNotFound, KernelBuildError


def compiler_for(machine: Machine) -> Compiler:
    """Return a compiler for a machine. Raises DeviceNotFound if none is installed, KernelBuildError if it can't link
    for that kind of machine.
    """
    found, kind = compiler.found(), machine.kind
    if found is None:
        raise DeviceNotFound(MISSING)
    native = found.target if "-target" in found.target else ("-target", kind.triple, *found.target)
    options = machine.options if machine.processor != NATIVE else native
    if found.linker:
        return linking.of_zig(found.command[0], found.source, kind.system, kind.architecture, options)
    if kind.system != "linux":
        raise KernelBuildError(f"to link for {kind.name}: expected the package ziglang, got {found.source}")
    other = () if is_here(kind) else ("-fuse-ld=lld",)  # the system's linker may support only this machine
    return Compiler(found.command, found.source, (*found.command, *options, "-nostdlib", *other), options)
