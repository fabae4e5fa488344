"""The cache folder of programs and tunings: file names by device, and verified files.

litecl keeps everything in a folder of its own, ``litecl-cache``, within the folder that a user names, which may hold
other files. litecl executes cached programs, so only this user may write there. It removes only files with names of
its own pattern, and follows no links.
"""

import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from threading import Thread

import numpy as np

from litecl.delegate.progress import warn
from litecl.interpreter.buffers import aligned
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array
from litecl.interpreter.regular_files import is_trusted, open_regular
from litecl.interpreter.whole_files import BY_HANDLE, TEMPORARY, is_left, put

OWN = "litecl-cache"  # the name of the folder
_TAG = "CACHEDIR.TAG"  # https://bford.info/cachedir: backups leave such a folder out
_TAGGED = b"""Signature: 8a477f597d28d172789f06886806bc55
# Compiled programs and measurements of litecl. It removes programs from this folder, the least recently used first.
"""
_SEAL = b"litecl 1\n"  # the file format, before the checksum
_PROGRAM = r"(?s).+-[0-9a-f]{32}\.bin"  # see ``key``
_LIMIT = "limit.json"  # the file with the folder's limit, in bytes
_TIDIED = "tidied.json"  # the file whose age tells when ``tidy`` last ran
_WRITTEN = rf"(?s).+-[0-9a-f]{{32}}\.(bin|json)|{_TAG}|{_LIMIT}|{_TIDIED}"
_TIDY_EVERY_S = 3600.0
_MOST_BYTES = 1 << 30
_MOST_FILE_BYTES = 1 << 28
_MOST_DIGITS = 30  # of a limit
_DIGEST_BYTES = hashlib.sha256().digest_size
_CHUNK_BYTES, _HELPERS = 1 << 18, 3  # what a thread digests at a time; threads beside the calling one
_PRIVATE = 0o700


def default_folder() -> Path:
    """Return the default folder: in the system's cache folder, or in XDG_CACHE_HOME.

    Raises DelegateError without a home folder or platformdirs.
    """
    return _cache_folder("litecl")


def pocl_folder() -> Path:
    """Return PoCL's own cache folder, beside litecl's. Raises DelegateError."""
    return _cache_folder("pocl")


def _cache_folder(name: str) -> Path:
    try:
        import platformdirs
    except ImportError as error:  # a board may have numpy and litecl alone
        raise DelegateError("no cache folder: platformdirs is not installed") from error
    path = platformdirs.user_cache_path(name, appauthor=False)
    if not path.is_absolute():
        raise DelegateError("no cache folder: there is no home folder, and XDG_CACHE_HOME is not set")
    return path


def folder(cache_dir: str | PathLike[str] | None) -> Path | None:
    """Return litecl's own folder within ``CLDelegate(cache_dir=...)``; "auto" is the default folder.

    Return None, so nothing is cached, for None, without a home folder, and, with a warning, for an untrusted folder.
    """
    if cache_dir is None:
        return None
    if cache_dir == "auto":
        try:
            cache_dir = default_folder()
        except DelegateError:
            return None
    try:
        return own(cache_dir)
    except DelegateError as error:
        warn(f"no compiled programs are cached, so every process compiles anew: {error}")
        return None


def own(cache_dir: str | PathLike[str]) -> Path:
    """Return litecl's own folder, which need not exist, within a user's folder ("auto": the default).

    Raises DelegateError if that path isn't a folder of litecl's, if others may write to it, or if it is unreadable.
    """
    given = default_folder() if cache_dir == "auto" else Path(cache_dir)
    path = given if given.name == OWN else given / OWN
    try:
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise DelegateError(f"{path}: expected a folder of litecl's own, got a link or a file")
        if not is_trusted(status):
            raise DelegateError(
                f"{path} belongs to another user, or others may write to it: remove it, or use another cache folder "
                f"(owner {status.st_uid}, mode {stat.S_IMODE(status.st_mode):04o})"
            )
        if not _is_tagged(path) and not _is_new(path):
            raise DelegateError(
                f"{path} has files, but no {_TAG} of litecl's, so litecl may not have made it: use another folder"
            )
    except (FileNotFoundError, NotADirectoryError):
        return path
    except OSError as error:
        raise DelegateError(f"{path}: {error.strerror}: its owner can let others read it by chmod -R a+rX") from error
    return path


