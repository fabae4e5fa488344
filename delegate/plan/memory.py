"""Offsets in one arena, from lifetimes: tensors that are never alive together may share memory."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

_BLOCK_STEPS = 64


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
    """Assign offsets greedily: largest first, each in the lowest gap among those alive at the same time."""
    offsets: dict[Hashable, int] = {}
    at_steps: dict[int, list[tuple[int, int, Usage]]] = {}  # what has an offset, by the blocks of steps it is alive in
    size = 0
    for usage in sorted(usages, key=lambda u: (-u.size_bytes, u.first)):
        blocks = range(usage.first // _BLOCK_STEPS, usage.last // _BLOCK_STEPS + 1)
        near = {id(item): item for block in blocks for item in at_steps.get(block, ())}
        offset = 0
        for start, end, other in sorted(near.values(), key=itemgetter(0)):
            alive_together = other.first <= usage.last and usage.first <= other.last
            if alive_together and start < offset + usage.size_bytes and offset < end:
                offset = align(end, alignment)
        item = (offset, offset + usage.size_bytes, usage)
        for block in blocks:
            at_steps.setdefault(block, []).append(item)
        offsets[usage.key] = offset
        size = max(size, item[1])
    return Arena(offsets, align(size, alignment))


def align(value: int, alignment: int) -> int:
    """Return the next multiple of an alignment."""
    return -(-value // alignment) * alignment
