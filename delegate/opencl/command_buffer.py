"""Launches that are recorded once and queued by one call ever after, where a driver has ``cl_khr_command_buffer``.

pyopencl does not know the extension, so its functions are called through ctypes, which lets other threads run. All
versions of it, 0.9.0 to 1.0, have these functions with these parameters; in 0.9.5 other functions got one more.
"""

import ctypes
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.opencl.device import Device
from litecl.delegate.opencl.enqueue import BoundKernel, status_error
from litecl.delegate.opencl.errors import FAULTS, RUNNING, typed, typed_errors
from litecl.delegate.opencl.native import native
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array

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

Functions = Mapping[str, Any]
_FLAGS, _OVERLAPPING = 0x1293, 1  # CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR
_ABLE, _TO_OVERLAP = 0x12A9, 4  # CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, ..._CAPABILITY_SIMULTANEOUS_USE_KHR

_lookup = native(ctypes.CDLL, "clGetExtensionFunctionAddressForPlatform")
if _lookup is not None:
    _lookup.restype = _POINTER
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
    if _lookup is None:
        return None
    platform = _POINTER(device.platform.int_ptr)
    found = {name: _lookup(platform, name.encode()) for name in FUNCTIONS}
    if not all(found.values()):
        return None
    return {name: ctypes.CFUNCTYPE(*FUNCTIONS[name])(address) for name, address in found.items()}


class NotRightError(DelegateError):
    """A driver that is not to be relied on."""


def can_overlap(device: Any) -> bool:
    """Return whether a pyopencl device may have the same recording queued several times."""
    able, size = ctypes.c_uint64(), ctypes.c_size_t(8)
    if _device_info is None:
        return False
    status = _device_info(_POINTER(device.int_ptr), _ABLE, size, ctypes.byref(able), None)
    return not status and bool(able.value & _TO_OVERLAP)


@dataclass(frozen=True)
class Recorder:
    """What records launches. overlaps: whether a recording may be queued again before it has ended."""

    functions: Functions
    overlaps: bool


_probed: dict[int, Recorder | None] = {}  # by device; None if it is not right


class CommandBuffer:
    """Launches of one in-order queue, recorded. Raises DelegateError where the driver refuses.

    It runs them in order, with the arguments that they have now. overlapping: whether it is queued again before it has
    ended.
    """

    def __init__(
        self, device: Device, launches: Sequence[BoundKernel], recorder: Recorder, *, overlapping: bool = False
    ) -> None:
        self._functions, self._handle = recorder.functions, None
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


def recorder_of(device: Device) -> Recorder | None:
    """Return what records launches of a device; None where its driver does not say that it can. Raises
    NotRightError where it computes something else then, and DelegateError.
    """
    functions = functions_of(device.device) if is_listed(device.device) else None
    if functions is None:
        return None
    key = device.device.int_ptr
    if key not in _probed:
        with typed_errors("trying a command buffer"):
            tried = Recorder(functions, can_overlap(device.device))
            _probed[key] = tried if _is_right(device, tried) else None
    if _probed[key] is None:
        raise NotRightError(f"{device.name} does not run a command buffer as it was recorded")
    return _probed[key]


_EXPECTED: Array = np.array([0, 2, 2, 0], np.int32)


def _is_right(device: Device, recorder: Recorder) -> bool:
    """Return whether what is recorded runs in order, with the arguments of then, and as often as it is queued."""
    flags, one, zero = device.buffer(_EXPECTED.nbytes), device.buffer(1), device.buffer(1)
    for buffer, value in ((one, 1), (zero, 0)):
        cl.enqueue_copy(device.queue, buffer, np.array([value], np.uint8), is_blocking=True)

    def bound(entry: str, *arguments: Any) -> BoundKernel:
        kernel = device.programs.kernel("control", entry, {})
        return BoundKernel(device.queue, kernel, [flags, *arguments], (1,), (1,))

    first, second = np.int32(0), np.int32(2)
    launches = [bound("enter_loop", np.int32(-1), first)]
    launches += [bound("decide_loop", first, predicate) for predicate in (one, one, zero, one)]
    launches.append(bound("enter_loop", np.int32(1), second))
    whole, got = CommandBuffer(device, launches, recorder), np.empty_like(_EXPECTED)
    parts = [whole]
    if recorder.overlaps:  # an iteration of the loop, twice
        enter, twice, once = (launches[i:j] for i, j in ((0, 1), (1, 2), (3, 6)))
        again = CommandBuffer(device, twice, recorder, overlapping=True)
        parts = [whole, CommandBuffer(device, enter, recorder), again, again, CommandBuffer(device, once, recorder)]
    for garbage, run in ((7, [whole]), (-7, parts)):
        cl.enqueue_copy(device.queue, flags, np.full_like(got, garbage), is_blocking=True)
        for recorded in run:
            recorded.enqueue()
        cl.enqueue_copy(device.queue, got, flags, is_blocking=True)
        if not np.array_equal(got, _EXPECTED):
            return False
    return True
