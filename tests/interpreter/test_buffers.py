"""Memory of the host: where it begins, and which pages it lies in."""

import re
from pathlib import Path

import numpy as np
import pytest

from litecl.interpreter.buffers import LARGE_PAGE, HostBuffer, aligned

_CHOICE = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, LARGE_PAGE - 1, LARGE_PAGE, LARGE_PAGE + 1, 3 * LARGE_PAGE])
def test_aligned(size: int) -> None:
    memory = aligned(size)
    assert (memory.size, memory.dtype, memory.ctypes.data % 64) == (max(1, size), np.uint8, 0)
    assert not memory.any()
    memory[...] = 7
    assert memory.min() == 7


@pytest.mark.parametrize("size", [1 << 60, 1 << 62, 1 << 63])
def test_too_much_memory(size: int) -> None:
    with pytest.raises(MemoryError):
        aligned(size)


def large_kib(address: int) -> int:
    """Return how many KiB of the mapping around an address lie in large pages."""
    for mapping in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE)[1:]:
        first, last = (int(end, 16) for end in mapping.split(maxsplit=1)[0].split("-"))
        if first <= address < last:
            return int(re.findall(r"AnonHugePages: +(\d+)", mapping)[0])
    raise AssertionError("no mapping has the address")


@pytest.mark.skipif(not _CHOICE.exists() or "[never]" in _CHOICE.read_text(), reason="the system gives no large pages")
def test_large_memory_lies_in_large_pages() -> None:
    """All of it except the tail, and only pages that have been written."""
    memory = aligned(8 * LARGE_PAGE + 5)
    assert memory.ctypes.data % LARGE_PAGE == 0
    memory[: 4 * LARGE_PAGE] = 1
    written = large_kib(memory.ctypes.data)
    if not written:
        pytest.skip("the system has no large page left")
    assert written <= 4 * LARGE_PAGE >> 10


def test_a_buffer_is_freed() -> None:
    buffer = HostBuffer(2 * LARGE_PAGE)
    buffer.write(np.arange(LARGE_PAGE // 2, dtype=np.float32))
    read = np.empty(LARGE_PAGE // 2, np.float32)
    buffer.read(read)
    np.testing.assert_array_equal(read, np.arange(LARGE_PAGE // 2))
    assert buffer.overlaps(buffer)
    buffer.free()
    assert buffer.host.size == 0
