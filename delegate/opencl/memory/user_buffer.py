"""Buffers that a user has allocated with pyopencl."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.backend.protocols import Device, UserBuffer
from litecl.delegate.opencl.errors import typed_errors
from litecl.interpreter.graph import Array


@dataclass(frozen=True)
class CLUserBuffer:
    """A ``pyopencl.Buffer``, which may be a part of another one."""

    buffer: Any

    @property
    def size_bytes(self) -> int:
        """See ``UserBuffer``."""
        return int(self.buffer.size)

    @property
    def start(self) -> int:
        """Return where it begins in the buffer that it is a part of; else 0."""
        return int(self.buffer.offset)

    @property
    def whole(self) -> Any:
        """Return the buffer that it is a part of, or else itself."""
        with suppress(cl.LogicError):  # Intel's runtime names what is no buffer where one lies in shared memory
            return self.buffer.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT) or self.buffer
        return self.buffer

    def part(self, start: int, size_bytes: int) -> Any:
        """Return a part as a kernel's argument. OpenCL knows no parts of parts."""
        if (start, size_bytes) == (0, self.size_bytes):
            return self.buffer
        return self.whole.get_sub_region(self.start + start, size_bytes)

    def belongs_to(self, device: Device) -> bool:
        """See ``UserBuffer``."""
        return bool(getattr(device, "context", None) == self.buffer.context)

    def overlaps(self, other: UserBuffer) -> bool:
        """See ``UserBuffer``."""
        if not isinstance(other, CLUserBuffer) or self.whole != other.whole:
            return False
        return self.start < other.start + other.size_bytes and other.start < self.start + self.size_bytes

    def read(self, into: Array) -> None:
        """See ``UserBuffer``."""
        with self._queue("reading") as queue:
            cl.enqueue_copy(queue, into, self.buffer, is_blocking=True)

    def write(self, value: Array) -> None:
        """See ``UserBuffer``."""
        with self._queue("writing") as queue:
            cl.enqueue_copy(queue, self.buffer, np.ascontiguousarray(value), is_blocking=True)

    @contextmanager
    def _queue(self, doing: str) -> Iterator[Any]:
        """Yield a queue of the buffer's own context: that of a model may be of another device."""
        with typed_errors(f"{doing} a user's buffer"):
            context = self.buffer.context
            yield cl.CommandQueue(context, context.devices[0])
