"""The best choice of an option for each of several items, for every budget at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from litecl.interpreter.graph import Array

_BINS = 8192


@dataclass(frozen=True)
class Option:
    """One way to store an item: its cost in bytes, and the harm that it does, which adds up."""

    size: int
    harm: float


@dataclass(frozen=True)
class Choices:
    """The best options for all budgets. unit: bytes in a bin. picked: [items, bins], the option of each item.

    floor: the sum of the smallest sizes. costs: the bins of each option beyond its item's smallest.
    """

    items: Sequence[Sequence[Option]]
    unit: float
    picked: Array
    costs: Sequence[Array]
    floor: int

    def within(self, budget: float) -> list[int] | None:
        """Return the option of each item with the least harm whose sizes are within a budget; None if none are."""
        if budget < self.floor:
            return None
        left = min(int((budget - self.floor) / self.unit), self.picked.shape[1] - 1)
        found = []
        for item in reversed(range(len(self.items))):
            option = int(self.picked[item, left])
            left -= int(self.costs[item][option])
            found.append(option)
        return found[::-1]


def choices_of(items: Sequence[Sequence[Option]]) -> Choices:
    """Return the best options, by dynamic programming over budgets in bins; sizes are rounded up to these."""
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