def _is_tagged(folder: Path) -> bool:
    """Return whether litecl has marked a folder as its own. Raises OSError if the folder is unreadable."""
    try:
        return stat.S_ISREG((folder / _TAG).lstat().st_mode)
    except FileNotFoundError:
        return False


def _is_new(folder: Path) -> bool:
    """Return whether a folder is empty, except for a tag that another process is writing."""
    with os.scandir(folder) as entries:
        return all(TEMPORARY.fullmatch(entry.name) for entry in entries)


def key(name: str, identity: Sequence[str], sources: Iterable[str] = ()) -> str:
    """Return the file name for a device. identity: see ``Identified`` in ``delegate/backend/protocols.py``.

    sources: all else that the content depends on.
    """
    digest = hashlib.sha256("\0".join(identity).encode())
    for text in sources:
        digest.update(b"\0" + text.encode())
    return f"{name}-{digest.hexdigest()[:32]}"


def digest(head: bytes, parts: Iterable[Array]) -> bytes:
    """Return the SHA-256 of some bytes and of arrays of bytes; of large ones, of the digests of their chunks."""
    whole, chunks = hashlib.sha256(head), list[Array]()
    for part in parts:
        if part.size <= _CHUNK_BYTES:
            whole.update(part.data)
        else:
            chunks += [part[start : start + _CHUNK_BYTES] for start in range(0, part.size, _CHUNK_BYTES)]
    for each in _digests(chunks):
        whole.update(each)
    return whole.digest()


def _digests(chunks: Sequence[Array]) -> Sequence[bytes]:
    """Return the SHA-256 of each chunk. Threads share the work: hashlib releases the GIL."""
    by_chunk, left, helpers = dict[int, bytes](), iter(range(len(chunks))), list[Thread]()

    def work() -> None:
        for number in left:
            by_chunk[number] = hashlib.sha256(chunks[number].data).digest()

    with suppress(RuntimeError):  # no further threads
        for _ in range(min(_HELPERS, len(chunks) - 1)):
            helper = Thread(target=work, daemon=True)
            helper.start()
            helpers.append(helper)
    work()
    for helper in helpers:
        helper.join()
    return [by_chunk[number] for number in range(len(chunks))]


def read(path: Path) -> bytes | None:
    """Return the content of a file, or None if it cannot be read: a missing cache is not an error.

    Ignores links, anything but regular files, files that others may have written, and files over 256 MiB.
    """
    content = _read(path, 0)[1]
    return None if content is None else content.tobytes()


def _read(path: Path, head_bytes: int) -> tuple[bytes, Array | None]:
    """Return the first bytes of a file, and the others as ``read`` does, in ``aligned`` memory."""
    with suppress(OSError), open_regular(path, links=False) as file:
        status = os.fstat(file.fileno())
        if status.st_size <= _MOST_FILE_BYTES and is_trusted(status):
            head, content = file.read(head_bytes), aligned(status.st_size)
            return head, content[: file.readinto(content.data)]
    return b"", None


def read_sealed(path: Path) -> bytes | None:
    """Return what ``sealed`` does, as bytes."""
    content = sealed(path)
    return None if content is None else content.tobytes()


def sealed(path: Path) -> Array | None:
    """Return the content that ``write_sealed`` wrote under this name; None if the file is missing or altered.

    A driver trusts a binary, and one wrong bit may crash the process.
    """
    seal, content = _read(path, len(_SEAL) + _DIGEST_BYTES)
    return None if content is None or seal != _seal(path, content) else content


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file behind a checksum of its content and name, so that a renamed file is rejected too.

    Raises OSError as ``write_atomically`` does.
    """
    write_atomically(path, _seal(path, content), content)


def write_atomically(path: Path, *content: bytes) -> None:
    """Write a file for this user alone, part after part.

    Raises OSError: a full disk, a read-only home; on Windows a file that somebody reads. The next process can do
    without the cache.
    """
    _make(path.parent)
    put(path, *content, private=True)


def limit(folder: Path) -> int:
    """Return the limit of a folder's programs, in bytes: that of ``set_limit``, or 1 GiB."""
    content = read(folder / _LIMIT) or b""
    return int(content) if content.isdigit() and len(content) <= _MOST_DIGITS else _MOST_BYTES


