"""Loading a shared library from its bytes."""

import ctypes
import os
import re
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from litecl.delegate.backend import scratch
from litecl.interpreter.errors import KernelBuildError

_KEEPS = sys.platform == "win32"  # Windows can't remove the file of a loaded library
_PREFIX, _SUFFIX = "litecl-", ".dll" if _KEEPS else ".so"
_SURELY_LOADED_S = 60.0
NO_FOLDER = (
    "If there is no folder for temporary files, or libraries must not be loaded from it, set TMPDIR to another one "
    "(for a container: --tmpfs /tmp:exec)"
)


def loaded(content: bytes) -> ctypes.CDLL:
    """Load a library from verified bytes, by way of a file that no other user can change.

    Raises KernelBuildError.
    """
    try:
        if _KEEPS:
            return _kept(content)
        with scratch.temporary(Path(tempfile.gettempdir()), scratch.BUILD) as folder:
            path = folder / f"library{_SUFFIX}"
            path.write_bytes(content)
            return ctypes.CDLL(str(path))
    except OSError as error:
        raise KernelBuildError(f"loading a compiled region: {error}. {NO_FOLDER}") from error


def _kept(content: bytes) -> ctypes.CDLL:
    _tidy()
    handle, path = tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    return ctypes.CDLL(path)


@cache
def _tidy() -> None:
    """Remove files that earlier processes left. Windows refuses that while a library is loaded."""
    named = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}\{_SUFFIX}")  # as mkstemp names them
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(OSError):
            if named.fullmatch(path.name) and path.lstat().st_mtime < time.time() - _SURELY_LOADED_S:
                path.unlink()
