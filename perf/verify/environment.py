"""The machine, its OpenCL devices, and the versions of all that takes part."""

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import litecl

_PACKAGES = ("pyopencl", "pocl-binary-distribution", "intel-opencl-rt", "flatbuffers")
_VARIABLES = ("POCL_", "OCL_", "CL_", "OPENCL_", "PYOPENCL_")


def machine() -> dict[str, Any]:
    """Return the machine and the versions, without a look at OpenCL."""
    return {
        "litecl": litecl.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
        "system": platform.platform(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "variables": {k: v for k, v in sorted(os.environ.items()) if k.startswith(_VARIABLES)},
    }


def described(devices: Sequence[str]) -> list[dict[str, Any]]:
    """Return the devices asked for as ``litecl devices`` shows them, with their platforms' versions.

    devices: indices and fragments of names, or "all"; none means the one that litecl takes for large models. Raises
    DelegateError for one that is not there.
    """
    from litecl.delegate.opencl.device import choose
    from litecl.delegate.opencl.device import devices as listed
    from litecl.perf.measure.devices import device_rows

    found = listed()
    wanted = [choose(int(d) if d.isdecimal() else d, None, 0.0) for d in devices if d != "all"]
    if "all" in devices:
        wanted = found
    elif not wanted:
        wanted = [choose(None, None, float("inf"))]
    rows = device_rows()
    indices = dict.fromkeys(found.index(device) for device in wanted)
    return [asdict(rows[i]) | _more(found[i]) for i in indices]


def _more(device: Any) -> dict[str, Any]:
    return {
        "version": device.version,
        "platform_version": device.platform.version,
        "denormals": bool(device.single_fp_config & 1),  # CL_FP_DENORM
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """Return the processor's name as Linux tells it, or else what Python knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), sys.platform)
