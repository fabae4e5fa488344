"""Launches that are recorded and queued by one call where a driver has ``cl_qcom_recordable_queues``.

Kernels that are queued to a recordable queue, of this one property alone, do not run but become part of the recording
that was begun there, with the arguments of then. Values and parameters are those of Qualcomm's ``cl_ext_qcom.h``.
"""

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pyopencl as cl

from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.opencl.enqueue import BoundKernel, status_error
from litecl.delegate.opencl.errors import FAULTS, RUNNING, typed, typed_errors
from litecl.delegate.opencl.unlocked import Functions, extension_functions, native
from litecl.interpreter.dataclass import dataclass

EXTENSION = "cl_qcom_recordable_queues"

_POINTER, _STATUS, _COUNT, _SIZE = ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint32, ctypes.c_size_t
LAUNCH = "clEnqueueNDRangeKernel"
FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    # queue, status
    "clNewRecordingQCOM": (_POINTER, _POINTER, _POINTER),
    "clEndRecordingQCOM": (_STATUS, _POINTER),
    # queue, recording; arguments, offsets, sizes and local sizes to change, each a number and an array; events to wait
    # for, event
    "clEnqueueRecordingQCOM": (_STATUS, _POINTER, _POINTER, *(_SIZE, _POINTER) * 4, _COUNT, _POINTER, _POINTER),
    "clReleaseRecordingQCOM": (_STATUS, _POINTER),
}
"""The result and the parameters of each function of the extension."""
_LAUNCH_TYPES = (_STATUS, _POINTER, _POINTER, _COUNT, *(_POINTER,) * 3, _COUNT, _POINTER, _POINTER)

_RECORDABLE = 1 << 30  # CL_QUEUE_RECORDABLE_QCOM
_MOST = 0x41DE  # CL_DEVICE_RECORDABLE_QUEUE_MAX_SIZE
_device_info = native(ctypes.CDLL, "clGetDeviceInfo")


def is_listed(device: Any) -> bool:
    """Return whether a pyopencl device says that it has the extension."""
    return EXTENSION in device.extensions.split()


def functions_of(device: Any) -> Functions | None:
    """Return the functions of a pyopencl device's platform, and the one that queues kernels; None where one is
    missing.
    """
    found, launch = extension_functions(device, FUNCTIONS), native(ctypes.CDLL, LAUNCH)
    if found is None or launch is None:
        return None
    launch.argtypes = _LAUNCH_TYPES[1:]
    return {**found, LAUNCH: launch}


def most_launches(device: Any) -> int:
    """Return how many kernels a recording of a pyopencl device may hold; 0 where its driver does not tell."""
    most = ctypes.c_uint32()
    if _device_info is None:
        return 0
    status = _device_info(_POINTER(device.int_ptr), _MOST, _SIZE(4), ctypes.byref(most), None)
    return 0 if status else most.value


def recordable_queue(device: Device) -> Any:
    """Return a new queue that records. Raises what pyopencl raises."""
    return cl.CommandQueue(device.context, device.device, properties=_RECORDABLE)


class Recordings:
    """Launches of one in-order queue, in as many recordings as the driver needs. Raises DelegateError where it refuses.

    They run in order, with the arguments that they have now.
    """

    def __init__(self, device: Device, launches: Sequence[BoundKernel], functions: Functions, most: int) -> None:
        self._functions, self._handles = functions, list[Any]()
        self._launches = launches  # which hold what the driver need not keep
        with typed_errors("recording launches"):
            self._queue = recordable_queue(device)
            for start in range(0, len(launches), most):
                self._record(launches[start : start + most])
        queue, unchanged = _POINTER(device.queue.int_ptr), (0, None) * 4
        self._calls = [(queue, _POINTER(handle), *unchanged, 0, None, None) for handle in self._handles]

    def __len__(self) -> int:
        return len(self._launches)

    def __del__(self) -> None:
        for handle in self._handles:
            self._functions["clReleaseRecordingQCOM"](handle)

    def enqueue(self) -> None:
        """Queue all launches. Raises DelegateError."""
        try:
            for call in self._calls:
                self._do("clEnqueueRecordingQCOM", *call)
        except FAULTS as error:
            raise typed(error, RUNNING) from error

    def _record(self, launches: Sequence[BoundKernel]) -> None:
        status, queue = _STATUS(), self._queue.int_ptr
        handle = self._functions["clNewRecordingQCOM"](queue, ctypes.byref(status))
        if status.value or not handle:
            raise status_error(status.value, "clNewRecordingQCOM")
        self._handles.append(handle)
        for launch in launches:
            self._do(LAUNCH, queue, *launch.recorded, 0, None, None)
        self._do("clEndRecordingQCOM", handle)

    def _do(self, name: str, *arguments: Any) -> None:
        if status := self._functions[name](*arguments):
            raise status_error(status, name)


@dataclass(frozen=True)
class QualcommRecorder:
    """Makes recordings; see ``Recorder``. most: kernels in one.

    Nothing public says that one may be queued again before it has ended. least: on an Adreno 830 others have measured
    32 us for a recording of one launch, and 9 us for a launch.
    """

    functions: Functions
    most: int
    name: ClassVar[str] = "a recording"
    overlaps: ClassVar[bool] = False
    least: ClassVar[int] = 4

    def record(self, device: Device, launches: Sequence[BoundKernel], *, overlapping: bool = False) -> Recordings:
        """See ``Recorder``."""
        return Recordings(device, launches, self.functions, self.most)


def recorder(device: Any) -> QualcommRecorder | None:
    """Return what makes recordings for a pyopencl device; None where its driver does not say that it can."""
    most = most_launches(device) if is_listed(device) else 0
    functions = functions_of(device) if most else None
    return None if functions is None else QualcommRecorder(functions, most)
