"""Offsets in one arena, from lifetimes: tensors that are never alive together may share memory."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Usage:
    """One tensor's need of memory: its size, and the first and last step (inclusive) at which it is alive."""

    key: Hashable
    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class Arena:
    """Where everything lies."""

    offsets: Mapping[Hashable, int]
    size_bytes: int


def place(usages: Sequence[Usage], alignment: int) -> Arena:
    """Greedy by size: the largest first, each in the lowest gap among those alive at the same time."""
    placed: list[tuple[int, int, Usage]] = []
    for usage in sorted(usages, key=lambda u: (-u.size_bytes, u.first)):
        offset = 0
        for start, end, other in placed:
            alive_together = other.first <= usage.last and usage.first <= other.last
            if alive_together and start < offset + usage.size_bytes and offset < end:
                offset = align(end, alignment)
        placed.append((offset, offset + usage.size_bytes, usage))
        placed.sort(key=lambda item: item[0])
    size = max((end for _, end, _ in placed), default=0)
    return Arena({usage.key: offset for offset, _, usage in placed}, align(size, alignment))


def align(value: int, alignment: int) -> int:
    """The next multiple of an alignment."""
    return -(-value // alignment) * alignment
