"""Memory in which a tensor stays between runs: the host's, or a device's."""

import mmap
from contextlib import suppress
from typing import Protocol

import numpy as np

from litecl.interpreter.tensor import Array

ALIGNMENT = 64  # bytes, as kernels ask for
LARGE_PAGE = 1 << 21  # bytes: x86-64's second size of pages, and ARM's where the first is 4 KiB


class Buffer(Protocol):
    """Memory of a fixed size. Its methods raise DelegateError for a device that cannot do its work."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def host(self) -> Array | None:
        """Return its bytes as the host reads and writes them at any time; None where it must copy."""

    def overlaps(self, other: "Buffer") -> bool:
        """Return whether the two have memory in common."""

    def read(self, into: Array) -> None:
        """Copy its first bytes to the host, and wait."""

    def write(self, value: Array) -> None:
        """Copy an array to its beginning, and wait."""


def aligned(size_bytes: int) -> Array:
    """Return bytes of zeros, at least one, that begin at a multiple of ``ALIGNMENT``.

    From ``LARGE_PAGE`` bytes on they lie in large pages where Linux gives them: a processor foresees what is read
    within a page, and remembers the places of some thousand pages. Raises MemoryError.
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


class HostBuffer:
    """Memory of the host, of zeros. Pages that nobody writes to take none. address: where it begins."""

    def __init__(self, size_bytes: int) -> None:
        self.host: Array = aligned(size_bytes)
        self.address, self.size_bytes = int(self.host.ctypes.data), size_bytes

    def free(self) -> None:
        """Give the memory back; nobody may use it any more."""
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
    """Return the beginning of what the host sees as an array of another one's shape and type."""
    assert buffer.host is not None
    return buffer.host[: like.nbytes].view(like.dtype).reshape(like.shape)
