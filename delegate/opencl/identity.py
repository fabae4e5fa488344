"""What tells OpenCL devices apart, in the names of files that are kept about them."""

from typing import Any

from litecl.delegate.opencl.processor import features, name_processor


def identity(device: Any) -> tuple[str, ...]:
    """Return texts about a pyopencl device: another platform, device, driver or processor has others.

    Virtual processors of several kinds share a name, so what they can do is part of it, and so is the name by which the
    device's compiler goes.
    """
    platform = device.platform
    named = (platform.name, platform.version, device.name, device.driver_version, device.version)
    return (*named, name_processor(device) or "", *sorted(features()))
