"""The properties of a GPU, by what its driver says of it."""

import ctypes
from collections.abc import Mapping
from typing import Any

from litecl.delegate.gpu.properties import Gpu, Vendor
from litecl.delegate.opencl.unlocked import native

# Fragments of vendors' names, and the work-items that run in lockstep where the driver does not say how many.
_VENDORS: Mapping[str, tuple[Vendor, int]] = {
    "nvidia": ("nvidia", 32),
    "advanced micro devices": ("amd", 64),
    "amd": ("amd", 64),
    "intel": ("intel", 8),
    "arm": ("arm", 16),
    "qualcomm": ("qualcomm", 64),
}
_SUBGROUPS = {"nvidia": "warp_size_nv", "amd": "wavefront_width_amd"}
_SIZES_INTEL, _MOST_SIZES = 0x4108, 8  # CL_DEVICE_SUB_GROUP_SIZES_INTEL, which pyopencl does not know
_device_info = native(ctypes.CDLL, "clGetDeviceInfo")
_EXTENSION_SIZES = "cl_intel_required_subgroup_size"


def gpu_of(device: Any) -> Gpu:
    """Return the properties of a pyopencl device that is a GPU; a feature that its driver does not report counts as
    missing. Dot products of bytes are probed (``capabilities``).
    """
    found = (of for fragment, of in _VENDORS.items() if fragment in device.vendor.lower())
    vendor, subgroup = next(found, ("other", 32))
    return Gpu(
        vendor,
        _fewest(device) or subgroup if vendor == "intel" else _asked(device, _SUBGROUPS.get(vendor, ""), subgroup),
        integrated=bool(device.host_unified_memory),
    )


def _fewest(device: Any) -> int:
    """Return the fewest work-items that an Intel GPU runs in lockstep; 0 where its driver does not tell."""
    sizes, size = (ctypes.c_size_t * _MOST_SIZES)(), ctypes.c_size_t()
    if _device_info is None or _EXTENSION_SIZES not in device.extensions.split():
        return 0
    room = ctypes.c_size_t(ctypes.sizeof(sizes))
    status = _device_info(ctypes.c_void_p(device.int_ptr), _SIZES_INTEL, room, sizes, ctypes.byref(size))
    return 0 if status else min(sizes[: size.value // ctypes.sizeof(ctypes.c_size_t)], default=0)


def _asked(device: Any, name: str, otherwise: int) -> int:
    """Return what a driver's extension tells, if it does."""
    try:
        return int(getattr(device, name)) or otherwise
    except Exception:  # pyopencl's errors of many kinds, for what a driver does not know
        return otherwise
