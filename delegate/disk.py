"""The folder on disk where programs and tunings are kept: what tells devices apart, and files that can be trusted."""

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
    """Return where things are kept unless a user says otherwise. Raises DelegateError where there is no home."""
    try:
        return Path.home() / ".cache" / "litecl"
    except RuntimeError as error:
        raise DelegateError(f"no folder to keep things in: {error}") from error


def folder(cache_dir: str | PathLike[str] | None) -> Path | None:
    """Return what ``CLDelegate(cache_dir=...)`` stands for: "auto" is the default, None (or no home) is nowhere."""
    if cache_dir != "auto":
        return None if cache_dir is None else Path(cache_dir)
    try:
        return default_folder()
    except DelegateError:
        return None


def key(name: str, identity: Sequence[str], *made_from: str) -> str:
    """Return the name of a file about a device. identity: see ``Identified`` in ``delegate/backend/protocols.py``."""
    digest = hashlib.sha256("\0".join((*identity, *made_from)).encode()).hexdigest()
    return f"{name}-{digest[:32]}"


def read(path: Path) -> bytes | None:
    """Return the content of a file, or None where it cannot be read: a cache that is not there is no error."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def read_sealed(path: Path) -> bytes | None:
    """Return what ``write_sealed`` wrote under this name, or None where the file holds anything else.

    A driver trusts a binary and may crash the process over one bit, so nothing else must reach it.
    """
    content = read(path)
    head = len(_SEAL) + _DIGEST_BYTES
    if content is None or content[:head] != _seal(path, content[head:]):
        return None
    return content[head:]


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file behind a checksum of its content and name, so that a renamed one is not taken either."""
    write_atomically(path, _seal(path, content) + content)


def write_atomically(path: Path, content: bytes) -> None:
    """A cache that cannot be written (a full disk, a read-only home) is no error: the next process does without."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            temporary = Path(file.name)
            try:
                file.write(content)
                file.close()
                temporary.replace(path)
            finally:  # nothing is left of it, whatever happened
                temporary.unlink(missing_ok=True)


def _seal(path: Path, content: bytes) -> bytes:
    return _SEAL + hashlib.sha256(path.name.encode() + b"\0" + content).digest()
