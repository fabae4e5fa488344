"""Environment variables that PoCL and pyopencl read once."""

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from litecl.delegate import disk
from litecl.delegate.opencl import folder
from litecl.delegate.report import warn
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.regular_files import is_trusted

POCL = "Portable Computing Language"  # the name of its platform
_POCL_DEVICES = "pthread basic"  # the one with a thread pool, and the one that runs in the calling thread
_ROOM_BYTES = 32 << 20  # more than PoCL writes for one program
_NO_FOLDER = (
    "PoCL has no folder that it can write to, without which it shows no device or compiles nothing: set POCL_CACHE_DIR "
    "or TMPDIR to one (for a container: --tmpfs /tmp)"
)

# pyopencl reads this on import, so this module is imported first. pyopencl's cache, a database in the home folder, may
# be read-only, damaged or locked, and litecl doesn't need it: it caches programs itself.
os.environ.setdefault("PYOPENCL_NO_CACHE", "1")


def set_environment() -> None:
    """Make PoCL show its single-threaded device too, and give it a new cache folder, without which it shows no device.

    PoCL then compiles a kernel once, not for each launch size: litecl's kernels for a CPU have groups of one work-item.
    Variables that a user has set are kept.
    """
    os.environ.setdefault("POCL_DEVICES", _POCL_DEVICES)
    os.environ.setdefault("POCL_WORK_GROUP_SPECIALIZATION", "0")
    given = os.environ.get("POCL_CACHE_DIR")
    if (given is None or folder.is_of_another_process(given)) and (path := _pocl_folder()) is not None:
        os.environ["POCL_CACHE_DIR"] = path


def names_devices() -> bool:
    """Return whether the user has chosen PoCL's devices."""
    return os.environ.get("POCL_DEVICES", _POCL_DEVICES) != _POCL_DEVICES


def _pocl_folder() -> str | None:
    """Make a folder in the system's cache folder, or else in the temporary one; return None if neither is writable."""
    with suppress(OSError, DelegateError):
        parent = disk.pocl_folder()
        disk.make_private(parent)
        if is_trusted(parent.stat()) and _has_room(parent):
            return folder.make(parent)
    try:
        return folder.make(Path(tempfile.gettempdir()))
    except OSError:
        warn(_NO_FOLDER)
        return None


def check_room() -> None:
    """Raise DelegateError if there is no space for PoCL's compiled files: PoCL would kill the process."""
    try:
        where = Path(os.environ.get("POCL_CACHE_DIR") or tempfile.gettempdir())
    except OSError as error:
        raise DelegateError(_NO_FOLDER) from error
    if not _has_room(where):
        raise DelegateError(f"expected {_ROOM_BYTES} bytes of free space in {where}, where PoCL compiles")


def _has_room(where: Path) -> bool:
    """Return whether disk space and the limit on file sizes suffice; True if that can't be determined."""
    try:
        while not where.exists() and where != where.parent:  # the existing folder that it would be created in
            where = where.parent
        return _longest_file() >= _ROOM_BYTES and shutil.disk_usage(where).free >= _ROOM_BYTES
    except OSError:
        return True


def _longest_file() -> int:
    """Return the system's limit on the size of files that this process writes, in bytes."""
    if sys.platform == "win32":
        return sys.maxsize
    import resource

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit
