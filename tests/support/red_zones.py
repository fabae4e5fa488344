"""Memory of the processor's own back end between zones that nothing may write to: kernels write there unnoticed."""

import numpy as np

from litecl.delegate.native import execution, memory
from litecl.interpreter.graph import Array

_ZONE, _MARK = 4096, 0xA5  # bytes
_given: list[tuple[Array, int, int]] = []  # memory, and where a zone ends and the other one begins


def leave() -> None:
    """Have all memory that is made from now on lie between zones."""
    memory.aligned = execution.aligned = _aligned  # type: ignore[assignment]


def _aligned(size_bytes: int) -> Array:
    size = max(1, size_bytes)
    bytes_ = np.zeros(size + memory.ALIGNMENT + 2 * _ZONE, np.uint8)
    start = _ZONE + -(bytes_.ctypes.data + _ZONE) % memory.ALIGNMENT
    bytes_[:start] = bytes_[start + size :] = _MARK
    _given.append((bytes_, start, start + size))
    return bytes_[start : start + size]


def written() -> list[str]:
    """What has been written in zones since the last call, which are forgotten."""
    found = [fault for given in _given if (fault := _fault(*given))]
    _given.clear()
    return found


def _fault(bytes_: Array, start: int, end: int) -> str:
    before, after = np.flatnonzero(bytes_[:start] != _MARK), np.flatnonzero(bytes_[end:] != _MARK)
    if before.size or after.size:
        return (
            f"written outside {end - start} bytes: at {(before - start)[:4].tolist()}, {after[:4].tolist()} behind them"
        )
    return ""
