"""Reading regular files only: a pipe or a device might never answer, or never end."""

import errno
import os
import stat
from functools import partial
from io import FileIO
from os import PathLike

# With O_NONBLOCK a pipe without a writer opens at once, and is then refused. Windows has neither flag.
_AT_ONCE, _NO_LINK = getattr(os, "O_NONBLOCK", 0), getattr(os, "O_NOFOLLOW", 0)


def open_regular(path: str | PathLike[str], *, links: bool = True) -> FileIO:
    """Open a regular file to read it. links: whether the path may be a symbolic link.

    Raises OSError: with EINVAL for anything but a regular file, with EISDIR for a folder; TypeError for a number, which
    ``open`` takes for an open file.
    """
    return FileIO(os.fspath(path), "rb", opener=partial(_opened, more=_AT_ONCE if links else _AT_ONCE | _NO_LINK))


def _opened(path: str, flags: int, more: int) -> int:
    file = os.open(path, flags | more)
    mode = os.fstat(file).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # FileIO raises for a folder
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "expected a regular file, got a pipe, a socket or a device", path)


def is_trusted(status: os.stat_result) -> bool:
    """Return whether only this user and the administrator can have written a file or folder, or can change it.

    Always True on Windows, which has no such modes.
    """
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
