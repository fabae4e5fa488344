"""The cache folder of programs and tunings: file names by device, and verified files."""

import hashlib
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path

from litecl.interpreter.errors import DelegateError
from litecl.interpreter.whole_files import whole_file

_SEAL = b"litecl 1\n"  # of the file's format, before the checksum
_LIMIT = "limit.json"  # the name of a file that holds it, in bytes
_TIDIED = "tidied.json"  # of one whose age is that of the last look
_TIDY_EVERY_S = 3600.0
_MOST_BYTES = 1 << 30
_MOST_DIGITS = 30  # of a limit
_DIGEST_BYTES = hashlib.sha256().digest_size


def default_folder() -> Path:
    """Return where things are kept unless a user says otherwise: the system's cache folder, or XDG_CACHE_HOME's.

    Raises DelegateError where there is no home.
    """
    return _cache_folder("litecl")


def pocl_folder() -> Path:
    """Return where PoCL's own folder is, beside litecl's. Raises DelegateError."""
    return _cache_folder("pocl")


def _cache_folder(name: str) -> Path:
    try:
        import platformdirs
    except ImportError as error:  # a board may have numpy and litecl alone
        raise DelegateError("no cache folder: platformdirs is not installed") from error
    found = platformdirs.user_cache_path(name, appauthor=False)
    if not found.is_absolute():
        raise DelegateError("no cache folder: there is no home folder, and XDG_CACHE_HOME is not set")
    return found


def folder(cache_dir: str | PathLike[str] | None) -> Path | None:
    """Return what ``CLDelegate(cache_dir=...)`` means: "auto" is the default folder; None (or no home folder)
    keeps nothing.
    """
    if cache_dir != "auto":
        return None if cache_dir is None else Path(cache_dir)
    try:
        return default_folder()
    except DelegateError:
        return None


def key(name: str, identity: Sequence[str], made_from: Iterable[str] = ()) -> str:
    """Return the file name for a device. identity: see ``Identified`` in ``delegate/backend/protocols.py``."""
    digest = hashlib.sha256("\0".join(identity).encode())
    for text in made_from:
        digest.update(b"\0" + text.encode())
    return f"{name}-{digest.hexdigest()[:32]}"


def read(path: Path) -> bytes | None:
    """Return the content of a file, or None if it cannot be read: a missing cache is not an error."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def read_sealed(path: Path) -> bytes | None:
    """Return what ``write_sealed`` wrote under this name, or None if there is no such file or it holds anything else.

    A driver trusts a binary, and one wrong bit may crash the process, so nothing else must reach it.
    """
    try:
        with path.open("rb") as file:
            seal, content = file.read(len(_SEAL) + _DIGEST_BYTES), file.read()
    except OSError:
        return None
    if seal != _seal(path, content):
        return None
    with suppress(OSError):  # the least recently used goes first (``trim``)
        os.utime(path)
    return content


def write_sealed(path: Path, content: bytes) -> bool:
    """Write a file behind a checksum of its content and name, so that a renamed file is rejected too."""
    return write_atomically(path, _seal(path, content), content)


def write_atomically(path: Path, *content: bytes) -> bool:
    """Return whether a file could be written, one part after another.

    A cache that cannot be written (a full disk, a read-only home; on Windows a file that somebody reads) is no error:
    the next process does without.
    """
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        put(path, *content)
        return True
    return False


def put(path: Path, *content: bytes) -> None:
    """Write a file as a whole, one part after another: others find it as it was, or as it is to be.

    Raises OSError, and leaves the file as it was then.
    """
    with whole_file(path) as file:
        file.writelines(content)


def limit(folder: Path) -> int:
    """Return the most bytes that programs may take in a folder: what ``set_limit`` said, or a GiB."""
    content = read(folder / _LIMIT) or b""
    return int(content) if content.isdigit() and len(content) <= _MOST_DIGITS else _MOST_BYTES


def set_limit(folder: Path, size_bytes: int) -> None:
    """Limit a folder from now on. Raises OSError where it cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _LIMIT).write_bytes(str(size_bytes).encode())


def files(folder: Path) -> list[Path]:
    """Return the programs in a folder, which may be removed at any time: all but measurements and the limit."""
    return [path for path in folder.rglob("*") if path.suffix != ".json" and path.is_file()]


def size_bytes(folder: Path) -> int:
    """Return what the programs in a folder take."""
    return sum(size for _, size, _ in _by_age(folder))


def trim(folder: Path, most_bytes: int) -> int:
    """Remove programs, the least recently used first, until they take no more than so much; return the bytes removed.

    Other processes may be doing the same.
    """
    found, removed = _by_age(folder), 0
    excess = sum(size for _, size, _ in found) - most_bytes
    for _, size, path in found:
        if removed >= excess:
            break
        with suppress(OSError):
            path.unlink()
            removed += size
    return removed


def tidy(folder: Path, most_bytes: int) -> None:
    """Trim a folder to which something was added, once in an hour: there may be many files to look at."""
    marker = folder / _TIDIED
    with suppress(OSError):
        if not marker.exists() or marker.stat().st_mtime < time.time() - _TIDY_EVERY_S:
            marker.write_bytes(b'{"about": "changed when the size of this folder was last looked at"}')
            trim(folder, most_bytes)


def _by_age(folder: Path) -> list[tuple[float, int, Path]]:
    """Return when each program in a folder was used, its size and its path, the least recently used first."""
    found = []
    for path in files(folder):
        with suppress(OSError):
            stat = path.stat()
            found.append((stat.st_mtime, stat.st_size, path))
    return sorted(found)


def _seal(path: Path, content: bytes) -> bytes:
    digest = hashlib.sha256(path.name.encode() + b"\0")
    digest.update(content)
    return _SEAL + digest.digest()
