"""Files that are written in one step: whoever opens one finds it as it was, or as it is to be."""

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import IO

ENDING = ".tmp"  # of a file that is not whole yet
TEMPORARY = re.compile(rf"litecl-[0-9a-f]{{16}}\{ENDING}")  # its name
_PRIVATE, _USUAL = 0o600, 0o666  # modes of new files; the umask restricts the latter
_BINARY = getattr(os, "O_BINARY", 0)  # of Windows


@contextmanager
def whole_file(path: Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a new file, which takes the path's place at the end; if anything is raised before, the path stays as it was.

    A link stays a link, and an earlier file's owner and mode stay where the system permits it. What isn't a regular
    file, such as a pipe or /dev/stdout, is written directly. private: only this user may read the file, whatever the
    umask, and a link is replaced.

    Raises OSError. A process that is killed leaves the new file, beside the path.
    """
    before = None if private else _status(path)
    if before is not None and not stat.S_ISREG(before.st_mode):
        with path.open("wb") as file:
            yield file
        return
    place = path if private else Path(os.path.realpath(path))
    temporary = place.with_name(f"litecl-{os.urandom(8).hex()}{ENDING}")
    try:  # before there is a file: Ctrl-C may come at any time
        with open(temporary, "xb", opener=partial(_opened, mode=_PRIVATE if private else _USUAL)) as file:
            if private:
                _set_mode(file, _PRIVATE)
            elif before is not None:
                _take_after(file, before)
            yield file  # Windows removes and replaces no file that is open
        temporary.replace(place)
    finally:
        surely(partial(temporary.unlink, missing_ok=True))


def put(path: str | PathLike[str], *content: bytes | memoryview, private: bool = False) -> None:
    """Write a file as a whole, one part after another; see ``whole_file``. Raises OSError."""
    with whole_file(Path(path), private=private) as file:
        file.writelines(content)


def put_text(path: str | PathLike[str], text: str) -> None:
    """Write a text as a whole, in UTF-8; see ``whole_file``. Raises OSError."""
    put(path, text.encode())


def surely(remove: Callable[[], object]) -> None:
    """Remove something that may be gone already, also if Ctrl-C comes meanwhile."""
    try:
        remove()
    except KeyboardInterrupt:
        remove()
        raise


def _status(path: Path) -> os.stat_result | None:
    """Return the status of what a path leads to; None where there is nothing."""
    with suppress(FileNotFoundError):
        return path.stat()
    return None


def _opened(path: str, flags: int, mode: int) -> int:
    return os.open(path, flags | _BINARY, mode)


def _set_mode(file: IO[bytes], mode: int) -> None:
    if hasattr(os, "fchmod"):  # not on Windows
        os.fchmod(file.fileno(), mode)


def _take_after(file: IO[bytes], before: os.stat_result) -> None:
    """Give a file the owner, if the system permits it, and the mode of the one that it is to replace."""
    if hasattr(os, "fchown"):
        with suppress(OSError):
            os.fchown(file.fileno(), before.st_uid, before.st_gid)
        with suppress(OSError):
            _set_mode(file, stat.S_IMODE(before.st_mode))
