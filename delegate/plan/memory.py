"""Assigns memory once all is lowered: sets of variables, lifetimes, and offsets in one arena.

Tensors that are never alive together may share memory.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np

from litecl.delegate.cl_op import Arg, Operand, Scratch
from litecl.delegate.plan.steps import Branch, Loop, OneGroup, Slot, State, Steps, Within, Work, control_of, place_of
from litecl.interpreter.dataclass import dataclass

Memory = Operand | Scratch


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


def slots_of(steps: Steps, states: Sequence[State], alignment: int) -> dict[Operand, Slot]:
    """Return the positions of loops' swapped variables, and of states that change, in the two sets of each loop."""
    loops = [part.swapped for part in control_of(steps) if isinstance(part, Loop)]
    loops.append([(state.before, state.after) for state in states if state.after is not None])
    slots: dict[Operand, Slot] = {}
    for number, variables in enumerate(loops):
        offsets, end = [], 0
        for read, _ in variables:
            offsets.append(end)
            end = align(end + max(1, read.size_bytes), alignment)
        sets = Scratch(2 * end)
        for (read, written), offset in zip(variables, offsets, strict=True):
            slots[read] = Slot(sets, end, offset, number, written=False)
            slots[written] = Slot(sets, end, offset, number, written=True)
    return slots


def lifetimes(
    steps: Steps,
    kept: Collection[Operand],
    outputs: Collection[Operand],
    aliases: Mapping[Operand, Within],
    slots: Mapping[Operand, Slot],
) -> list[Usage]:
    """Return lifetimes in steps. ``kept`` live for the whole run, outputs from their first write to its end.

    A tensor computed before a loop and read in it lives until the loop ends, as every iteration reads it.
    """

    def memory(arg: Arg) -> Memory | None:
        """Return the memory that an argument uses: an operand's sets or root; None for a constant."""
        if not isinstance(arg, Operand):
            return arg if isinstance(arg, Scratch) else None
        root, _ = place_of(arg, aliases)
        if root in slots:
            return slots[root].sets
        return root if root.data is None else None

    loops: list[tuple[int, int]] = []
    moments: list[Sequence[Arg]] = []
    _number(steps, moments, loops)
    end = len(moments)
    uses: dict[Memory, list[int]] = {item: [0] for operand in kept if (item := memory(operand)) is not None}
    always = {*uses}
    for at, args in enumerate(moments):
        for arg in args:
            if (item := memory(arg)) is not None:
                uses.setdefault(item, []).append(at)
    always |= {item for operand in outputs if (item := memory(operand)) in uses}
    last = {item: end if item in always else _last(at, loops) for item, at in uses.items()}
    return [Usage(item, item.size_bytes, at[0], last[item]) for item, at in uses.items()]


def _last(uses: Sequence[int], loops: Sequence[tuple[int, int]]) -> int:
    """Return the end of a lifetime, given the steps of its uses and the first and last step of every loop."""
    ends = [end for start, end in loops if uses[0] < start and any(start <= at <= end for at in uses)]
    return max([uses[-1], *ends])


def _number(steps: Steps, moments: list[Sequence[Arg]], loops: list[tuple[int, int]]) -> None:
    """Append the arguments that every step uses, and the first and last step of every loop."""
    for part in steps:
        if isinstance(part, Work):
            moments.append(part.launch.args)
        elif isinstance(part, OneGroup):
            _number(part.steps, moments, loops)
        elif isinstance(part, Branch):
            moments.append([part.predicate])
            _number([*part.then, *part.otherwise], moments, loops)
            moments.append(())
        else:
            start = len(moments)
            _number(part.condition, moments, loops)
            moments.append([part.predicate])
            _number(part.body, moments, loops)
            loops.append((start, len(moments)))
            moments.append(())


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
