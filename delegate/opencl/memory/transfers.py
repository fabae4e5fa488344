"""Moves inputs, outputs and states in memory that isn't shared to a device and back: by copies, or by mapping.

An integrated GPU uses the host's memory, so the host maps a buffer and reads or writes it instead of queueing copies.
Kernels may not use a mapped buffer, so it is unmapped as soon as an input is written or an output read.
"""

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import pyopencl as cl

from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.opencl.memory.staging import Staging
from litecl.interpreter.graph import Array


class Transfers(Protocol):
    """A way to move arrays. Raises what pyopencl raises. key: staging's key. buffer: the device's memory."""

    def upload(self, key: Any, buffer: Any, value: Array) -> None:
        """Move an array to the device before the commands that follow."""

    def download(self, key: Any, buffer: Any, into: Array) -> None:
        """Queue a buffer's transfer to the host, which ``land`` completes."""

    def land(self) -> None:
        """Complete the downloads that the queue has finished."""


class Copies:
    """Copies by the driver, small ones through page-locked memory. under_way: receives their events. staged: keys and
    sizes in bytes.
    """

    def __init__(self, device: Device, under_way: list[Any], staged: Iterable[tuple[Any, int]]) -> None:
        self._queue, self._under_way, self._staging = device.queue, under_way, Staging(device, staged)
        self.land = self._staging.land

    def upload(self, key: Any, buffer: Any, value: Array) -> None:
        """See ``Transfers``."""
        self._copy(buffer, self._staging.sent(key, np.ascontiguousarray(value)))

    def download(self, key: Any, buffer: Any, into: Array) -> None:
        """See ``Transfers``."""
        self._copy(self._staging.received(key, into), buffer)

    def _copy(self, to: Any, source: Any) -> None:
        self._under_way.append(cl.enqueue_copy(self._queue, to, source, is_blocking=False))


_Mapped = tuple[Array, Any, Any]
"""The mapped array, the mapping, and the event after which the host may access it."""


class Mappings:
    """Transfers by mapping buffers; pyopencl unmaps them after an error. under_way: receives the downloads' events."""

    def __init__(self, device: Device, under_way: list[Any]) -> None:
        self._queue, self._under_way = device.queue, under_way
        self._pending: list[tuple[Array, _Mapped]] = []

    def upload(self, key: Any, buffer: Any, value: Array) -> None:
        """See ``Transfers``."""
        if not value.nbytes:
            return
        seen, mapping, event = self._mapped(buffer, value, cl.map_flags.WRITE_INVALIDATE_REGION)
        try:
            event.wait()  # unlike a blocking map, this releases the GIL
            seen[...] = value
        finally:
            mapping.release(self._queue)

    def download(self, key: Any, buffer: Any, into: Array) -> None:
        """See ``Transfers``."""
        if not into.nbytes:
            return
        mapped = self._mapped(buffer, into, cl.map_flags.READ)
        self._under_way.append(mapped[-1])  # first, so that ``land`` follows in any case
        self._pending.append((into, mapped))

    def land(self) -> None:
        """See ``Transfers``."""
        pending, self._pending = self._pending, []
        for into, (seen, mapping, _) in pending:
            into[...] = seen
            mapping.release(self._queue)

    def _mapped(self, buffer: Any, like: Array, flags: int) -> _Mapped:
        """Queue a mapping of the start of a buffer, as an array of the shape and type of ``like``."""
        seen, event = cl.enqueue_map_buffer(self._queue, buffer, flags, 0, like.shape, like.dtype, is_blocking=False)
        return seen, seen.base, event
