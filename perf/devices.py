"""The OpenCL devices of this machine, described."""

from dataclasses import dataclass
from typing import Any

from litecl.delegate.device import choose, devices, target_of

# CL_DEVICE_TYPE_* of the OpenCL specification.
_TYPES = {1 << 1: "CPU", 1 << 2: "GPU", 1 << 3: "accelerator"}


@dataclass(frozen=True)
class DeviceRow:
    """A device. ``index`` is what ``CLDelegate(device=...)`` takes; ``vector_width`` counts floats in kernels.

    default_for: "small models", "large models" or both where litecl takes it unasked.
    """

    index: int
    name: str
    platform: str
    driver: str
    type: str
    compute_units: int
    vector_width: int
    memory_bytes: int
    max_buffer_bytes: int
    default_for: tuple[str, ...]


def device_rows() -> tuple[DeviceRow, ...]:
    """Every device of every platform. Raises DelegateError where there is none."""
    defaults = {"small models": choose(None, None, 0.0), "large models": choose(None, None, float("inf"))}
    return tuple(
        DeviceRow(
            index=index,
            name=device.name,
            platform=device.platform.name,
            driver=device.driver_version,
            type=_type(device),
            compute_units=device.max_compute_units,
            vector_width=target_of(device).vector_width,
            memory_bytes=device.global_mem_size,
            max_buffer_bytes=device.max_mem_alloc_size,
            default_for=tuple(size for size, chosen in defaults.items() if chosen == device),
        )
        for index, device in enumerate(devices())
    )


def _type(device: Any) -> str:
    return next((name for bit, name in _TYPES.items() if device.type & bit), "other")
