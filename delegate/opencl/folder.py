"""The folder in which PoCL compiles: a new one for each process.

PoCL trusts what it finds in its folder under a name that follows from the source: it aborts or crashes on a program
(``program.bc``) or a kernel (``.so``) that was cut off or changed. So nothing that another process has left is read.
Binaries outlive a process in litecl's cache, behind checksums; PoCL unpacks them here within milliseconds.
"""

import atexit
import os
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_PREFIX = "litecl-pocl-"
_LOCK = "in_use"  # the name of a file in it, which its processes have locked
_NEW_S = 60.0  # so lately made it may not be locked yet
_LOCKS = sys.platform != "win32"  # where litecl locks nothing, and so cannot tell which folders are in use
_made = set[str]()  # by this process, or by the one that it was forked from


def made(parent: Path) -> str:
    """Return a new folder for this process and its forked children; the last of them to end removes it.
    Folders that killed processes have left there are removed too, but on Windows. Raises OSError.
    """
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
    lock = _locked(folder)
    if lock is None:
        shutil.rmtree(folder, ignore_errors=True)
        raise OSError(f"{parent}: no file can be locked there")
    _made.add(folder)
    atexit.register(_leave, folder, lock)
    for left in parent.glob(f"{_PREFIX}*") if _LOCKS else ():
        with suppress(OSError):
            if left.stat().st_mtime < time.time() - _NEW_S:
                _remove_unused(str(left))
    return folder


def is_of_another_process(folder: str) -> bool:
    """Return whether a folder was made by a process that has started this one, and may end before it."""
    return Path(folder).name.startswith(_PREFIX) and folder not in _made


def _locked(folder: str) -> int | None:
    """Return a file of a folder, locked until it is closed by all who have it; None where others have locked it."""
    with suppress(OSError):
        file = os.open(Path(folder) / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if _LOCKS:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise
        return file
    return None


def _leave(folder: str, lock: int) -> None:
    os.close(lock)
    _remove_unused(folder)


def _remove_unused(folder: str) -> None:
    """Remove a folder unless it is in use."""
    lock = _locked(folder)
    if lock is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
