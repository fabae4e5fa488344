"""The properties of a GPU, as its driver reports them."""

import ctypes
from collections.abc import Mapping
from typing import Any

from litecl.delegate.gpu.properties import Gpu, Vendor
from litecl.delegate.opencl.unlocked import native

# Fragments of vendors' names, with the vendor and the default number of work-items that run in lockstep.
_VENDORS: Mapping[str, tuple[Vendor, int]] = {
    "nvidia": ("nvidia", 32),
    "advanced micro devices": ("amd", 64),
    "amd": ("amd", 64),
    "intel": ("intel", 8),
    "arm": ("arm", 16),
    "qualcomm": ("qualcomm", 64),
}
_SUBGROUPS = {"nvidia": "warp_size_nv", "amd": "wavefront_width_amd"}
_SIZES_INTEL, _MOST_SIZES = 0x4108, 8  # CL_DEVICE_SUB_GROUP_SIZES_INTEL, which pyopencl lacks
_device_info = native(ctypes.CDLL, "clGetDeviceInfo")
_EXTENSION_SIZES = "cl_intel_required_subgroup_size"


def gpu_of(device: Any) -> Gpu:
    """Return the properties of a GPU, a pyopencl device. Unreported features count as missing.

    Dot products of bytes are probed instead (``capabilities``).
    """
    known = (of for fragment, of in _VENDORS.items() if fragment in device.vendor.lower())
    vendor, subgroup = next(known, ("other", 32))
    return Gpu(
        vendor,
        _fewest(device) or subgroup if vendor == "intel" else _asked(device, _SUBGROUPS.get(vendor, ""), subgroup),
        integrated=bool(device.host_unified_memory),
    )


def _fewest(device: Any) -> int:
    """Return an Intel GPU's smallest sub-group size; 0 if its driver doesn't report it."""
    sizes, size = (ctypes.c_size_t * _MOST_SIZES)(), ctypes.c_size_t()
    if _device_info is None or _EXTENSION_SIZES not in device.extensions.split():
        return 0
    room = ctypes.c_size_t(ctypes.sizeof(sizes))
    status = _device_info(ctypes.c_void_p(device.int_ptr), _SIZES_INTEL, room, sizes, ctypes.byref(size))
    return 0 if status else min(sizes[: size.value // ctypes.sizeof(ctypes.c_size_t)], default=0)


def _asked(device: Any, name: str, otherwise: int) -> int:
    """Return a property of a driver's extension, or else the default."""
    try:
        return int(getattr(device, name)) or otherwise
    except Exception:  # pyopencl raises various errors for unknown properties
        return otherwise
