"""Cross compilers. ``ziglang``'s clang links for every kind of machine, any other clang only for Linux."""

import re

from litecl.delegate.naming import close_names, did_you_mean
from litecl.delegate.native import compiler, linking
from litecl.delegate.native.clang import Compiler
from litecl.delegate.native.compiler import MISSING
from litecl.delegate.native.kinds import NATIVE, Machine, is_here
from litecl.delegate.native.processes import run
from litecl.interpreter.errors import DelegateError, DeviceNotFound, KernelBuildError


def compiler_for(machine: Machine) -> Compiler:
    """Return a compiler for a machine. Raises DeviceNotFound if none is installed, KernelBuildError if it can't link
    for that kind of machine.
    """
    clang, kind = compiler.found(), machine.kind
    if clang is None:
        raise DeviceNotFound(MISSING)
    native = clang.target if "-target" in clang.target else ("-target", kind.triple, *clang.target)
    options = machine.options if machine.processor != NATIVE else native
    if clang.linker:
        return linking.of_zig(clang.command[0], clang.source, kind.system, kind.architecture, options)
    if kind.system != "linux":
        raise KernelBuildError(f"to link for {kind.name}: expected the package ziglang, got {clang.source}")
    other = () if is_here(kind) else ("-fuse-ld=lld",)  # the system's linker may support only this machine
    return Compiler(clang.command, clang.source, (*clang.command, *options, "-nostdlib", *other), options)


def require_processor(compiler: Compiler, machine: Machine) -> None:
    """Raise DelegateError, with similar names, if the compiler doesn't know a machine's processor."""
    try:
        _ = compiler.facts
    except KernelBuildError as error:
        _, listed = run((*compiler.command, "-target", machine.kind.triple, "--print-supported-cpus"))
        known = re.findall(r"^\t(\S+)", listed, re.MULTILINE)
        why = re.search(r"error(: .*)", str(error))
        hint = did_you_mean(close_names(machine.processor, known, 3)) or (why[1] if why else "")
        raise DelegateError(f"{machine.name}: clang knows no such processor{hint}") from error
