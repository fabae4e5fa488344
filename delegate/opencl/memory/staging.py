"""Page-locked host memory, through which a GPU with memory of its own gets inputs and gives outputs.

A driver copies other memory by way of page-locked memory of its own, or locks it anew for every copy, and a call that
is not to wait may wait for that. Large arrays are left to it: it moves one piece while it copies the next.
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
    """A part of one buffer, mapped as long as this lives, for each of some copies that are not large.

    copies: what is copied, by anything hashable, with its size in bytes. Where a driver has no such memory all is left
    to it.
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
        """Return what to copy to the device in place of an array: a copy of it, if it is not large."""
        part = self._parts.get(key)
        if part is None:
            return value
        part[...] = value.reshape(-1).view(np.uint8)
        return part

    def received(self, key: Any, into: Array) -> Array:
        """Return what to copy to from the device in place of an array, which has it after ``land``."""
        part = self._parts.get(key)
        if part is None:
            return into
        self._pending.append((into, part))
        return part

    def land(self) -> None:
        """Copy what has arrived to where it is wanted."""
        for into, part in self._pending:
            into.reshape(-1).view(np.uint8)[...] = part
        self._pending.clear()
