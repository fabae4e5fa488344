"""What PoCL reads from the environment, once, when it is first asked for devices."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path


def set_environment() -> None:
    """Have PoCL show its single-threaded device too, and give it a folder for its own files where it cannot make one.

    Without such a folder it shows no device at all. What a user has set stays.
    """
    os.environ.setdefault("POCL_DEVICES", "pthread basic")
    if "POCL_CACHE_DIR" not in os.environ and not _is_writable(_default_cache()):
        os.environ["POCL_CACHE_DIR"] = _temporary_folder()


def _default_cache() -> Path:
    """Return the folder that PoCL takes if it is told of none."""
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "pocl" / "kcache"
    home = os.environ.get("HOME")
    return Path(home) / ".cache" / "pocl" / "kcache" if home else Path("/tmp/pocl/kcache")


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _temporary_folder() -> str:
    """Return a new folder of this process, which is gone when it ends. Children that were forked leave it alone."""
    folder = tempfile.mkdtemp(prefix="litecl-pocl-")
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
