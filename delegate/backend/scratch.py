"""Temporary folders of a process; a later process removes those of processes that were killed.

A folder holds a file that its process keeps locked, with the name of the machine. Only a folder with such a file, of
this user and this machine, that nobody has locked is removed: a process number may be another process's by then, and
other machines, whose locks may not be seen here, may share the parent folder.
"""

import importlib.util
import os
import platform
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from litecl.interpreter.whole_files import surely

BUILD = "litecl-build-"  # the prefix of folders of compilers, and of libraries while they are loaded
LOCK = "in_use"  # the name of the file
_NEW_S = 60.0  # so lately made it may not be locked yet
_LOCKS = importlib.util.find_spec("fcntl") is not None  # not on Windows, where nobody can tell which are in use
_MOST_NAME = 1024  # bytes


@contextmanager
def temporary(parent: Path, prefix: str) -> Iterator[Path]:
    """Make a folder for this user alone, and remove it at the end. Raises OSError."""
    folder, lock = parent / f"{prefix}{os.urandom(8).hex()}", None
    try:  # before there is a folder: Ctrl-C may come at any time
        folder.mkdir(mode=0o700)
        lock = _locked(folder)  # without a lock it stays if this process is killed
        yield folder
    finally:
        if lock is not None:
            os.close(lock)  # Windows removes no file that is open
        surely(partial(shutil.rmtree, folder, ignore_errors=True))


def kept(parent: Path, prefix: str) -> tuple[str, int]:
    """Make a folder for this user alone; return it and the open file that keeps it. Raises OSError without locks."""
    folder = tempfile.mkdtemp(prefix=prefix, dir=parent)
    lock = _locked(Path(folder))
    if lock is None:
        shutil.rmtree(folder, ignore_errors=True)
        raise OSError(f"{parent}: no file can be locked there")
    return folder, lock


def remove_left(parent: Path, prefix: str) -> None:
    """Remove folders of that prefix whose processes were killed, but on Windows."""
    named = re.compile(rf"{re.escape(prefix)}[0-9A-Za-z_]+")
    with suppress(OSError):
        for path in parent.iterdir() if _LOCKS else ():
            with suppress(OSError):
                if named.fullmatch(path.name) and path.lstat().st_mtime < time.time() - _NEW_S:
                    remove_unused(path)


def remove_unused(folder: Path) -> None:
    """Remove a folder of this module's, unless it is in use. Raises OSError."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or (hasattr(os, "geteuid") and status.st_uid != os.geteuid()):
        return
    lock = os.open(folder / LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        is_unused = os.read(lock, _MOST_NAME) == _machine() and _has_locked(lock)
    finally:
        os.close(lock)
    if is_unused:
        shutil.rmtree(folder, ignore_errors=True)


def _locked(folder: Path) -> int | None:
    """Return a new file of a folder, locked until it is closed by all who have it; None where nothing can be locked."""
    with suppress(OSError):
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        if _has_locked(file):
            os.write(file, _machine())  # from now on others may ask for the lock
            return file
        os.close(file)
    return None


def _has_locked(file: int) -> bool:
    """Return whether a file could be locked, as all can where there are no locks."""
    if not _LOCKS:
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _machine() -> bytes:
    return platform.node().encode(errors="replace")[:_MOST_NAME]
