"""Loading a shared library from its bytes."""

import ctypes
import os
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from litecl.interpreter.errors import KernelBuildError

_KEEPS = sys.platform == "win32"  # the files of loaded libraries, which cannot be removed there
_PREFIX, _SUFFIX = "litecl-", ".dll" if _KEEPS else ".so"
_SURELY_LOADED_S = 60.0
NO_FOLDER = (
    "If there is no folder for temporary files, or libraries must not be loaded from it, set TMPDIR to another one "
    "(for a container: --tmpfs /tmp:exec)"
)


def loaded(content: bytes) -> ctypes.CDLL:
    """Load a library from the very bytes that were checked, in a file that no other user can change.

    Raises KernelBuildError.
    """
    try:
        if _KEEPS:
            _tidy()
        handle, path = tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            return ctypes.CDLL(path)
        finally:
            if not _KEEPS:
                Path(path).unlink(missing_ok=True)
    except OSError as error:
        raise KernelBuildError(f"loading a compiled region: {error}. {NO_FOLDER}") from error


@cache
def _tidy() -> None:
    """Remove what earlier processes have left. The system refuses that for a library which is loaded."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - _SURELY_LOADED_S:
                path.unlink()
