"""The properties of a GPU, by what its driver says of it."""

import ctypes
from collections.abc import Mapping
from typing import Any

from litecl.delegate.gpu.properties import MATRIX_UNITS, Gpu, MatrixUnit, Vendor
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
_AMD = ("advanced micro devices", "amd")
_AMD_MATRIX = {"gfx908": "mfma", "gfx90a": "mfma", "gfx94": "mfma", "gfx95": "mfma", "gfx11": "wmma"}
_NVIDIA_MATRIX = (8, 0)  # compute capability
_EXTENSION_SIZES = "cl_intel_required_subgroup_size"
_INTEL_MATRIX = "cl_intel_subgroup_matrix_multiply_accumulate"


def gpu_of(device: Any) -> Gpu:
    """Return the properties of a pyopencl device that is a GPU; a feature that its driver does not report counts as
    missing. Dot products of bytes, matrix units and halves are probed (``capabilities``).
    """
    found = (of for fragment, of in _VENDORS.items() if fragment in device.vendor.lower())
    vendor, subgroup = next(found, ("other", 32))
    return Gpu(
        vendor,
        _fewest(device) or subgroup if vendor == "intel" else _asked(device, _SUBGROUPS.get(vendor, ""), subgroup),
        integrated=bool(device.host_unified_memory),
    )


def matrix_of(device: Any) -> MatrixUnit | None:
    """Return the matrix unit that a pyopencl device should have (``matrix_probe`` tells whether kernels reach it)."""
    vendor = device.vendor.lower()
    if vendor.startswith("nvidia"):
        names = ("compute_capability_major_nv", "compute_capability_minor_nv")
        return MATRIX_UNITS["mma"] if tuple(_asked(device, name, 0) for name in names) >= _NVIDIA_MATRIX else None
    if vendor.startswith(_AMD):
        known = (unit for begin, unit in _AMD_MATRIX.items() if device.name.startswith(begin))
        return MATRIX_UNITS.get(next(known, ""))
    return MATRIX_UNITS.get(f"dpas of {_fewest(device)}") if _INTEL_MATRIX in device.extensions.split() else None


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
