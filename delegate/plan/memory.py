"""Offsets in one arena, from lifetimes: tensors that are never live together may share memory."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from litecl.interpreter.dataclass import dataclass


@dataclass(frozen=True)
class Usage:
    """One tensor's need of memory: its size, and the first and last step (inclusive) at which it is alive."""

    key: Hashable
    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class Arena:
    """The offsets of everything, and the total size."""

    offsets: Mapping[Hashable, int]
    size_bytes: int


def place(usages: Sequence[Usage], alignment: int) -> Arena:
    """Assign offsets greedily: largest first, each in the lowest gap among those alive at the same time.

    For each, numpy goes once through all that have an offset: microseconds, however many are alive together.
    """
    offsets: dict[Hashable, int] = {}
    # A column for each that has an offset, in order: where it begins and ends, its first and last step.
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
    """Return the next multiple of an alignment."""
    return -(-value // alignment) * alignment
