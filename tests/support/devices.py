"""The OpenCL devices that tests run on."""

import os
from pathlib import Path
from typing import Any

import pyopencl as cl
import pytest

from litecl.delegate.opencl import device
from litecl.delegate.opencl.device import devices
from litecl.perf.compare.graph_fuzz.modes import as_gpu


def tested() -> list[Any]:
    """Every device there is, but for PoCL's single-threaded twin of its CPU device."""
    return [device for device in devices() if not device.name.startswith(("basic", "cpu-minimal"))]


def several_threads() -> Any:
    """The CPU device of all threads."""
    return next(found for found in tested() if device.needs_threads(found) and found.type & cl.device_type.CPU)


def as_on_a_gpu(patch: pytest.MonkeyPatch, cache_dir: Path) -> dict[str, Any]:
    """Options of a delegate for which the first device is a GPU. It is opened once for a folder, of its own.

    Programs are compiled without optimisations, in a tenth of the time: what is tested is how work is dealt out, and
    what a CPU's compiler makes of a loop over the work-items of a group says nothing about a GPU's.
    """
    for name, value in as_gpu().items():
        patch.setattr(device, name, value)
    patch.setenv("PYOPENCL_BUILD_OPTIONS", os.environ.get("PYOPENCL_BUILD_OPTIONS", "-cl-opt-disable"))
    return {"device": tested()[0], "cache_dir": cache_dir}
