"""Lets LiteRT take this machine for one with AVX2 alone, so that its times can stand beside litecl's there.

LiteRT asks the processor by ``cpuid`` when its first interpreter is made. Once its library is loaded, each of these
instructions is replaced by a trap that answers for a lesser processor (``cpuid.c``). ``objdump`` (Debian: binutils)
finds them; the package ziglang compiles the answer.
"""

import ctypes
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import platformdirs

_WRAPPERS = (
    "ai_edge_litert._pywrap_litert_interpreter_wrapper",
    "ai_edge_litert._pywrap_tensorflow_interpreter_wrapper",
)
_LIBRARY = "libpywrap_litert_common.so"
_SOURCE = Path(__file__).with_name("cpuid.c")


class _Wrapper(MetaPathFinder):
    """Finds LiteRT's wrapper, and hides the instructions as soon as it is loaded."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _WRAPPERS:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def loaded(module: ModuleType) -> None:
                load(module)
                _hide_all()

            vars(spec.loader)["exec_module"] = loaded
        return spec


def limit() -> None:
    """Limit LiteRT, once it is imported."""
    sys.meta_path.insert(0, _Wrapper())


def _hide_all() -> None:
    path, base = _mapped()
    hide: Any = ctypes.CDLL(str(_compiled())).hide
    for offset in _offsets(path):
        if hide(ctypes.c_void_p(base + offset)):
            raise SystemExit(f"as_cpu: the instruction at {offset:#x} of {path} cannot be replaced")


def _mapped() -> tuple[Path, int]:
    """Return the library's file and the address of its beginning in memory."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith(_LIBRARY) and line.split()[2] == "00000000":
            return Path(line.split(maxsplit=5)[5]), int(line.split("-")[0], 16)
    raise SystemExit(f"as_cpu: {_LIBRARY} is not loaded, so LiteRT cannot be limited")


def _offsets(library: Path) -> list[int]:
    """Return where ``cpuid`` stands, from the library's beginning; kept for the next process."""
    kept = _folder() / f"cpuid-{library.stat().st_size}-{library.stat().st_mtime_ns}.json"
    if not kept.exists():
        command = ("objdump", "--disassemble", "--no-show-raw-insn", str(library))
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        addresses = [int(at, 16) for at in re.findall(r"^ *([0-9a-f]+):\tcpuid", text, re.MULTILINE)]
        with _made(kept) as new:
            new.write_text(json.dumps(addresses))
    found: list[int] = json.loads(kept.read_text())
    return found


def _compiled() -> Path:
    built = _folder() / f"cpuid-{_SOURCE.stat().st_mtime_ns}.so"
    if not built.exists():
        with _made(built) as new:
            options = ("cc", "-shared", "-fPIC", "-O1", "-o", str(new), str(_SOURCE))
            subprocess.run((sys.executable, "-m", "ziglang", *options), check=True)
    return built


@contextmanager
def _made(path: Path) -> Iterator[Path]:
    """Put a file in place once it is whole: other processes look for it meanwhile."""
    with TemporaryDirectory(dir=path.parent) as folder:
        yield (new := Path(folder) / path.name)
        new.replace(path)


def _folder() -> Path:
    folder = Path(platformdirs.user_cache_dir("litecl-tests")) / "as-cpu"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
