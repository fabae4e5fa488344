"""Compilers for machines that need not be there. One of ``ziglang`` links for each, any other clang for Linux."""

from collections.abc import Sequence
from dataclasses import dataclass

from litecl.delegate.native import clang, compiler
from litecl.delegate.native.clang import Compiler
from litecl.delegate.native.compiler import MISSING
from litecl.delegate.native.kinds import NATIVE, Machine, is_here
from litecl.interpreter.errors import DeviceNotFound, KernelBuildError

# All that libraries for Windows import, by the library that has it: nothing else is in every process.
_WINDOWS = {
    "ucrtbase.dll": (
        *("memcpy", "memmove", "memset"),
        *("atan2", "atan2f", "ceil", "ceilf", "cos", "cosf", "exp", "expf", "floor", "floorf", "fma", "fmaf", "fmax"),
        *("fmaxf", "fmin", "fminf", "fmod", "fmodf", "log", "logf", "pow", "powf", "rint", "rintf", "sin", "sinf"),
        *("sqrt", "sqrtf", "tan", "tanf", "tanh", "tanhf", "trunc", "truncf"),
    ),
    "kernel32.dll": ("SwitchToThread",),
}


def compiler_for(machine: Machine) -> Compiler:
    """Return a compiler for a machine. Raises DeviceNotFound where there is none, KernelBuildError if it cannot link
    for such machines.
    """
    found = compiler.found()
    if found is None:
        raise DeviceNotFound(MISSING)
    given = found.command, found.source
    system, is_zig = machine.kind.system, bool(found.linker)
    options = machine.options if machine.processor != NATIVE else ("-target", machine.kind.triple, *found.target)
    if system == "linux":
        other = () if is_here(machine.kind) else ("-fuse-ld=lld",)  # the system's linker may know this machine alone
        linker = found.linker or (*found.command, *options, "-nostdlib", *other)
        return Compiler(*given, linker, options)
    if not is_zig:
        raise KernelBuildError(f"to link for {machine.kind.name}: expected the package ziglang, got {found.source}")
    zig = found.command[0]
    if system == "darwin":
        architecture = machine.kind.architecture
        return Compiler(*given, (zig, "cc", "-target", f"{architecture}-macos.11.0", "-nostdlib"), options)
    return ForWindows(*given, (zig,), options)


@dataclass(frozen=True)
class ForWindows(Compiler):
    """A compiler of ``ziglang`` for Windows. linker: zig."""

    def link(self, objects: Sequence[bytes]) -> bytes:
        """See ``Compiler.link``."""
        with clang.folder() as folder:
            imports = []
            for name, functions in _WINDOWS.items():
                listed, library = folder / f"{name}.def", folder / f"{name}.lib"
                listed.write_text(f'LIBRARY "{name}"\nEXPORTS\n' + "\n".join(functions) + "\n")
                self._run((*self.linker, "dlltool", "-m", "i386:x86-64", "-d", str(listed), "-l", str(library)))
                imports.append(str(library))
            paths = clang.written(objects, folder)
            made = folder / "library.dll"
            flags = "-dll", "-noentry", "-lldmingw", "-machine:x64", f"-out:{made}"
            self._run((*self.linker, "lld-link", *flags, *paths, *imports))
            return made.read_bytes()
