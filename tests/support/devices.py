"""The OpenCL devices that tests run on."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyopencl as cl
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate import devices as open_devices
from litecl.delegate.gpu.properties import Gpu
from litecl.delegate.native.backend import Native
from litecl.delegate.opencl.devices import device
from litecl.delegate.opencl.devices.device import devices
from support.as_gpu import as_gpu

UNITS = {"large tiles": 1, "small tiles": 9, "parts": 132}
FEW_SUMS = "few sums"  # of a work-item, as Intel's and Arm's GPUs have registers for


def tested() -> list[Any]:
    """Return every OpenCL device except PoCL's single-threaded twin of its CPU device."""
    return [device for device in devices() if not device.name.startswith(("basic", "cpu-minimal"))]


def with_native() -> list[Any]:
    """Return every OpenCL device, and the processor's own back end if there is a compiler for it."""
    return [*tested(), *(["native"] if Native().devices() else [])]


def named(device: Any) -> str:
    """Return a device's name, for the names of tests."""
    return device if isinstance(device, str) else "cpu" if device is None else str(device.name)


on_each = pytest.mark.parametrize("device", with_native(), ids=named)
on_each_and_the_cpu = pytest.mark.parametrize("device", [None, *with_native()], ids=named)


def delegates(device: Any, **options: Any) -> list[CLDelegate]:
    """Return the delegates to run on a device of ``on_each_and_the_cpu``: none for None, the CPU."""
    return [] if device is None else [CLDelegate(device, **options)]


def several_threads() -> Any:
    """Return the CPU device that uses all threads."""
    return next(listed for listed in tested() if device.needs_threads(listed) and listed.type & cl.device_type.CPU)


def calling_thread() -> Any:
    """Return PoCL's device that runs kernels in the thread that queues them, else the device that uses all threads."""
    return next((listed for listed in devices() if not device.needs_threads(listed)), None) or several_threads()


def as_on_a_gpu(patch: pytest.MonkeyPatch, cache_dir: Path) -> dict[str, Any]:
    """Return options of a delegate for which the first device is a GPU, opened once for its folder.

    Programs are compiled without optimizations, in a tenth of the time: these tests are about the distribution of work,
    and a CPU's code for a loop over the work-items of a group says nothing about a GPU's.
    """
    for name, value in as_gpu().items():
        patch.setattr(device, name, value)
    patch.setattr(open_devices, "_DEVICES", {})  # whatever else is opened meanwhile is taken for a GPU too
    patch.setenv("PYOPENCL_BUILD_OPTIONS", os.environ.get("PYOPENCL_BUILD_OPTIONS", "-cl-opt-disable"))
    return {"device": tested()[0], "cache_dir": cache_dir}


def as_on_an_integrated_gpu(patch: pytest.MonkeyPatch, cache_dir: Path, *, has_svm: bool) -> dict[str, Any]:
    """Return the same for a GPU in the host's memory. has_svm: whether its driver reports fine-grained sharing."""
    options, target = as_on_a_gpu(patch, cache_dir), device.target_of
    patch.setattr(device, "target_of", lambda *args: replace(target(*args), gpu=Gpu(integrated=True)))
    if not has_svm:
        patch.setattr(device, "_has_fine_grained_svm", lambda opened: False)
    return options


def needs_groups() -> None:
    """Skip a test of launches by one group if the CPU's compiler crashes on them."""
    if "PoCL 7" in tested()[0].platform.version:
        pytest.skip("PoCL 7 kills the process when it compiles barriers in such loops for a CPU")


def needs_cells(case: object) -> None:
    """Skip such a case of a recurrent operator, whose groups wait at every step."""
    if "LSTM" in repr(case) or "RNN" in repr(case):
        needs_groups()


@contextmanager
def in_tiles(kind: str, cache_dir: Path) -> Iterator[dict[str, Any]]:
    """Yield options of delegates for a GPU that cuts products into tiles of one kind: of ``UNITS``, or ``FEW_SUMS``."""
    with pytest.MonkeyPatch.context() as patch:
        options = as_on_a_gpu(patch, cache_dir)
        target, units = device.target_of, UNITS.get(kind, 1)
        gpu = Gpu("intel", 8) if kind == FEW_SUMS else Gpu()
        patch.setattr(device, "target_of", lambda *args: replace(target(*args), compute_units=units, gpu=gpu))
        yield options | {"strict": True}