def set_limit(folder: Path, size_bytes: int) -> None:
    """Limit the size of a folder from now on. Raises OSError if it cannot be written."""
    write_atomically(folder / _LIMIT, str(size_bytes).encode())


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents for this user alone, whatever the umask. Raises OSError."""
    if folder.is_dir():
        return
    make_private(folder.parent)
    with suppress(FileExistsError):  # another process created it
        folder.mkdir(_PRIVATE)
        folder.chmod(_PRIVATE)


def _make(folder: Path) -> None:
    """Create a cache folder, and tag it if it is litecl's own. Raises OSError."""
    make_private(folder)
    if folder.name == OWN and not _is_tagged(folder):
        put(folder / _TAG, _TAGGED, private=True)


def files(folder: Path) -> list[Path]:
    """Return the programs in a folder. Another process may remove them at any time."""
    with _programs(folder) as (programs, _):
        return [folder / name for _, _, name in programs]


def size_bytes(folder: Path) -> int:
    """Return the total size of the programs in a folder."""
    with _programs(folder) as (programs, _):
        return sum(size for _, size, _ in programs)


def trim(folder: Path, most_bytes: int) -> int:
    """Remove the least recently used programs until the rest take at most ``most_bytes``; return the bytes removed.

    Other processes may be doing the same.
    """
    removed = 0
    with _programs(folder) as (programs, remove):
        excess = sum(size for _, size, _ in programs) - most_bytes
        for _, size, name in programs:
            if removed >= excess and most_bytes and not TEMPORARY.fullmatch(name):
                continue
            with suppress(OSError):
                remove(name)
                removed += size
    return removed


def others(folder: Path) -> list[str]:
    """Return the names in litecl's folder that litecl did not write, and so leaves alone."""
    with suppress(OSError), os.scandir(folder) as entries:
        names = [entry.name for entry in entries if not re.fullmatch(_WRITTEN, entry.name)]
        return sorted(name for name in names if not TEMPORARY.fullmatch(name))
    return []


def tidy(folder: Path, most_bytes: int) -> None:
    """Trim a folder after adding to it, at most once an hour: there may be many files to look at."""
    marker, last_s = folder / _TIDIED, 0.0
    with suppress(OSError):
        last_s = marker.lstat().st_mtime
    with suppress(OSError):
        if last_s < time.time() - _TIDY_EVERY_S:
            put(marker, b'{"about": "changed when the size of this folder was last looked at"}', private=True)
            trim(folder, most_bytes)


@contextmanager
def _programs(folder: Path) -> Iterator[tuple[list[tuple[float, int, str]], Callable[[str], None]]]:
    """Yield the programs in a folder as (last use, size, name), the least recently used first, and a function that
    removes one by name. The list is empty if the folder is missing or a link; replacing it with a link has no effect.
    """
    handle = None
    try:
        if BY_HANDLE:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        with os.scandir(folder if handle is None else handle) as entries:
            files = [(status, entry.name) for entry in entries if (status := _status(entry)) is not None]
    except OSError:
        files = []
    try:
        programs = [(s.st_mtime, s.st_size, name) for s, name in files if stat.S_ISREG(s.st_mode) and _is_own(name, s)]
        yield sorted(programs), (lambda name: os.unlink(folder / name if handle is None else name, dir_fd=handle))
    finally:
        if handle is not None:
            os.close(handle)


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    """Return the status of a file, or of a link itself; None if it was just removed."""
    with suppress(OSError):
        return entry.stat(follow_symlinks=False)
    return None


def _is_own(name: str, status: os.stat_result) -> bool:
    """Return whether litecl may remove a file: a program, or the leftover of a killed process."""
    return is_left(name, status) or re.fullmatch(_PROGRAM, name) is not None


def _seal(path: Path, content: bytes | Array) -> bytes:
    return _SEAL + digest(path.name.encode() + b"\0", [np.frombuffer(content, np.uint8)])
