"""Compiled programs in the cache folder."""

from pathlib import Path

from litecl.delegate import disk
from litecl.delegate.progress import info, warn


def read(folder: Path | None, key: str) -> bytes | None:
    """Return a cached program, or None if it is missing or untrusted."""
    return None if folder is None else disk.read_sealed(folder / f"{key}.bin")


def keep(folder: Path | None, key: str, content: bytes) -> bool:
    """Write a program to the cache, and trim the folder to its limit; return whether the write succeeded.

    Warns once about a folder that cannot be written. folder: None keeps nothing.
    """
    if folder is None or not content:
        return False
    if not disk.write_sealed(folder / f"{key}.bin", content):
        warn(
            f"cannot cache compiled programs in {folder}, so every process compiles anew: "
            "set XDG_CACHE_HOME to a writable folder, or name one (cache_dir=, --cache)"
        )
        return False
    info("kept %s.bin (%d bytes) in %s", key, len(content), folder)
    disk.tidy(folder, disk.limit(folder))
    return True
