"""The OpenCL devices of this machine, described."""

from dataclasses import dataclass
from typing import Any

from litecl.delegate.opencl.device import choose, devices, target_of
from litecl.delegate.processor import name_processor
from litecl.interpreter.errors import KernelBuildError

# CL_DEVICE_TYPE_* of the OpenCL specification.
_TYPES = {1 << 1: "CPU", 1 << 2: "GPU", 1 << 3: "accelerator"}


@dataclass(frozen=True)
class DeviceRow:
    """A device. ``index`` is what ``CLDelegate(device=...)`` takes; ``vector_width`` counts floats in kernels.

    processor: what a CPU device of PoCL compiles for, in LLVM's words. float64: whether its kernels compute in it.
    problem: why it can build no kernel at all, if so; ``vector_width`` is then 0. version, platform_version: of OpenCL,
        as the device and its platform tell it, often with the compiler's.
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
    processor: str | None
    float64: bool
    problem: str | None
    version: str
    platform_version: str


def device_rows() -> tuple[DeviceRow, ...]:
    """Every device of every platform. Raises DelegateError where there is none."""
    defaults = {"small models": choose(None, None, 0.0), "large models": choose(None, None, float("inf"))}
    return tuple(
        _row(index, device, tuple(size for size, chosen in defaults.items() if chosen == device))
        for index, device in enumerate(devices())
    )


def _row(index: int, device: Any, default_for: tuple[str, ...]) -> DeviceRow:
    try:
        target, problem = target_of(device), None
    except KernelBuildError as error:
        target, problem = None, str(error).splitlines()[0]
    return DeviceRow(
        index=index,
        name=device.name,
        platform=device.platform.name,
        driver=device.driver_version,
        type=_type(device),
        compute_units=device.max_compute_units,
        vector_width=target.vector_width if target else 0,
        memory_bytes=device.global_mem_size,
        max_buffer_bytes=device.max_mem_alloc_size,
        default_for=default_for,
        processor=name_processor(device),
        float64=bool(target and target.float64),
        problem=problem,
        version=device.version,
        platform_version=device.platform.version,
    )


def _type(device: Any) -> str:
    return next((name for bit, name in _TYPES.items() if device.type & bit), "other")
