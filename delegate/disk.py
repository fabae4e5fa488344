"""The folder on disk where programs and tunings are kept: what tells devices apart, and writing that is safe."""

import hashlib
import tempfile
from os import PathLike
from pathlib import Path
from typing import Any

from litecl.delegate.processor import features, name_processor


def default_folder() -> Path:
    """Where things are kept unless a user says otherwise."""
    return Path.home() / ".cache" / "litecl"


def folder(cache_dir: str | PathLike[str] | None) -> Path | None:
    """What ``CLDelegate(cache_dir=...)`` stands for: "auto" is the default, None is nowhere."""
    if cache_dir == "auto":
        return default_folder()
    return None if cache_dir is None else Path(cache_dir)


def key(name: str, device: Any, *made_from: str) -> str:
    """Return the name of a file about a pyopencl device: another platform, device, driver or processor has another one.

    Virtual processors of several kinds share a name, so what they can do is part of the key, and so is the name by
    which the device's compiler goes.
    """
    platform = device.platform
    named = (platform.name, platform.version, device.name, device.driver_version, device.version)
    compiler = (name_processor(device) or "", str(device.native_vector_width_float), *sorted(features()))
    parts = (*named, *compiler, *made_from)
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return f"{name}-{digest[:32]}"


def write_atomically(path: Path, content: bytes) -> None:
    """A cache that cannot be written (a full disk, a read-only home) is no error: the next process does without."""
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            temporary = Path(file.name)
            file.write(content)
        temporary.replace(path)
    except OSError:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
