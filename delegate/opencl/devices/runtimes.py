"""Chooses among several OpenCL runtimes for one processor: the fastest, as measured or expected."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from litecl.delegate.opencl.environment import POCL
from litecl.delegate.opencl.probes.capabilities import capabilities
from litecl.delegate.tuning import Demand, Tuning
from litecl.interpreter.errors import KernelBuildError


def preferred(
    cpus: Sequence[Any], demand: Demand, tuned: Callable[[Any], Tuning], directory: Path | None
) -> Sequence[Any]:
    """Return the CPU devices of the preferred runtime; PoCL has one for a single thread and one for all threads.

    If ``litecl devices --tuning`` measured every runtime, the fastest for such models wins. Otherwise the order is:
    widest vectors, then byte dot products in one instruction, then PoCL, which compiles much faster than Intel's.
    """
    runtimes: dict[Any, list[Any]] = {}
    for device in cpus:
        runtimes.setdefault(device.platform, []).append(device)
    if len(runtimes) < 2:
        return cpus
    largest = [max(runtime, key=lambda device: int(device.max_compute_units)) for runtime in runtimes.values()]
    tunings = [tuned(device) for device in largest]
    speeds = [tuning.integer_speed if demand.integers else tuning.float_speed for tuning in tunings]
    ranks: Sequence[Any] = speeds if all(speeds) else [_expected(device, directory) for device in largest]
    return [*runtimes.values()][ranks.index(max(ranks))]


def builds(device: Any, directory: Path | None) -> bool:
    """Return whether a device's compiler works."""
    return _expected(device, directory)[0] > 0


def _expected(device: Any, directory: Path | None) -> tuple[int, bool, bool]:
    """Return a device's rank by what its compiler uses of the processor; lowest if the compiler doesn't work."""
    is_pocl = device.platform.name == POCL
    try:
        able = capabilities(device, directory)
    except KernelBuildError:
        return 0, False, is_pocl
    return able.vector_width(device.native_vector_width_float), able.multiplies_bytes, is_pocl
