"""The OpenCL devices of this machine, described."""

from dataclasses import dataclass
from math import inf

from litecl.delegate import disk
from litecl.delegate.backend.protocols import FoundDevice
from litecl.delegate.devices import choose, devices
from litecl.delegate.tuning import load
from litecl.interpreter.errors import KernelBuildError


@dataclass(frozen=True)
class DeviceRow:
    """A device. ``index`` is what ``CLDelegate(device=...)`` takes; ``vector_width`` counts floats in kernels.

    processor: what a CPU device of PoCL compiles for, in LLVM's words. float64: whether its kernels compute in it.
    problem: why it can build no kernel at all, if so; ``vector_width`` is then 0. version, platform_version: of OpenCL,
        as the device and its platform tell it, often with the compiler's.
    default_for: "small models", "large models" or both where litecl takes it unasked. speed: operations a second that
        ``litecl devices --tuning`` measured, 0 if it did not.
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
    speed: float


def device_rows() -> tuple[DeviceRow, ...]:
    """Return every device of every platform. Raises DelegateError where there is none."""
    folder = disk.default_folder()
    tuned = lambda found: load(folder, found.identity)  # noqa: E731
    sizes = {"small models": 0.0, "large models": inf}
    defaults = {name: choose(flops=flops, tuned=tuned, directory=folder) for name, flops in sizes.items()}
    return tuple(
        _row(index, device, tuple(size for size, chosen in defaults.items() if chosen == device))
        for index, device in enumerate(devices())
    )


def _row(index: int, found: FoundDevice, default_for: tuple[str, ...]) -> DeviceRow:
    try:
        target, problem = found.target(), None
    except KernelBuildError as error:
        target, problem = None, str(error).splitlines()[0]
    facts = found.describe()
    return DeviceRow(
        index=index,
        name=found.name,
        platform=facts.platform,
        driver=facts.driver,
        type=facts.type,
        compute_units=facts.compute_units,
        vector_width=target.vector_width if target else 0,
        memory_bytes=facts.memory_bytes,
        max_buffer_bytes=facts.max_buffer_bytes,
        default_for=default_for,
        processor=facts.processor,
        float64=bool(target and target.float64),
        problem=problem,
        version=facts.version,
        platform_version=facts.platform_version,
        speed=load(disk.default_folder(), found.identity).speed,
    )
