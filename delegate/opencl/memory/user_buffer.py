"""Buffers that a user allocated with pyopencl, and those of device tensors."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.opencl.errors import typed_errors
from litecl.interpreter.buffers import Buffer, seen
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array


@dataclass(frozen=True)
class CLUserBuffer:
    """A ``pyopencl.Buffer``, possibly a sub-buffer. host: its bytes, if host and device share them."""

    buffer: Any
    host: Array | None = field(default=None, compare=False)

    @property
    def size_bytes(self) -> int:
        """See ``Buffer``."""
        return int(self.buffer.size)

    @property
    def start(self) -> int:
        """Return a sub-buffer's offset in bytes; else 0."""
        return int(self.buffer.offset)

    @property
    def whole(self) -> Any:
        """Return a sub-buffer's parent; else the buffer itself."""
        with suppress(cl.LogicError):  # Intel's runtime returns no buffer for one in shared memory
            return self.buffer.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT) or self.buffer
        return self.buffer

    def part(self, start: int, size_bytes: int) -> Any:
        """Return a part as a kernel's argument. OpenCL has no sub-buffers of sub-buffers."""
        if (start, size_bytes) == (0, self.size_bytes):
            return self.buffer
        return self.whole.get_sub_region(self.start + start, size_bytes)

    def overlaps(self, other: Buffer) -> bool:
        """See ``Buffer``."""
        if not isinstance(other, CLUserBuffer) or self.whole != other.whole:
            return False
        return self.start < other.start + other.size_bytes and other.start < self.start + self.size_bytes

    def read(self, into: Array) -> None:
        """See ``Buffer``."""
        if self.host is not None:
            into[...] = seen(self, into)
            return
        with self._queue("reading") as queue:
            cl.enqueue_copy(queue, into, self.buffer, is_blocking=True)

    def write(self, value: Array) -> None:
        """See ``Buffer``."""
        if self.host is not None:
            seen(self, value)[...] = value
            return
        with self._queue("writing") as queue:
            cl.enqueue_copy(queue, self.buffer, np.ascontiguousarray(value), is_blocking=True)

    @contextmanager
    def _queue(self, doing: str) -> Iterator[Any]:
        """Yield a queue in the buffer's context, as the model may use another one."""
        with typed_errors(f"{doing} a buffer"):
            context = self.buffer.context
            yield cl.CommandQueue(context, context.devices[0])
