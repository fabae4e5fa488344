"""Environment variables that PoCL and pyopencl read once, and the folder in which PoCL compiles."""

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from litecl.delegate import disk
from litecl.delegate.opencl.identity import features
from litecl.delegate.report import warn
from litecl.interpreter.errors import DelegateError

POCL = "Portable Computing Language"  # the name of its platform
_POCL_DEVICES = "pthread basic"  # of all threads, and of the calling one
_IN_USE_S = 3600.0  # PoCL may still read what it wrote so lately
_ROOM_BYTES = 32 << 20  # more than PoCL writes for one program
_NO_FOLDER = (
    "PoCL has no folder that it can write to, without which it shows no device or compiles nothing: set POCL_CACHE_DIR "
    "or TMPDIR to one (for a container: --tmpfs /tmp)"
)

# pyopencl reads this when it is imported, so this module is imported first. Its cache is a database in the home folder,
# which may be read-only, damaged or locked, and saves nothing: litecl caches its programs itself.
os.environ.setdefault("PYOPENCL_NO_CACHE", "1")


def set_environment() -> None:
    """Make PoCL show its single-threaded device too, and give it a folder that it can write to.

    Without one it shows no device at all. Each kind of processor has its own folder: PoCL's file names do not depend on
    the processor that it was told to compile for. A kernel is compiled once for all sizes of a launch, and not again at
    the first launch of each: litecl's kernels for a CPU have groups of one work-item. Variables that a user has set are
    kept.
    """
    os.environ.setdefault("POCL_DEVICES", _POCL_DEVICES)
    os.environ.setdefault("POCL_WORK_GROUP_SPECIALIZATION", "0")
    if "POCL_CACHE_DIR" not in os.environ and (folder := _pocl_folder()) is not None:
        os.environ["POCL_CACHE_DIR"] = folder


def names_devices() -> bool:
    """Return whether a user says which devices PoCL is to have."""
    return os.environ.get("POCL_DEVICES", _POCL_DEVICES) != _POCL_DEVICES


def _pocl_folder() -> str | None:
    """Return a folder that can be written: the one that is kept, or else one of this process; None without any."""
    kept = _kept_folder()
    if kept is not None and _is_writable(kept) and _has_room(kept):
        return str(kept)
    try:
        return _temporary_folder()
    except OSError:
        warn(_NO_FOLDER)
        return None


def check_room() -> None:
    """Raise DelegateError if PoCL could not write what it compiles, as it would kill the process."""
    try:
        folder = Path(os.environ.get("POCL_CACHE_DIR") or tempfile.gettempdir())
    except OSError as error:
        raise DelegateError(_NO_FOLDER) from error
    if not _has_room(folder):
        raise DelegateError(f"expected {_ROOM_BYTES} bytes of free space in {folder}, where PoCL compiles")


def _kept_folder() -> Path | None:
    """Return the folder for this kind of processor, next to PoCL's own; None if there is no home folder."""
    compiled_for = " ".join(sorted(features()))
    try:
        return disk.pocl_folder() / f"litecl-{hashlib.sha256(compiled_for.encode()).hexdigest()[:12]}"
    except DelegateError:
        return None


def tidy() -> None:
    """Keep PoCL's folder, which nothing else keeps small, within the limit of litecl's; not one that a user has set."""
    kept = _kept_folder()
    if kept is not None and os.environ.get("POCL_CACHE_DIR") == str(kept):
        disk.tidy(kept, disk.limit(disk.default_folder()), unused_s=_IN_USE_S)


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _has_room(folder: Path) -> bool:
    """Return whether there is enough disk space, and files may be that large; True if that cannot be determined."""
    try:
        while not folder.exists() and folder != folder.parent:  # the folder in which it would be created
            folder = folder.parent
        return _longest_file() >= _ROOM_BYTES and shutil.disk_usage(folder).free >= _ROOM_BYTES
    except OSError:
        return True


def _longest_file() -> int:
    """Return the system's limit on the size of a file that this process writes, in bytes."""
    if sys.platform == "win32":
        return sys.maxsize
    import resource

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def _temporary_folder() -> str:
    """Return a new folder of this process, removed when it ends. Forked children leave it alone."""
    folder = tempfile.mkdtemp(prefix="litecl-pocl-")
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
