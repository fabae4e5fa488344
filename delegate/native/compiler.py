"""This machine's compiler: the clang in the package ``ziglang``, or one on the PATH."""

import importlib.util
import platform
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from litecl.delegate.native import linking, probe
from litecl.delegate.native.clang import Compiler
from litecl.delegate.native.kinds import known
from litecl.interpreter.errors import KernelBuildError

_OLDEST = 16  # the first clang with all builtins that kernels use
_X86 = ("x86_64", "amd64", "i386", "i686")
OF_ZIGLANG = "of ziglang"
MISSING = "no compiler for the processor: pip install ziglang, or install clang 16 or newer"


@cache
def found(directory: Path | None = None) -> Compiler | None:
    """Return the compiler for this machine: ``ziglang``'s if installed, else one on the PATH, else None.

    Its target is checked: the processor runs all of its instructions. directory: the cache of facts about it, or None.
    """
    for compiler in _installed():
        checked = probe.checked(compiler, directory)
        if compiler.source == OF_ZIGLANG or _suits(checked):
            return checked
    return None


@cache
def named(path: Path, directory: Path | None = None) -> Compiler:
    """Return a user's compiler. directory: as for ``found``. Raises KernelBuildError if it is too old or no clang."""
    checked = probe.checked(Compiler((str(path),), str(path), (), native_target()), directory)
    if checked.major < _OLDEST:
        raise KernelBuildError(f"compiler {path}: expected clang {_OLDEST} or newer, got {checked.version!r}")
    return checked


def _suits(compiler: Compiler) -> bool:
    try:
        return compiler.major >= _OLDEST
    except KernelBuildError:
        return False


def _installed() -> Iterator[Compiler]:
    """Yield the installed compilers, targeting this processor, the preferred one first."""
    spec, target, kind = importlib.util.find_spec("ziglang"), native_target(), known()
    if spec is not None and spec.origin is not None:
        zig = Path(spec.origin).parent / ("zig.exe" if sys.platform == "win32" else "zig")
        if zig.is_file() and (kind is not None or sys.platform != "win32"):
            yield linking.of_zig(str(zig), OF_ZIGLANG, sys.platform, kind.architecture if kind else "", target)
    if sys.platform == "win32":  # any other clang needs Visual Studio's linker
        return
    for name in ("clang", *(f"clang-{version}" for version in range(30, _OLDEST - 1, -1))):
        path = shutil.which(name)
        if path is not None:
            yield Compiler((path,), path, (), target)


def native_target() -> tuple[str, ...]:
    """Return clang's options to compile for the processor that it runs on."""
    native = "-march=native" if platform.machine().lower() in _X86 else "-mcpu=native"
    kind = known()
    return (native,) if kind is None or kind.system == "linux" else ("-target", kind.triple, native)
