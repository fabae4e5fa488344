"""Temporary folders of a process; a later process removes those of killed processes.

A folder holds a file with the machine's name, which its process keeps locked. A later process removes only folders of
its own user and machine whose file isn't locked: process ids may be reused, and machines that share the parent folder
may not see each other's locks.
"""

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

try:
    import fcntl

    _LOCKS = True
except ImportError:  # Windows, where folders in use can't be told apart
    _LOCKS = False

BUILD = "litecl-build-"  # the prefix of folders for compilers, and for libraries while they are loaded
LOCK = "in_use"  # the name of the locked file
_NEW_S = 60.0  # a folder this new may not be locked yet
_OLD_S = 3600.0  # one this old without a lock's file is abandoned
_RANDOM = re.compile(r"-[0-9a-f]{16}")  # the end of ``temporary``'s names
_MOST_NAME = 1024  # bytes


@contextmanager
def temporary(parent: Path, prefix: str) -> Iterator[Path]:
    """Create a folder for this user alone, and remove it at the end. Raises OSError."""
    folder, lock = parent / f"{prefix}{os.urandom(8).hex()}", None
    try:  # enclose mkdir: Ctrl-C may come at any time
        folder.mkdir(mode=0o700)
        lock = _locked(folder)  # without a lock, the folder outlives a killed process
        yield folder
    finally:
        if lock is not None:
            os.close(lock)  # Windows can't remove an open file
        surely(partial(shutil.rmtree, folder, ignore_errors=True))


def kept(parent: Path, prefix: str) -> tuple[str, int]:
    """Create a folder for this user alone; return it and the open file that keeps it. Raises OSError without locks."""
    folder = tempfile.mkdtemp(prefix=prefix, dir=parent)
    lock = _locked(Path(folder))
    if lock is None:
        shutil.rmtree(folder, ignore_errors=True)
        raise OSError(f"{parent}: no file can be locked there")
    return folder, lock


def remove_left(parent: Path, prefix: str) -> None:
    """Remove folders with this prefix whose processes were killed; on Windows, none."""
    named = re.compile(rf"{re.escape(prefix)}[0-9A-Za-z_]+")
    with suppress(OSError):
        for path in parent.iterdir() if _LOCKS else ():
            with suppress(OSError):
                if named.fullmatch(path.name) and path.lstat().st_mtime < time.time() - _NEW_S:
                    remove_unused(path)


def remove_unused(folder: Path) -> None:
    """Remove a folder that this module created, unless it is in use. Raises OSError."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or (hasattr(os, "geteuid") and status.st_uid != os.geteuid()):
        return
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:  # killed as it made the folder, or removed it
        if _RANDOM.fullmatch(folder.name[-17:]) and status.st_mtime < time.time() - _OLD_S:
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        is_unused = os.read(lock, _MOST_NAME) == _machine() and _has_locked(lock)
    finally:
        os.close(lock)
    if is_unused:
        shutil.rmtree(folder, ignore_errors=True)


def _locked(folder: Path) -> int | None:
    """Create a folder's lock file, locked until every holder closes it; return None if it can't be locked."""
    with suppress(OSError):
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with suppress(OSError):
            if _has_locked(file):
                os.write(file, _machine())  # others try the lock only from now on
                return file
        os.close(file)
    return None


def _has_locked(file: int) -> bool:
    """Lock a file; return whether that succeeded. Without locks, it always does."""
    if not _LOCKS:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _machine() -> bytes:
    return platform.node().encode(errors="replace")[:_MOST_NAME]
