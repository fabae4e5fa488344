"""An OpenCL device: choosing one, and building programs for it with a cache of binaries on disk."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.capabilities import capabilities
from litecl.delegate.cl_op import Target
from litecl.delegate.programs import Programs
from litecl.delegate.tuning import Tuning
from litecl.interpreter.errors import DelegateError, KernelBuildError, OutOfDeviceMemory
from litecl.interpreter.graph import Array

# PoCL's device that runs in the calling thread, and the one that uses every core, before and from version 4 on.
_SINGLE, _ALL = ("basic", "cpu-minimal"), ("pthread", "cpu")
_sub_devices: dict[tuple[int, int], Any] = {}
_OUT_OF_MEMORY = {
    cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
    cl.status_code.OUT_OF_RESOURCES,
    cl.status_code.OUT_OF_HOST_MEMORY,
    cl.status_code.INVALID_BUFFER_SIZE,
}


def devices() -> list[Any]:
    """Every OpenCL device of every platform. Raises DelegateError where there is no OpenCL at all."""
    # PoCL shows its single-threaded device only when asked, and reads the environment once.
    os.environ.setdefault("POCL_DEVICES", "pthread basic")
    try:
        return [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error as error:
        raise DelegateError(f"no OpenCL platform: {error}") from error


def choose(
    wanted: Any,
    num_threads: int | None,
    work_flops: float,
    tuned: Callable[[Any], Tuning] = lambda device: Tuning(),
    directory: Path | None = None,
) -> Any:
    """Return the device for a model.

    wanted: a pyopencl Device, an index into ``devices()``, a fragment of a name, or None for a GPU if there is one and
    else the CPU device that suits ``num_threads`` and a model of ``work_flops`` arithmetic operations an invoke; a
    device whose compiler can build nothing is passed over. tuned: the tuning of a device. directory: where what is
    found out about a device is kept.

    Raises DelegateError where there is no such device, KernelBuildError where no device can build anything.
    """
    if isinstance(wanted, cl.Device):
        return wanted
    found = devices()
    names = [device.name for device in found]
    if isinstance(wanted, int):
        if not 0 <= wanted < len(found):
            raise DelegateError(f"device {wanted} out of range; there are {len(found)}: {names}")
        return found[wanted]
    if wanted is not None:
        matches = [device for device in found if wanted.lower() in device.name.lower()]
        if not matches:
            raise DelegateError(f"no device is named {wanted!r}; there are: {names}")
        return matches[0]
    if not found:
        raise DelegateError("no OpenCL device")
    return _working(found, lambda able: _suited(able, num_threads, work_flops, tuned), directory)


def _working(found: list[Any], pick: Callable[[list[Any]], Any], directory: Path | None) -> Any:
    """The first device that is picked and can build kernels; those that cannot are left out of the next choice."""
    errors: list[KernelBuildError] = []
    while found:
        device = pick(found)
        try:
            capabilities(device, directory)
        except KernelBuildError as error:
            errors.append(error)
            found = [other for other in found if other not in (device, device.parent_device)]
        else:
            return device
    raise errors[0]


def _suited(
    found: list[Any], num_threads: int | None, work_flops: float, tuned: Callable[[Any], Tuning]
) -> Any:
    gpus = [device for device in found if device.type & cl.device_type.GPU]
    return gpus[0] if gpus else _cpu(found, num_threads, work_flops, tuned)


def _cpu(found: list[Any], num_threads: int | None, work_flops: float, tuned: Callable[[Any], Tuning]) -> Any:
    single = next((device for device in found if device.name.startswith(_SINGLE)), found[0])
    several = (device for device in found if device.name.startswith(_ALL) and not device.name.startswith(_SINGLE))
    chosen = next(several, found[0])
    if num_threads == 1 or (num_threads is None and work_flops < tuned(chosen).small_flops):
        return single
    if num_threads is not None and 1 < num_threads < chosen.max_compute_units:
        return _part_of(chosen, num_threads)
    return chosen


def _part_of(device: Any, num_threads: int) -> Any:
    """A sub-device of so many threads, made once: every one made has programs and a queue of its own."""
    key = device.int_ptr, num_threads
    if key not in _sub_devices:
        by_counts = cl.device_partition_property.BY_COUNTS
        _sub_devices[key] = device.create_sub_devices([by_counts, num_threads])[0]
    return _sub_devices[key]


def target_of(device: Any, directory: Path | None = None) -> Target:
    """Return what a lowering may know of a device. directory: where what was found out about it is kept.

    Raises KernelBuildError where the device's compiler can build nothing.
    """
    gpu = bool(device.type & cl.device_type.GPU)
    able = capabilities(device, directory)
    return Target(
        kind="gpu" if gpu else "cpu",
        vector_width=4 if gpu else able.vector_width(device.native_vector_width_float),
        compute_units=device.max_compute_units,
        max_work_group_size=device.max_work_group_size,
        local_mem_bytes=device.local_mem_size,
        float64=able.float64,
    )


class typed_errors:  # noqa: N801  it is used as a function is
    """Turns OpenCL's errors into ours, saying what was being done. A class, which costs a run less than a generator."""

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if not isinstance(error, cl.Error):
            return
        out_of_memory = isinstance(error, cl.MemoryError) or error.code in _OUT_OF_MEMORY
        raise (OutOfDeviceMemory if out_of_memory else DelegateError)(f"{self._doing}: {error}") from error


