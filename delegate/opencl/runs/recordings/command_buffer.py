"""Launches that are recorded once and queued by one call ever after, where a driver has ``cl_khr_command_buffer``.

pyopencl does not know the extension, so its functions are called through ctypes, which lets other threads run. All
versions of it, 0.9.0 to 1.0, have these functions with these parameters; in 0.9.5 other functions got one more.
"""

import ctypes
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import pyopencl as cl

from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.opencl.enqueue import BoundKernel, status_error
from litecl.delegate.opencl.errors import FAULTS, RUNNING, typed, typed_errors
from litecl.delegate.opencl.unlocked import Functions, extension_functions, native
from litecl.interpreter.dataclass import dataclass

EXTENSION = "cl_khr_command_buffer"
_MAJOR_BIT, _LAST_MAJOR = 22, 1  # of a version; another major one may have other parameters

_POINTER, _STATUS, _COUNT = ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint32
FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    # number of queues, queues, properties, status
    "clCreateCommandBufferKHR": (_POINTER, _COUNT, _POINTER, _POINTER, _POINTER),
    # buffer, queue, properties, kernel, dimensions, offsets, sizes, local sizes; points to wait for, the point, handle
    "clCommandNDRangeKernelKHR": (
        *(_STATUS, _POINTER, _POINTER, _POINTER, _POINTER, _COUNT, _POINTER, _POINTER, _POINTER),
        *(_COUNT, _POINTER, _POINTER, _POINTER),
    ),
    "clFinalizeCommandBufferKHR": (_STATUS, _POINTER),
    # number of queues, queues, buffer, events to wait for, event
    "clEnqueueCommandBufferKHR": (_STATUS, _COUNT, _POINTER, _POINTER, _COUNT, _POINTER, _POINTER),
    "clReleaseCommandBufferKHR": (_STATUS, _POINTER),
}
"""The result and the parameters of each function."""

_FLAGS, _OVERLAPPING = 0x1293, 1  # CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR
_ABLE, _TO_OVERLAP = 0x12A9, 4  # CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, ..._CAPABILITY_SIMULTANEOUS_USE_KHR

_device_info = native(ctypes.CDLL, "clGetDeviceInfo")


def is_listed(device: Any) -> bool:
    """Return whether a pyopencl device says that it has the extension, in a version whose parameters are known."""
    if EXTENSION not in device.extensions.split():
        return False
    with suppress(cl.Error, AttributeError):  # before OpenCL 3.0 versions are not told
        versions = [found.version for found in device.extensions_with_version if found.name == EXTENSION]
        return all(version >> _MAJOR_BIT <= _LAST_MAJOR for version in versions)
    return True


def functions_of(device: Any) -> Functions | None:
    """Return the functions of a pyopencl device's platform, by name; None where one is missing."""
    return extension_functions(device, FUNCTIONS)


def can_overlap(device: Any) -> bool:
    """Return whether a pyopencl device may have the same recording queued several times."""
    able, size = ctypes.c_uint64(), ctypes.c_size_t(8)
    if _device_info is None:
        return False
    status = _device_info(_POINTER(device.int_ptr), _ABLE, size, ctypes.byref(able), None)
    return not status and bool(able.value & _TO_OVERLAP)


class CommandBuffer:
    """Launches of one in-order queue, recorded. Raises DelegateError where the driver refuses.

    It runs them in order, with the arguments that they have now. overlapping: whether it is queued again before it has
    ended.
    """

    def __init__(
        self, device: Device, launches: Sequence[BoundKernel], functions: Functions, *, overlapping: bool = False
    ) -> None:
        self._functions, self._handle = functions, None
        self._properties = (ctypes.c_uint64 * 3)(_FLAGS, _OVERLAPPING, 0) if overlapping else None
        self._launches = launches  # which hold what the driver need not keep
        with typed_errors("recording launches"):
            self._handle = self._created(device.queue)
            for launch in launches:
                self._do("clCommandNDRangeKernelKHR", self._handle, None, None, *launch.recorded, 0, None, None, None)
            self._do("clFinalizeCommandBufferKHR", self._handle)
        self._call = 0, None, _POINTER(self._handle), 0, None, None

    def __len__(self) -> int:
        return len(self._launches)

    def __del__(self) -> None:
        if self._handle is not None:
            self._functions["clReleaseCommandBufferKHR"](self._handle)

    def enqueue(self) -> None:
        """Queue all launches. Raises DelegateError."""
        try:
            self._do("clEnqueueCommandBufferKHR", *self._call)
        except FAULTS as error:
            raise typed(error, RUNNING) from error

    def _created(self, queue: Any) -> Any:
        status, queues = _STATUS(), (_POINTER * 1)(queue.int_ptr)
        handle = self._functions["clCreateCommandBufferKHR"](1, queues, self._properties, ctypes.byref(status))
        if status.value or not handle:
            raise status_error(status.value, "clCreateCommandBufferKHR")
        return handle

    def _do(self, name: str, *arguments: Any) -> None:
        if status := self._functions[name](*arguments):
            raise status_error(status, name)


@dataclass(frozen=True)
class CommandBuffers:
    """Records command buffers; see ``Recorder``."""

    functions: Functions
    overlaps: bool
    name: ClassVar[str] = "a command buffer"
    least: ClassVar[int] = 1

    def record(self, device: Device, launches: Sequence[BoundKernel], *, overlapping: bool = False) -> CommandBuffer:
        """See ``Recorder``."""
        return CommandBuffer(device, launches, self.functions, overlapping=overlapping)


def recorder(device: Any) -> CommandBuffers | None:
    """Return what records command buffers for a pyopencl device; None where its driver does not say that it can."""
    functions = functions_of(device) if is_listed(device) else None
    return None if functions is None else CommandBuffers(functions, can_overlap(device))
