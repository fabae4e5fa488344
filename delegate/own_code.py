"""The state of litecl's own files, so that what they determine can be kept from one process to the next."""

import hashlib
import os
import platform
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from litecl import interpreter, kernels_cl
from litecl.interpreter.began import IMPORTED_NS

_SUFFIXES = (".py", ".cl", ".c", ".h")


@cache
def digest() -> str | None:
    """Return a digest of the sizes and times of litecl's files; None if they can't be read, or are newer than what
    this process has imported.
    """
    rooms = [Path(module).parent for module in (__file__, str(interpreter.__file__), str(kernels_cl.__file__))]
    try:
        rows = [row for room in rooms for row in sorted(_files(room))]
    except OSError:
        return None
    if not rows or max(time_ns for _, _, *times in rows for time_ns in times) > IMPORTED_NS:
        return None
    versions = sys.version, np.__version__, platform.machine(), sys.byteorder
    return hashlib.sha256(repr((versions, rows)).encode()).hexdigest()


def _files(folder: Path | str) -> Iterator[tuple[str, int, int, int]]:
    """Yield the path, the size and the times of change of each source file."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIXES):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns, status.st_ctime_ns
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _files(entry.path)
