"""Describes this machine's devices."""

from collections.abc import Sequence
from math import inf

from litecl.delegate import disk
from litecl.delegate.backend.protocols import FoundDevice
from litecl.delegate.devices import choose, devices
from litecl.delegate.tuning import load
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import KernelBuildError


@dataclass(frozen=True)
class DeviceRow:
    """A device. index: for ``CLDelegate(device=...)``. vector_width: floats per vector in kernels.

    processor: the LLVM target of a PoCL CPU device. float64: whether its kernels can compute in it.
    problem: why it can't compile any kernel, if so; ``vector_width`` is then 0. version, platform_version: of OpenCL,
        as the device and its platform report it, often with the compiler's.
    default_for: the models for which litecl uses it by default: "small models", "large models", with "of integers" if
        another device is used for floats. float_speed, integer_speed: operations per second measured by
        ``litecl devices --tuning``, 0 if not measured.
    own_memory: whether a GPU has its own memory; None for other devices.
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
    float_speed: float
    integer_speed: float
    own_memory: bool | None


def device_rows() -> tuple[DeviceRow, ...]:
    """Return every device of every platform. Raises DelegateError if there is none."""
    folder = disk.folder("auto")
    tuned = lambda candidate: load(folder, candidate.identity)  # noqa: E731
    sizes = {"small models": 0.0, "large models": inf}
    chosen = [
        (f"{size}{kind}", choose(flops=flops, tuned=tuned, directory=folder, integers=bool(kind)))
        for kind in ("", " of integers")
        for size, flops in sizes.items()
    ]
    return tuple(_row(index, device, _default_for(chosen, device)) for index, device in enumerate(devices(folder)))


def index_of(wanted: str) -> int:
    """Return the index of the device that a user names, as chosen for large models. Raises DeviceNotFound."""
    folder = disk.default_folder()
    chosen = choose(int(wanted) if wanted.isdecimal() else wanted, flops=inf, directory=folder)
    return next(index for index, device in enumerate(devices(folder)) if device.identity == chosen.identity)


def _default_for(chosen: Sequence[tuple[str, FoundDevice]], device: FoundDevice) -> tuple[str, ...]:
    """Return the models for which a device is chosen. Integers are listed only if floats go to another device."""
    names = [name for name, default in chosen if default.identity == device.identity]
    return tuple(name for name in names if name.removesuffix(" of integers") not in names or " of " not in name)


def _row(index: int, device: FoundDevice, default_for: tuple[str, ...]) -> DeviceRow:
    try:
        target, problem = device.target(), None
    except KernelBuildError as error:
        target, problem = None, str(error).splitlines()[0]
    facts, measured = device.describe(), load(disk.folder("auto"), device.identity)
    return DeviceRow(
        index=index,
        name=device.name,
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
        float_speed=measured.float_speed,
        integer_speed=measured.integer_speed,
        own_memory=None if target is None else {"own": True, "integrated": False}.get(target.memory),
    )
