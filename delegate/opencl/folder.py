"""PoCL's cache folder: a new one for each process.

PoCL trusts the files in its folder, named after the source: it aborts or crashes on a truncated or modified program
(``program.bc``) or kernel (``.so``). So it never reads files of another process. Binaries outlive a process in litecl's
cache, with checksums; PoCL unpacks them here within milliseconds.
"""

import atexit
import os
from contextlib import suppress
from pathlib import Path

from litecl.delegate.backend import scratch

_PREFIX = "litecl-pocl-"
_folders = set[str]()  # made by this process, or by the one that it was forked from


def make(parent: Path) -> str:
    """Make a folder for this process and its forked children; the last one to exit removes it.

    Except on Windows, folders that killed processes left are removed too. Raises OSError.
    """
    folder, lock = scratch.kept(parent, _PREFIX)
    _folders.add(folder)
    atexit.register(_leave, folder, lock)
    scratch.remove_left(parent, _PREFIX)
    return folder


def is_of_another_process(folder: str) -> bool:
    """Return whether a folder belongs to a process that started this one, and may exit before it."""
    return Path(folder).name.startswith(_PREFIX) and folder not in _folders


def _leave(folder: str, lock: int) -> None:
    os.close(lock)
    with suppress(OSError):
        scratch.remove_unused(Path(folder))
