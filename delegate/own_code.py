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

_SUFFIXES = (".py", ".cl", ".c", ".h")
_COARSE_NS = 2_000_000_000  # the coarsest time of a file, that of FAT
_LITECL = sys.modules["litecl"]  # by name, as it refers to rooms above this one
_IMPORTED_NS: int = _LITECL.IMPORTED_NS


@cache
def digest() -> str | None:
    """Return a digest of litecl's version, and of the sizes and times of its files; None if there are none to read, as
    in a program that holds compiled ones, or if any is about as new as this process, whose code may then be older.
    """
    modules = [str(module) for module in (__file__, interpreter.__file__, kernels_cl.__file__)]
    rooms = [Path(module).parent for module in modules]
    try:
        rows = [row for room in rooms for row in sorted(_files(room))]
    except OSError:
        return None
    newest = max((time_ns for _, _, *times in rows for time_ns in times), default=0)
    if not {*modules} <= {path for path, *_ in rows} or newest > _IMPORTED_NS - _COARSE_NS:
        return None
    versions = _LITECL.__version__, sys.version, np.__version__, platform.machine(), sys.byteorder
    return hashlib.sha256(repr((versions, rows)).encode()).hexdigest()


def is_unchanged() -> bool:
    """Return whether litecl's files are still those of ``digest``: code that was imported since is then of them."""
    return digest() is not None and digest.__wrapped__() == digest()


def _files(folder: Path | str) -> Iterator[tuple[str, int, int, int]]:
    """Yield the path, the size and the times of change of each source file."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIXES):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns, status.st_ctime_ns
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _files(entry.path)