class _SharedBytes:
    """What numpy makes an array of, and what keeps the memory for as long as there is one."""

    def __init__(self, allocation: Any, size_bytes: int) -> None:
        self._allocation = allocation
        self.__array_interface__ = {
            "data": (allocation.svm_ptr, False), "shape": (size_bytes,), "typestr": "|u1", "version": 3,
        }


@dataclass
class Device:
    """A device with its context, queue and programs. Built once for every set of options, shared by models.

    cache_dir: where program binaries are kept, or None for nowhere.
    """

    device: Any
    profile: bool
    cache_dir: Path | None
    context: Any = field(init=False)
    queue: Any = field(init=False)
    target: Target = field(init=False)
    programs: Programs = field(init=False)

    def __post_init__(self) -> None:
        with typed_errors(f"opening {self.device.name}"):
            self.context = cl.Context([self.device])
            flags = cl.command_queue_properties.PROFILING_ENABLE if self.profile else 0
            self.queue = cl.CommandQueue(self.context, self.device, properties=flags)
        self.target = target_of(self.device, self.cache_dir)
        macros = {"VW": self.target.vector_width, f"LITECL_{self.target.kind.upper()}": 1}
        if capabilities(self.device, self.cache_dir).assembly:
            macros["LITECL_ASSEMBLY"] = 1
        self.programs = Programs(self.context, self.device, macros, self.cache_dir)

    @property
    def name(self) -> str:
        """The name that the OpenCL platform gives the device."""
        return str(self.device.name)

    @property
    def alignment(self) -> int:
        """Alignment of a sub-buffer's origin, in bytes."""
        return max(64, int(self.device.mem_base_addr_align) // 8)

    def shared_buffer(self, size_bytes: int) -> tuple[Any, Array | None]:
        """Device memory, and the same memory as bytes of the host where the device shares it (fine-grained SVM).

        Raises OutOfDeviceMemory.
        """
        if not self._shares_memory:
            return self.buffer(size_bytes), None
        flags = cl.svm_mem_flags.READ_WRITE | cl.svm_mem_flags.SVM_FINE_GRAIN_BUFFER
        with typed_errors(f"allocating {size_bytes} bytes"):
            shared = cl.SVMAllocation(self.context, max(1, size_bytes), self.alignment, flags)
            host = np.asarray(_SharedBytes(shared, max(1, size_bytes)))
            use = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
            return cl.Buffer(self.context, use, hostbuf=host), host

    @property
    def _shares_memory(self) -> bool:
        if self.target.kind != "cpu":
            return False
        try:
            return bool(self.device.svm_capabilities & cl.device_svm_capabilities.FINE_GRAIN_BUFFER)
        except cl.Error:  # before OpenCL 2.0
            return False

    def buffer(self, size_bytes: int) -> Any:
        """Device memory. Raises OutOfDeviceMemory."""
        limit = int(self.device.max_mem_alloc_size)
        if size_bytes > limit:
            raise OutOfDeviceMemory(f"a buffer of {size_bytes} bytes; {self.name} allows {limit} at most")
        with typed_errors(f"allocating {size_bytes} bytes"):
            return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size=max(1, size_bytes))
