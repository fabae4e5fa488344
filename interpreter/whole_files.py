"""Files written in one step: readers see the old content or the new, never a part."""

import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import IO

TEMPORARY = re.compile(r"litecl-[0-9a-f]{16}\.tmp")  # the name of an incomplete file
_SURELY_LEFT_S = 3600.0  # an incomplete file of this age is abandoned
_PRIVATE = 0o600
_NEW = "x+b"  # a mode in which numpy writes through Python: in "xb", it loses what a full disk refuses at the end
_STREAMS = {Path("/dev/stdout"): 1, Path("/dev/stderr"): 2}
BY_HANDLE = {os.open, os.unlink, os.rename} <= os.supports_dir_fd and os.scandir in os.supports_fd  # not on Windows


@contextmanager
def whole_file(path: Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a new file, which replaces the path at the end; if anything raises before, the path does not change.

    A link stays a link, and an earlier file's owner and mode stay where the system permits it. Anything but a regular
    file, such as a pipe, is written directly, and so is /dev/stdout, wherever it leads. private: only this user may
    read the file, whatever the umask; a link is replaced, and the folder must not be one, nor become one meanwhile.

    Raises OSError. A killed process leaves the new file beside the path.
    """
    with _named(path), _private_file(path) if private else _usual_file(path) as file:
        yield file


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the path in errors of the new file, whose own name means nothing to users; those of writing have none."""
    try:
        yield
    except OSError as error:
        is_new = isinstance(error.filename, str | Path) and TEMPORARY.fullmatch(Path(error.filename).name)
        if error.strerror is None:  # numpy's own have a text alone, which a name would replace
            error.strerror = str(error)
        if error.filename is None or is_new:
            error.filename = str(path)
            del error.filename2  # which None would print as "-> None"
        raise


@contextmanager
def _usual_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file with the usual mode, or the earlier file's."""
    before, stream = _status(path), _STREAMS.get(path)
    if stream is not None or (before is not None and not stat.S_ISREG(before.st_mode)):
        with path.open("wb") if stream is None else os.fdopen(os.dup(stream), "wb") as file:  # its file isn't emptied
            yield file
        return
    target = Path(os.path.realpath(path))
    temporary = _temporary(target)
    try:  # begins before the file exists: Ctrl-C may come at any time
        with temporary.open(_NEW) as file:
            if before is not None:
                _take_after(file, before)
            yield file  # Windows neither removes nor replaces an open file
        temporary.replace(target)
    finally:
        surely(partial(temporary.unlink, missing_ok=True))


@contextmanager
def _private_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a private file through a handle of its folder, if the system has these."""
    folder, temporary = None, _temporary(path)
    if BY_HANDLE:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        path, temporary = Path(path.name), Path(temporary.name)
    try:  # begins before the file exists: Ctrl-C may come at any time
        with open(temporary, _NEW, opener=partial(_opened, folder=folder)) as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), _PRIVATE)
            yield file
        os.replace(temporary, path, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        surely(partial(_remove, temporary, folder))
        if folder is not None:
            os.close(folder)


def is_left(name: str, status: os.stat_result) -> bool:
    """Return whether a file is an incomplete one that a killed process left, by its name, kind and age."""
    is_old = status.st_mtime < time.time() - _SURELY_LEFT_S
    return is_old and stat.S_ISREG(status.st_mode) and TEMPORARY.fullmatch(name) is not None


def _temporary(path: Path) -> Path:
    return path.with_name(f"litecl-{os.urandom(8).hex()}.tmp")


def _opened(path: str, flags: int, folder: int | None) -> int:
    return os.open(path, flags, _PRIVATE, dir_fd=folder)


def _remove(path: Path, folder: int | None) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path, dir_fd=folder)


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a folder and its missing parents; if anything raises, remove those of them again that are empty."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:  # begins before the folder exists: Ctrl-C may come at any time
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for each in missing:
            with suppress(OSError):
                each.rmdir()
        raise


@contextmanager
def whole_folder(folder: Path) -> Iterator[Callable[[str], IO[bytes]]]:
    """Open new files of a folder by name, which replace the earlier ones together at the end; see ``whole_file``.

    If anything raises before, nothing changes. Raises OSError.
    """
    with made_folder(folder), ExitStack() as stack:
        files = list[IO[bytes]]()

        def new(name: str) -> IO[bytes]:
            flush()
            files.append(stack.enter_context(whole_file(folder / name)))
            return files[-1]

        def flush() -> None:
            for file in files[-1:]:
                file.flush()  # a full disk shows here: under this file's name, and before any is replaced

        yield new
        flush()


def put(path: str | PathLike[str], *content: bytes | memoryview, private: bool = False) -> None:
    """Write a file in one step, from parts in order; see ``whole_file``. Raises OSError."""
    with whole_file(Path(path), private=private) as file:
        file.writelines(content)


def put_text(path: str | PathLike[str], text: str) -> None:
    """Write a text in one step, in UTF-8; see ``whole_file``. Raises OSError."""
    put(path, text.encode())


def surely(remove: Callable[[], object]) -> None:
    """Remove something that may already be gone, even if Ctrl-C or another signal comes meanwhile."""
    try:
        remove()
    except BaseException:
        remove()
        raise


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a path, links followed; None if nothing is there."""
    with suppress(FileNotFoundError):
        return path.stat()
    return None


def _take_after(file: IO[bytes], before: os.stat_result) -> None:
    """Give a file the owner and mode of the one that it replaces, if the system permits it."""
    if hasattr(os, "fchown"):
        with suppress(OSError):
            os.fchown(file.fileno(), before.st_uid, before.st_gid)
        with suppress(OSError):
            os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
