"""The identity of an OpenCL device, part of the names of its cached files."""

from typing import Any

from litecl.delegate.opencl.processor import features, name_processor


def identity(device: Any) -> tuple[str, ...]:
    """Return texts about a pyopencl device that differ for any other platform, device, driver or processor.

    Several kinds of virtual processors share a name, so their instruction sets are included, and so is the processor
    name that the device's compiler uses.
    """
    platform = device.platform
    named = (platform.name, platform.version, device.name, device.driver_version, device.version)
    return (*named, name_processor(device) or "", *sorted(features()))
