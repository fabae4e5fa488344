"""The folder in which PoCL compiles: a new one for each process.

PoCL trusts what it finds in its folder under a name that follows from the source: it aborts or crashes on a program
(``program.bc``) or a kernel (``.so``) that was cut off or changed. So nothing that another process has left is read.
Binaries outlive a process in litecl's cache, behind checksums; PoCL unpacks them here within milliseconds.
"""

import atexit
import os
from contextlib import suppress
from pathlib import Path

from litecl.delegate.backend import scratch

_PREFIX = "litecl-pocl-"
_made = set[str]()  # by this process, or by the one that it was forked from


def made(parent: Path) -> str:
    """Return a new folder for this process and its forked children; the last of them to end removes it.
    Folders that killed processes have left there are removed too, but on Windows. Raises OSError.
    """
    folder, lock = scratch.kept(parent, _PREFIX)
    _made.add(folder)
    atexit.register(_leave, folder, lock)
    scratch.remove_left(parent, _PREFIX)
    return folder


def is_of_another_process(folder: str) -> bool:
    """Return whether a folder was made by a process that has started this one, and may end before it."""
    return Path(folder).name.startswith(_PREFIX) and folder not in _made


def _leave(folder: str, lock: int) -> None:
    os.close(lock)
    with suppress(OSError):
        scratch.remove_unused(Path(folder))
