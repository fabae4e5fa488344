"""Chooses the best option for each of several items, for every budget at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from litecl.interpreter.graph import Array

_BINS = 8192


@dataclass(frozen=True)
class Option:
    """One way to store an item: its cost in bytes, and its harm. Harms add up."""

    size: int
    harm: float


@dataclass(frozen=True)
class Choices:
    """The best options for all budgets. unit: bytes per bin. picked: [items, bins], the option of each item.

    floor: the sum of the smallest sizes. costs: each option's bins beyond its item's smallest.
    """

    items: Sequence[Sequence[Option]]
    unit: float
    picked: Array
    costs: Sequence[Array]
    floor: int

    def next_to(self, size: float) -> list[list[int]]:
        """Return options whose sizes are nearest below and above a size, to within bins; at most two of each."""
        reached = [np.arange(self.picked.shape[1]) == 0]
        for costs in self.costs:
            reached.append(np.any([_moved(reached[-1], cost) for cost in costs], axis=0))
        (bins,) = np.nonzero(reached[-1])
        at = int(np.searchsorted(bins, (size - self.floor) / self.unit, "right"))
        return [self._reaching(int(left), reached) for left in bins[max(0, at - 2) : at + 2]]

    def _reaching(self, left: int, reached: Sequence[Array]) -> list[int]:
        """Return options that cost ``left`` bins."""
        picked = []
        for costs, before in zip(reversed(self.costs), reversed(reached[:-1]), strict=True):
            option = next(o for o, cost in enumerate(costs) if cost <= left and before[left - cost])
            left -= int(costs[option])
            picked.append(option)
        return picked[::-1]

    def within(self, budget: float) -> list[int] | None:
        """Return each item's option so that sizes fit a budget with the least harm; None if that is impossible."""
        if budget < self.floor:
            return None
        left = min(int((budget - self.floor) / self.unit), self.picked.shape[1] - 1)
        picked = []
        for item in reversed(range(len(self.items))):
            option = int(self.picked[item, left])
            left -= int(self.costs[item][option])
            picked.append(option)
        return picked[::-1]


def _moved(reached: Array, cost: int) -> Array:
    """Return which bins are reached after adding ``cost``."""
    return np.concatenate([np.zeros(cost, np.bool_), reached[: len(reached) - cost]])


def choices_of(items: Sequence[Sequence[Option]]) -> Choices:
    """Return the best options, by dynamic programming over budgets in bins; sizes are rounded up to bins."""
    floors = [min(o.size for o in options) for options in items]
    span = sum(max(o.size for o in options) - floor for options, floor in zip(items, floors, strict=True))
    unit = max(span / (_BINS - 1 - len(items)), 1e-9)
    costs = [
        np.array([int(np.ceil((o.size - floor) / unit)) for o in options])
        for options, floor in zip(items, floors, strict=True)
    ]
    least, picked = np.zeros(_BINS), np.zeros((len(items), _BINS), np.int32)
    for number, options in enumerate(items):
        sums = np.full((len(options), _BINS), np.inf)
        for o, option in enumerate(options):
            cost = int(costs[number][o])
            sums[o, cost:] = least[: _BINS - cost] + option.harm
        picked[number] = sums.argmin(axis=0)
        least = sums.min(axis=0)
    return Choices(items, unit, picked, costs, sum(floors))


def neighbours(items: Sequence[Sequence[Option]], picked: Sequence[int], left: float, most: int) -> list[list[int]]:
    """Return picks that change one or two items, for up to ``left`` more bytes, least harm first."""
    changes = [(n, o) for n, options in enumerate(items) for o in range(len(options)) if o != picked[n]]
    owns = [items[n][picked[n]] for n, _ in changes]
    sizes = np.array([items[n][o].size - own.size for (n, o), own in zip(changes, owns, strict=True)])
    harms = np.array([items[n][o].harm - own.harm for (n, o), own in zip(changes, owns, strict=True)])
    ranked: list[tuple[float, tuple[int, ...]]]
    ranked = [(harm, (c,)) for c, (size, harm) in enumerate(zip(sizes, harms, strict=True)) if size <= left]
    numbers = np.array([n for n, _ in changes])
    for c, size in enumerate(sizes):
        (fits,) = np.nonzero((size + sizes[c + 1 :] <= left) & (numbers[c + 1 :] != numbers[c]))
        best = fits[np.argsort(harms[c + 1 :][fits], kind="stable")[:most]]
        ranked += [(harms[c] + harms[c + 1 + other], (c, c + 1 + other)) for other in best]
    chosen = [dict(changes[c] for c in pair) for _, pair in sorted(ranked)[:most]]
    return [[change.get(n, o) for n, o in enumerate(picked)] for change in chosen]
