"""The identity of an OpenCL device, part of the names of its cached files."""

import os
from typing import Any

from litecl.delegate.backend.cpu_features import seen_by_numpy

_OPTIONS = ("POCL_EXTRA_BUILD_FLAGS", "PYOPENCL_BUILD_OPTIONS")


def features() -> frozenset[str]:
    """Return the processor's instruction sets as numpy detects and names them (``cpuid``); empty if unknown."""
    return frozenset(name for name, there in seen_by_numpy().items() if there)


def identity(device: Any) -> tuple[str, ...]:
    """Return texts about a pyopencl device that differ for any other platform, device, driver or processor.

    Different virtual processors may share a name, so their instruction sets are included, and so are the user's build
    options for all programs.
    """
    platform = device.platform
    named = (platform.name, platform.version, device.name, device.driver_version, device.version)
    given = (f"{name}={options}" for name in _OPTIONS if (options := os.environ.get(name)))
    return (*named, *sorted(features()), *given)
