"""Chooses and opens OpenCL devices, and provides regions with queues and buffers. Shared data is locked."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from litecl.delegate.backend import fork
from litecl.delegate.backend.errors import NoRuntime
from litecl.delegate.backend.stack import on_ample_stack
from litecl.delegate.cl_op import Target
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.naming import advice
from litecl.delegate.opencl.devices.programs import Programs
from litecl.delegate.opencl.devices.runtimes import builds, preferred
from litecl.delegate.opencl.environment import POCL, names_devices, set_environment
from litecl.delegate.opencl.errors import typed_errors
from litecl.delegate.opencl.identity import identity
from litecl.delegate.opencl.probes.capabilities import capabilities, context_of
from litecl.delegate.tuning import Demand, Tuning
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import DelegateError, OutOfDeviceMemory
from litecl.interpreter.graph import Array

# PoCL's device that runs in the calling thread, and the one that uses all cores: names before version 4, and since.
_SINGLE, _ALL = ("basic", "cpu-minimal"), ("pthread", "cpu")
_NO_PLATFORM = "PLATFORM_NOT_FOUND"  # the ICD loader's error if no driver is installed
_sub_devices: dict[tuple[int, int], Any] = {}
_listing = fork.Section()  # one thread at a time lists devices, opens them and makes sub-devices


@on_ample_stack
def devices(*, gpus: bool | None = None) -> list[Any]:
    """Return every OpenCL device of every platform, or only GPUs, or all but GPUs.

    Raises DelegateError if OpenCL is missing or lost.
    """
    with _listing.lock:
        set_environment()
        fork.opened()
        try:
            with typed_errors("no OpenCL platform"):
                platforms = cl.get_platforms()
        except DelegateError as error:
            kind = NoRuntime if _NO_PLATFORM in str(error) else type(error)
            raise kind(f"{error}. {advice()}") from error
        with typed_errors("listing the OpenCL devices"):
            found = [device for platform in platforms for device in _devices_of(platform, gpus)]
    return [device for device in found if gpus is None or is_gpu(device) == gpus]


def _devices_of(platform: Any, gpus: bool | None) -> list[Any]:
    """Return a platform's devices. PoCL has GPUs only if the user chose its devices; asking starts threads."""
    if gpus and platform.name == POCL and not names_devices():
        return []
    return list(platform.get_devices())


def is_gpu(device: Any) -> bool:
    """Return whether a pyopencl device is a GPU."""
    return bool(device.type & cl.device_type.GPU)


def gpus(found: Sequence[Any]) -> list[Any]:
    """Return GPUs in order of preference, discrete ones first."""
    kept = [device for device in found if not fork.lost(_Needs(needs_threads(device)))]
    return sorted(kept or found, key=lambda gpu: bool(gpu.host_unified_memory))


def processors(
    found: Sequence[Any], demand: Demand, tuned: Callable[[Any], Tuning], directory: Path | None = None
) -> Iterator[Any]:
    """Yield the device that suits a model, CPUs first, then alternatives.

    demand: the model's. tuned: returns a device's tuning. directory: the cache of facts about devices. Raises
    DelegateError if there is no device.
    """
    left = list(found)
    if not left:
        raise DelegateError(f"no OpenCL device. {advice()}")
    while left:
        kept = [device for device in left if not fork.lost(_Needs(needs_threads(device)))] or left
        cpus = [device for device in kept if device.type & cl.device_type.CPU] or kept
        whole = _cpu(cpus, demand, tuned, directory)
        yield _part_of(whole, demand.num_threads)
        left.remove(whole)


class _Needs(NamedTuple):
    """A device's needs, for fork.py."""

    needs_threads: bool
    needs_runtime: bool = True


def _cpu(cpus: Sequence[Any], demand: Demand, tuned: Callable[[Any], Tuning], directory: Path | None) -> Any:
    """Return the device of the best runtime; for one thread a single-threaded one, of another runtime if need be."""
    found = preferred(cpus, demand, tuned, directory)
    several = (device for device in found if device.name.startswith(_ALL) and not device.name.startswith(_SINGLE))
    chosen = next(several, found[0])
    if demand.num_threads != 1 and (demand.num_threads is not None or demand.flops >= tuned(chosen).small_flops):
        return chosen
    single = [device for device in found if device.name.startswith(_SINGLE)]
    elsewhere = (d for d in cpus if d.name.startswith(_SINGLE) and builds(d, directory))
    return single[0] if single else next(elsewhere, found[0])


def _part_of(device: Any, num_threads: int | None) -> Any:
    """Return the device, or a sub-device for fewer threads, created once, since each has its own programs.

    A device that can't be partitioned (PoCL 7.1's) is used whole.
    """
    if num_threads is None or not 1 < num_threads < device.max_compute_units:
        return device
    by_counts = cl.device_partition_property.BY_COUNTS
    if by_counts not in device.partition_properties:
        return device
    key = device.int_ptr, num_threads
    with _listing.lock:
        if key not in _sub_devices:
            _sub_devices[key] = device.create_sub_devices([by_counts, num_threads])[0]
        return _sub_devices[key]


def needs_threads(device: Any) -> bool:
    """Return whether a pyopencl device runs kernels in its own threads, unlike PoCL's single-threaded one."""
    return not device.name.startswith(_SINGLE)


