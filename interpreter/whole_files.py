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
_PRIVATE = 0o600
BY_HANDLE = {os.open, os.unlink, os.rename} <= os.supports_dir_fd and os.scandir in os.supports_fd  # not on Windows


@contextmanager
def whole_file(path: Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a new file, which takes the path's place at the end; if anything is raised before, the path stays as it was.

    A link stays a link, and an earlier file's owner and mode stay where the system permits it. What isn't a regular
    file, such as a pipe or /dev/stdout, is written directly. private: only this user may read the file, whatever the
    umask; a link is replaced, and the folder must not be one, nor become one meanwhile.

    Raises OSError. A process that is killed leaves the new file, beside the path.
    """
    with _named(path), _private_file(path) if private else _usual_file(path) as file:
        yield file


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the path in errors of the new file, whose own name tells nobody anything."""
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, str | Path) and TEMPORARY.fullmatch(Path(error.filename).name):
            error.filename, error.filename2 = str(path), None
        raise


@contextmanager
def _usual_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file with the usual mode, or that of the earlier one."""
    before = _status(path)
    if before is not None and not stat.S_ISREG(before.st_mode):
        with path.open("wb") as file:
            yield file
        return
    place = Path(os.path.realpath(path))
    temporary = _temporary(place)
    try:  # before there is a file: Ctrl-C may come at any time
        with temporary.open("xb") as file:
            if before is not None:
                _take_after(file, before)
            yield file  # Windows removes and replaces no file that is open
        temporary.replace(place)
    finally:
        surely(partial(temporary.unlink, missing_ok=True))


@contextmanager
def _private_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a private file by a handle of its folder, where the system has such."""
    folder, temporary = None, _temporary(path)
    if BY_HANDLE:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        path, temporary = Path(path.name), Path(temporary.name)
    try:  # before there is a file: Ctrl-C may come at any time
        with open(temporary, "xb", opener=partial(_opened, folder=folder)) as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), _PRIVATE)
            yield file
        os.replace(temporary, path, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        surely(partial(_remove, temporary, folder))
        if folder is not None:
            os.close(folder)


def _temporary(path: Path) -> Path:
    return path.with_name(f"litecl-{os.urandom(8).hex()}{ENDING}")


def _opened(path: str, flags: int, folder: int | None) -> int:
    return os.open(path, flags, _PRIVATE, dir_fd=folder)


def _remove(path: Path, folder: int | None) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path, dir_fd=folder)


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


def _take_after(file: IO[bytes], before: os.stat_result) -> None:
    """Give a file the owner, if the system permits it, and the mode of the one that it is to replace."""
    if hasattr(os, "fchown"):
        with suppress(OSError):
            os.fchown(file.fileno(), before.st_uid, before.st_gid)
        with suppress(OSError):
            os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
