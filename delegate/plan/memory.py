"""Assigns offsets in one arena from lifetimes: tensors that are never alive together may share memory."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from litecl.interpreter.dataclass import dataclass


@dataclass(frozen=True)
class Usage:
    """A tensor's memory: its size, and the first and last step (inclusive) of its lifetime."""

    key: Hashable
    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class Arena:
    """The offsets by key, and the total size."""

    offsets: Mapping[Hashable, int]
    size_bytes: int


def place(usages: Sequence[Usage], alignment: int) -> Arena:
    """Assign offsets greedily: largest first, each in the lowest gap among those alive at the same time.

    One vectorized scan over the placed tensors finds each gap, in microseconds.
    """
    offsets: dict[Hashable, int] = {}
    # A column per placed tensor, ordered by offset: start, end, first step, last step.
    columns = np.zeros((4, len(usages)), np.int64)
    size = 0
    for count, usage in enumerate(sorted(usages, key=lambda u: (-u.size_bytes, u.first))):
        starts, ends, firsts, lasts = placed = columns[:, :count]
        together = (firsts <= usage.last) & (lasts >= usage.first)
        free_from = np.maximum.accumulate(np.append(0, ends[together]))
        fits = starts[together] - free_from[:-1] >= usage.size_bytes
        offset = offsets[usage.key] = int(free_from[fits.argmax() if fits.any() else -1])
        end = align(offset + usage.size_bytes, alignment)
        position = int(starts.searchsorted(offset))
        columns[:, position + 1 : count + 1] = placed[:, position:]
        columns[:, position] = offset, end, usage.first, usage.last
        size = max(size, end)
    return Arena(offsets, size)


def align(value: int, alignment: int) -> int:
    """Round up to a multiple of an alignment."""
    return -(-value // alignment) * alignment
