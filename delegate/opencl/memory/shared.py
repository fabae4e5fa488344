"""Host memory for an integrated GPU.

Memory that the driver reports as shared is tested with kernels first, as the driver may keep copies.
"""

from contextlib import suppress
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.opencl.enqueue import BoundKernel
from litecl.delegate.opencl.errors import FAULTS
from litecl.delegate.report import summary, warn
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array

_PREDICATES = (1, 0, 1, 1, 0)  # of consecutive runs
_probed: dict[int, bool] = {}  # by device


def host_memory(device: Device, size_bytes: int) -> tuple[Any, Array | None]:
    """Allocate host memory for an integrated GPU; return it and its host view, or None if the host must map it.

    Raises OutOfDeviceMemory.
    """
    if device.has_svm and _is_shared(device):
        return device.svm_buffer(size_bytes)
    return device.buffer(size_bytes, cl.mem_flags.ALLOC_HOST_PTR), None


def _is_shared(device: Device) -> bool:
    """Return whether a GPU's shared memory works. After an error, retry once; a second error means no."""
    key = device.device.int_ptr
    if key not in _probed:
        with suppress(DelegateError, *FAULTS):
            _probed[key] = _is_right(device)
            return _probed[key]
        try:
            _probed[key] = _is_right(device)
        except (DelegateError, *FAULTS) as error:
            warn(f"inputs and outputs are mapped on {device.name}, not shared: {summary(error)}")
            return False
    return _probed[key]


def _is_right(device: Device) -> bool:
    """Return whether a kernel sees predicates that the host writes, and the host the flags that the kernel writes. They
    are parts of one buffer, like inputs and outputs.
    """
    apart = device.alignment
    buffer, host = device.svm_buffer(2 * apart)
    flags, seen, predicate = buffer.get_sub_region(0, 8), host[:8].view(np.int32), host[apart : apart + 1]
    kernel = device.programs.kernel("control", "decide_branch", {})
    arguments: list[Any] = [flags, np.int32(-1), np.int32(0), buffer.get_sub_region(apart, 1)]
    launch = BoundKernel(device.queue, kernel, arguments, (1,), (1,))
    for value in _PREDICATES:
        seen[...], predicate[...] = -7, value
        launch.enqueue()
        device.queue.finish()
        if seen.tolist() != [value, 1 - value]:
            return False
    return True
