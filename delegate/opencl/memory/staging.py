"""Page-locked host memory, through which inputs and outputs pass to and from a GPU with its own memory.

A driver stages pageable memory itself or locks it for every copy, so that a non-blocking call may block. Large arrays
are left to the driver, which overlaps staging and transfer.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.opencl.errors import FAULTS
from litecl.delegate.plan.memory import align
from litecl.delegate.report import summary, warn
from litecl.interpreter.graph import Array

_LARGE = 4 << 20  # bytes
_LINE = 64  # bytes


class Staging:
    """A permanently mapped buffer, with a part for each copy that isn't large.

    copies: a hashable key for each copy, and its size in bytes. If the driver has no such memory, nothing is staged.
    """

    def __init__(self, device: Device, copies: Iterable[tuple[Any, int]]) -> None:
        self._parts: dict[Any, Array] = {}
        self._pending: list[tuple[Array, Array]] = []
        sizes = {key: size for key, size in copies if 0 < size <= _LARGE}
        if not sizes:
            return
        try:
            self._place(device, sizes)
        except FAULTS as error:
            self._parts.clear()
            warn(f"inputs and outputs are not staged on {device.name}: {summary(error)}")

    def _place(self, device: Device, sizes: Mapping[Any, int]) -> None:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        total = sum(align(size, _LINE) for size in sizes.values())
        buffer, access = cl.Buffer(device.context, flags, size=total), cl.map_flags.READ | cl.map_flags.WRITE
        seen, _ = cl.enqueue_map_buffer(device.queue, buffer, access, 0, (total,), np.uint8)
        start = 0
        for key, size in sizes.items():
            self._parts[key] = seen[start : start + size]
            start += align(size, _LINE)

    def sent(self, key: Any, value: Array) -> Array:
        """Return the array to copy to the device: a staged copy of ``value``, or ``value`` itself."""
        part = self._parts.get(key)
        if part is None:
            return value
        part[...] = value.reshape(-1).view(np.uint8)
        return part

    def received(self, key: Any, into: Array) -> Array:
        """Return the array to copy to from the device. ``land`` then moves staged data to ``into``."""
        part = self._parts.get(key)
        if part is None:
            return into
        self._pending.append((into, part))
        return part

    def land(self) -> None:
        """Copy received data from the staging buffer to its destinations."""
        for into, part in self._pending:
            into.reshape(-1).view(np.uint8)[...] = part
        self._pending.clear()
