"""How inputs, outputs and states that the host does not see get to a device and back: by copies, or by mapping.

An integrated GPU's memory is the host's, so no command copies: the host maps a buffer and moves what is in it. Kernels
may not use what is mapped, so an input is unmapped as soon as it has been written, and an output when it has been read.
"""

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import pyopencl as cl

from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.opencl.memory.staging import Staging
from litecl.interpreter.graph import Array


class Transfers(Protocol):
    """Both ways raise what pyopencl raises. key: what is moved, as it is known to staging. buffer: where it lies."""

    def upload(self, key: Any, buffer: Any, value: Array) -> None:
        """Move an array to the device, before the commands that follow."""

    def download(self, key: Any, buffer: Any, into: Array) -> None:
        """Queue what ``land`` needs to move a buffer to the host."""

    def land(self) -> None:
        """End what the queue has done its part of."""


class Copies:
    """Copies by the driver, small ones by way of page-locked memory. under_way: gets their events. staged: what is,
    with its size in bytes.
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
"""The host's array, the mapping, and the event after which the host may read it."""


class Mappings:
    """Buffers that the host maps, and unmaps; pyopencl unmaps what an error leaves mapped. under_way: gets the events
    of those that are to be read.
    """

    def __init__(self, device: Device, under_way: list[Any]) -> None:
        self._queue, self._under_way = device.queue, under_way
        self._pending: list[tuple[Array, _Mapped]] = []

    def upload(self, key: Any, buffer: Any, value: Array) -> None:
        """See ``Transfers``."""
        if not value.nbytes:
            return
        seen, mapping, event = self._mapped(buffer, value, cl.map_flags.WRITE_INVALIDATE_REGION)
        try:
            event.wait()  # unlike a map that blocks, this lets other threads run
            seen[...] = value
        finally:
            mapping.release(self._queue)

    def download(self, key: Any, buffer: Any, into: Array) -> None:
        """See ``Transfers``."""
        if not into.nbytes:
            return
        mapped = self._mapped(buffer, into, cl.map_flags.READ)
        self._under_way.append(mapped[-1])  # first, so that what is pending ends in any case
        self._pending.append((into, mapped))

    def land(self) -> None:
        """See ``Transfers``."""
        pending, self._pending = self._pending, []
        for into, (seen, mapping, _) in pending:
            into[...] = seen
            mapping.release(self._queue)

    def _mapped(self, buffer: Any, like: Array, flags: int) -> _Mapped:
        """Queue the mapping of the beginning of a buffer, as an array of the same shape and type as another one."""
        seen, event = cl.enqueue_map_buffer(self._queue, buffer, flags, 0, like.shape, like.dtype, is_blocking=False)
        return seen, seen.base, event
