"""The cache folder, where programs and tunings are kept: file names by device, and files that can be trusted."""

import hashlib
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path

from litecl.interpreter.errors import DelegateError

_SEAL = b"litecl 1\n"  # of the file's format, before the checksum
_DIGEST_BYTES = hashlib.sha256().digest_size


def default_folder() -> Path:
    """Return the default cache folder. Raises DelegateError if there is no home folder."""
    try:
        return Path.home() / ".cache" / "litecl"
    except RuntimeError as error:
        raise DelegateError(f"no cache folder: {error}") from error


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


def key(name: str, identity: Sequence[str], *made_from: str) -> str:
    """Return the file name for a device. identity: see ``Identified`` in ``delegate/backend/protocols.py``."""
    digest = hashlib.sha256("\0".join((*identity, *made_from)).encode()).hexdigest()
    return f"{name}-{digest[:32]}"


def read(path: Path) -> bytes | None:
    """Return the content of a file, or None if it cannot be read: a missing cache is not an error."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def read_sealed(path: Path) -> bytes | None:
    """Return what ``write_sealed`` wrote under this name, or None if the file holds anything else.

    A driver trusts a binary, and one wrong bit may crash the process, so nothing else must reach it.
    """
    content = read(path)
    head = len(_SEAL) + _DIGEST_BYTES
    if content is None or content[:head] != _seal(path, content[head:]):
        return None
    return content[head:]


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file after a checksum of its content and name, so that a renamed file is rejected too."""
    write_atomically(path, _seal(path, content) + content)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file. A cache that cannot be written (full disk, read-only home) is not an error."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            temporary = Path(file.name)
            try:
                file.write(content)
                file.close()
                temporary.replace(path)
            finally:  # no temporary file is left, whatever happened
                temporary.unlink(missing_ok=True)


def _seal(path: Path, content: bytes) -> bytes:
    return _SEAL + hashlib.sha256(path.name.encode() + b"\0" + content).digest()
