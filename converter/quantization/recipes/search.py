"""Searches bits per layer: the recipe with the smallest error within a size, or the smallest size within an error."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from litecl.converter.quantization.frontier import Frontier, Point, Sensitivity
from litecl.converter.quantization.recipes.knapsack import Choices, choices_of, neighbours
from litecl.converter.quantization.recipes.priced import Priced
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model

_POINTS = 9  # of the frontier, measured
_ROUNDS = 8  # of steps towards a size or an error
_NEAR = 0.004  # of a budget: search stops this near to it
_WITHIN = 0.99  # of a budget: smaller files get a note
_MORE = 0.1  # of a budget: by how much predicted sizes may exceed it
_NEIGHBOURS = 32  # of a choice, measured
_PADDING = 256  # bytes by which predicted sizes may exceed the file


@dataclass(frozen=True)
class Search:
    """The search in a model with prices."""

    of: Priced

    @cached_property
    def choices(self) -> Choices:
        return choices_of(self.of.options)

    def _point(self, picked: Sequence[int]) -> Point:
        key = tuple(picked)
        if key not in self._measured:
            changed = self._quantized(key)
            self._measured[key] = Point(
                len(write(changed)), _db(max(self.of.errors(changed))), self._predicted(key), key
            )
        return self._measured[key]

    @cached_property
    def _measured(self) -> dict[tuple[int, ...], Point]:
        """The points whose files were written."""
        return {}

    def _quantized(self, picked: Sequence[int]) -> Model:
        ways = [layer.ways[o] for layer, o in zip(self.of.layers, picked, strict=True)]
        return self.of.made({place: choice for way in ways for place, choice in way.chosen.items()})

    def _predicted(self, picked: Sequence[int]) -> float:
        return _db(sum(options[o].harm for options, o in zip(self.of.options, picked, strict=True)))

    def for_size(self, budget: int) -> Frontier:
        """Return the result with the smallest error in a file of at most ``budget`` bytes.

        Raises ConversionError if the smallest file is larger.
        """
        best = self._point(self._within(self.choices.floor))
        if best.size_bytes > budget:
            raise ConversionError(f"quantize: budget of {budget} bytes: the smallest file has {best.size_bytes}")
        # Costs don't quite add up: layers share a file's vectors, and bins round up.
        low, high = float(self.choices.floor), min(0.0, budget - self.of.float_bytes + _MORE * budget)
        target = float(min(self.choices.floor + budget - best.size_bytes, high))
        for _ in range(_ROUNDS):
            picked = self._within(target)
            point = self._point(picked)
            rest = budget - point.size_bytes
            if 0 <= rest <= _NEAR * budget or not any(picked):
                break
            low, high = (target, high) if rest >= 0 else (low, target)
            target = min(target + rest, high) if rest > 0 and target + rest < high else (low + high) / 2
        best = self._refined(
            self._best(budget), lambda point: budget - point.size_bytes + _PADDING, lambda: self._best(budget)
        )
        return replace(self._frontier(best), note=self._note(best, budget))

    def _best(self, budget: int) -> Point:
        """Return the most accurate measured point within a budget, preferring smaller ones."""
        within = (p for p in self._measured.values() if p.size_bytes <= budget)
        return max(within, key=lambda point: (point.sqnr_db, -point.size_bytes))

    def _smallest(self, ratio_db: float) -> Point:
        """Return the smallest measured point with an SQNR of at least ``ratio_db``, preferring more accurate ones."""
        good = (p for p in self._measured.values() if p.sqnr_db >= ratio_db)
        return min(good, key=lambda point: (point.size_bytes, -point.sqnr_db))

    def _refined(self, best: Point, more: Callable[[Point], int], chosen: Callable[[], Point]) -> Point:
        """Return the best of a point and its neighbours: errors nearly add up, so only the most promising are measured.

        more: the bytes that neighbours may add. chosen: returns the best measured point.
        """
        for _ in range(_ROUNDS):
            for picked in neighbours(self.of.options, best.picked, more(best), _NEIGHBOURS):
                self._point(picked)
            refined = chosen()
            if refined.picked == best.picked:
                break
            best = refined
        return best

    def _note(self, best: Point, budget: int) -> str:
        """Return why a file is over a percent smaller than allowed, or ""."""
        if best.size_bytes >= _WITHIN * budget or not any(best.picked):
            return ""
        within = [p for p in self._measured.values() if p.size_bytes <= budget]
        if any(p.size_bytes > best.size_bytes for p in within):
            return (
                f"{best.size_bytes} of {budget} bytes: the most accurate of {len(within)} files that were measured; "
                "those that come nearer have larger errors"
            )
        nearest = self.choices.next_to(budget - self.of.float_bytes)
        sizes = {best.size_bytes, *(len(write(self._quantized(picked))) for picked in nearest)}
        below, above = max(s for s in sizes if s <= budget), min((s for s in sizes if s > budget), default=None)
        if below > best.size_bytes:
            return f"{best.size_bytes} of {budget} bytes: the most accurate of {len(within)} files that were measured"
        return f"{best.size_bytes} of {budget} bytes: no combination of ways comes nearer; the next larger has {above}"

    def _within(self, size: float) -> list[int]:
        picked = self.choices.within(max(size, self.choices.floor))
        assert picked is not None
        return picked

    def for_ratio(self, ratio_db: float) -> Frontier:
        """Return the result with the smallest file whose outputs all have an SQNR of at least ``ratio_db``."""
        low, high = float(self.choices.floor), 0.0
        best = self._point([0] * len(self.of.layers))
        for _ in range(2 * _ROUNDS):
            middle = (low + high) / 2
            point = self._point(self._within(middle))
            if point.sqnr_db >= ratio_db:
                high = middle
                best = point if point.size_bytes < best.size_bytes else best
            else:
                low = middle
            if high - low < _NEAR / 4 * self.of.float_bytes:
                break
        return self._frontier(self._refined(best, lambda point: -1, lambda: self._smallest(ratio_db)))

    def _frontier(self, best: Point) -> Frontier:
        floor = self.choices.floor
        shares = (number / (_POINTS - 1) for number in range(_POINTS))
        unique = {tuple(self._within(floor * (1 - share))) for share in shares}
        unique -= {best.picked}
        points = sorted([best, *map(self._point, unique)], key=lambda point: (point.size_bytes, -point.sqnr_db))
        highest_db = [-math.inf, *itertools.accumulate((point.sqnr_db for point in points), max)]
        points = [p for p, db in zip(points, highest_db, strict=False) if p is best or p.sqnr_db > db]
        rows = [
            Sensitivity(layer.name, way.name, self.of.float_bytes + option.size, _db(option.harm))
            for layer, options in zip(self.of.layers, self.of.options, strict=True)
            for way, option in zip(layer.ways, options, strict=True)
            if not way.mixed
        ]
        chosen = [layer.ways[o] for layer, o in zip(self.of.layers, best.picked, strict=True)]
        ways = tuple((layer.name, way.name) for layer, way in zip(self.of.layers, chosen, strict=True))
        entries = tuple(entry for way in chosen for entry in way.entries)
        return Frontier(self.of.float_bytes, best, tuple(points), tuple(rows), ways, entries)


def _db(error: float) -> float:
    return math.inf if error <= 0 else -10 * math.log10(error)
