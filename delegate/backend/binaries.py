"""Compiled programs in the cache folder."""

import os
from contextlib import suppress
from pathlib import Path

from litecl.delegate import disk
from litecl.delegate.progress import info, warn
from litecl.interpreter.graph import Array

REFUSED: dict[Path, OSError] = {}
"""The last error of each folder that this process could not write to."""


def read(folder: Path | None, key: str) -> bytes | None:
    """Return a cached program, or None if it is missing or untrusted."""
    content = sealed(folder, key)
    return None if content is None else content.tobytes()


def sealed(folder: Path | None, key: str) -> Array | None:
    """Return what ``read`` does, as ``disk.sealed``, and note that it was used."""
    if folder is None:
        return None
    path = folder / f"{key}.bin"
    content = disk.sealed(path)
    if content is not None:
        with suppress(OSError, NotImplementedError):  # the least recently used goes first (``disk.trim``)
            os.utime(path, follow_symlinks=False)
    return content


def keep(folder: Path | None, key: str, content: bytes) -> None:
    """Write a program to the cache, and trim the folder to its limit. folder: None keeps nothing.

    Warns once about a folder that cannot be written, and notes it in ``REFUSED``.
    """
    if folder is None or not content:
        return
    try:
        disk.write_sealed(folder / f"{key}.bin", content)
    except OSError as error:
        REFUSED[folder] = error.with_traceback(None)
        warn(
            f"cannot cache compiled programs in {folder}, so every process compiles anew ({error.strerror}): "
            "set XDG_CACHE_HOME to a writable folder, or name one (cache_dir=, --cache)"
        )
    else:
        info("kept %s.bin (%d bytes) in %s", key, len(content), folder)
        disk.tidy(folder, disk.limit(folder))
