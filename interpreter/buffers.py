"""Memory that holds a tensor between runs: the host's, or a device's."""

import mmap
from contextlib import suppress
from typing import Any, Protocol

import numpy as np

from litecl.interpreter.tensor import Array

ALIGNMENT = 64  # bytes, as kernels require
LARGE_PAGE = 1 << 21  # bytes: huge pages of x86-64, and of ARM with base pages of 4 KiB


class Buffer(Protocol):
    """Memory of a fixed size. Its methods raise DelegateError if the device fails."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def host(self) -> Array | None:
        """The bytes, if the host can read and write them at any time; None if it must copy."""

    def overlaps(self, other: "Buffer") -> bool:
        """Return whether the two share memory."""

    def read(self, into: Array) -> None:
        """Copy its first bytes into a host array, and wait."""

    def write(self, value: Array) -> None:
        """Copy an array to its beginning, and wait."""


def aligned(size_bytes: int) -> Array:
    """Return at least one zeroed byte, aligned to ``ALIGNMENT``.

    From ``LARGE_PAGE`` bytes on, huge pages back them where Linux has any: prefetchers stop at page boundaries, and a
    TLB holds some thousand pages. Raises MemoryError.
    """
    size = max(1, size_bytes)
    if size >= LARGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        return _in_large_pages(size)
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]


def _in_large_pages(size: int) -> Array:
    """Allocate `size` bytes on huge pages; the tail uses normal pages."""
    try:
        pages = mmap.mmap(-1, size + LARGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as error:
        raise MemoryError(f"{size} bytes: {error}") from error
    memory = np.frombuffer(pages, np.uint8)
    start = -memory.ctypes.data % LARGE_PAGE
    with suppress(OSError):  # a system without large pages
        pages.madvise(mmap.MADV_HUGEPAGE, start, size // LARGE_PAGE * LARGE_PAGE)
    return memory[start : start + size]


class Constants(np.ndarray[Any, np.dtype[Any]]):
    """Memory that holds constants alone, so that parts of it may be kept instead of copies."""


class HostBuffer:
    """Zeroed memory of the host; untouched pages take none. address: where it begins."""

    def __init__(self, size_bytes: int) -> None:
        self.host: Array = aligned(size_bytes)
        self.address, self.size_bytes = int(self.host.ctypes.data), size_bytes

    def free(self) -> None:
        """Release the memory; nobody may use it afterwards."""
        self.host = self.host[:0].copy()

    def overlaps(self, other: Buffer) -> bool:
        """See ``Buffer``."""
        return other.host is not None and np.may_share_memory(self.host, other.host)

    def read(self, into: Array) -> None:
        """See ``Buffer``."""
        into[...] = seen(self, into)

    def write(self, value: Array) -> None:
        """See ``Buffer``."""
        seen(self, value)[...] = value


def seen(buffer: Buffer, like: Array) -> Array:
    """View the beginning of a host-visible buffer as an array of ``like``'s shape and type."""
    assert buffer.host is not None
    return buffer.host[: like.nbytes].view(like.dtype).reshape(like.shape)