def target_of(device: Any, directory: Path | None = None) -> Target:
    """Return the device properties that a lowering may use. directory: the cache of facts about devices.

    Raises KernelBuildError if the device's compiler doesn't work.
    """
    able = capabilities(device, directory)
    of_both = device.max_compute_units, able.float64, device.max_work_group_size, device.local_mem_size
    if is_gpu(device):
        from litecl.delegate.gpu.target import GpuTarget  # a process without a GPU loads nothing that serves one
        from litecl.delegate.opencl.probes.gpu import gpu_of

        return GpuTarget(4, *of_both, gpu=replace(gpu_of(device), integer_dot=able.dots))
    return CpuTarget(able.vector_width(device.native_vector_width_float), *of_both)


def _has_fine_grained_svm(device: Any) -> bool:
    """Return whether the driver reports fine-grained shared memory; before OpenCL 2.0 it can't."""
    if int(device.version.split()[1].split(".")[0]) < 2:
        return False
    return bool(device.svm_capabilities & cl.device_svm_capabilities.FINE_GRAIN_BUFFER)


class _SharedBytes:
    """An SVM allocation as an array, kept alive by it."""

    def __init__(self, allocation: Any, size_bytes: int) -> None:
        self._allocation = allocation
        self.__array_interface__ = {
            "data": (allocation.svm_ptr, False),
            "shape": (size_bytes,),
            "typestr": "|u1",
            "version": 3,
        }


@dataclass
class Device:
    """A device with its context, a queue and programs. Models share the context and programs, but not queues.

    cache_dir: the cache of program binaries, or None. given: the user's context to use, if any. alignment: of a
    sub-buffer's origin, in bytes. has_svm: whether the driver reports fine-grained shared memory. Raises DelegateError.
    """

    device: Any
    profile: bool
    cache_dir: Path | None
    given: Any = None
    name: str = field(init=False)
    identity: tuple[str, ...] = field(init=False)
    alignment: int = field(init=False)
    needs_runtime: bool = field(init=False, default=True)
    needs_threads: bool = field(init=False)
    context: Any = field(init=False)
    queue: Any = field(init=False)
    target: Target = field(init=False)
    has_svm: bool = field(init=False)
    programs: Programs = field(init=False)

    @on_ample_stack
    def __post_init__(self) -> None:
        with _listing.lock, typed_errors("opening a device"):
            self._open()

    def _open(self) -> None:
        self.name = str(self.device.name)
        self.identity = identity(self.device)
        self.needs_threads = needs_threads(self.device)
        fork.opened()
        self.alignment = max(64, int(self.device.mem_base_addr_align) // 8)
        self.target = target_of(self.device, self.cache_dir)
        self.has_svm = _has_fine_grained_svm(self.device)
        self.context = self.given or context_of(self.device)
        self.queue = self._new_queue()
        macros = self.target.macros
        if capabilities(self.device, self.cache_dir).assembly:
            macros["LITECL_ASSEMBLY"] = 1
        self.programs = Programs(self.context, self.device, macros, self.cache_dir)

    @property
    def shares_memory(self) -> bool:
        """Return whether the device is a CPU whose memory the host accesses in place."""
        return self.target.memory == "host" and self.has_svm

    @property
    def is_integrated(self) -> bool:
        """Return whether the device is a GPU that uses the host's memory."""
        return self.target.memory == "integrated"

    @property
    def has_own_memory(self) -> bool:
        """Return whether the device is a GPU with its own memory."""
        return self.target.memory == "own"

    def with_own_queue(self) -> "Device":
        """Return the same device with a new queue, so that a region doesn't wait for others."""
        other = copy.copy(self)
        other.queue = self._new_queue()
        return other

    def _new_queue(self) -> Any:
        flags = cl.command_queue_properties.PROFILING_ENABLE if self.profile else 0
        return cl.CommandQueue(self.context, self.device, properties=flags)

    def shared_buffer(self, size_bytes: int) -> tuple[Any, Array | None]:
        """Allocate device memory; return it and its host view, None if it isn't shared. Raises OutOfDeviceMemory."""
        return self.svm_buffer(size_bytes) if self.shares_memory else (self.buffer(size_bytes), None)

    def svm_buffer(self, size_bytes: int) -> tuple[Any, Array]:
        """Allocate fine-grained shared virtual memory; return it and its host view. Raises OutOfDeviceMemory."""
        flags = cl.svm_mem_flags.READ_WRITE | cl.svm_mem_flags.SVM_FINE_GRAIN_BUFFER
        with typed_errors(f"allocating {size_bytes} bytes"):
            shared = cl.SVMAllocation(self.context, max(1, size_bytes), self.alignment, flags)
            host = np.asarray(_SharedBytes(shared, max(1, size_bytes)))
            use = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
            return cl.Buffer(self.context, use, hostbuf=host), host

    def buffer(self, size_bytes: int, flags: int = 0) -> Any:
        """Allocate device memory. Raises OutOfDeviceMemory."""
        limit = int(self.device.max_mem_alloc_size)
        if size_bytes > limit:
            raise OutOfDeviceMemory(f"a buffer of {size_bytes} bytes; {self.name} allows {limit} at most")
        with typed_errors(f"allocating {size_bytes} bytes"):
            return cl.Buffer(self.context, cl.mem_flags.READ_WRITE | flags, size=max(1, size_bytes))
