"""Linking a shared library with ``ziglang``, for each system."""

from collections.abc import Sequence

from litecl.delegate.native import clang
from litecl.delegate.native.clang import Compiler
from litecl.interpreter.dataclass import dataclass

# The functions that libraries for Windows import, by DLL: nothing else is present in every process.
_WINDOWS = {
    "ucrtbase.dll": (
        *("memcpy", "memmove", "memset"),
        *("atan2", "atan2f", "ceil", "ceilf", "cos", "cosf", "exp", "expf", "floor", "floorf", "fma", "fmaf", "fmax"),
        *("fmaxf", "fmin", "fminf", "fmod", "fmodf", "log", "logf", "pow", "powf", "rint", "rintf", "sin", "sinf"),
        *("sqrt", "sqrtf", "tan", "tanf", "tanh", "tanhf", "trunc", "truncf"),
    ),
    "kernel32.dll": ("CloseHandle", "CreateThread", "SwitchToThread"),
    "api-ms-win-core-synch-l1-2-0.dll": ("WaitOnAddress", "WakeByAddressAll"),
}


def of_zig(zig: str, source: str, system: str, architecture: str, options: tuple[str, ...]) -> Compiler:
    """Return ``ziglang``'s compiler for a system (``sys.platform``). zig: its path. options: the target's."""
    command = zig, "clang"
    if system == "win32":
        return ForWindows(command, source, (zig,), options)
    if system == "darwin":
        linker = zig, "cc", "-target", f"{architecture}-macos.11.0", "-nostdlib"
        return Compiler(command, source, linker, options)
    return Compiler(command, source, (zig, "ld.lld"), options)


@dataclass(frozen=True)
class ForWindows(Compiler):
    """``ziglang``'s compiler for Windows. linker: zig."""

    def link(self, objects: Sequence[bytes]) -> bytes:
        """See ``Compiler.link``."""
        from litecl.delegate.native.processes import run

        with clang.folder() as folder:
            imports = []
            for name, functions in _WINDOWS.items():
                listed, library = folder / f"{name}.def", folder / f"{name}.lib"
                listed.write_text(f'LIBRARY "{name}"\nEXPORTS\n' + "\n".join(functions) + "\n", encoding="utf-8")
                run((*self.linker, "dlltool", "-m", "i386:x86-64", "-d", str(listed), "-l", str(library)))
                imports.append(str(library))
            paths = clang.written(objects, folder)
            output = folder / "library.dll"
            flags = "-dll", "-noentry", "-lldmingw", "-machine:x64", f"-out:{output}"
            run((*self.linker, "lld-link", *flags, *paths, *imports))
            return output.read_bytes()
