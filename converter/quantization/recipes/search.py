"""Bits for each layer: the recipe of the smallest error within a size, or of the smallest size for an error."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from litecl.converter.quantization.frontier import Cut, Frontier, Point, Sensitivity
from litecl.converter.quantization.recipes.cut import (
    Divisible,
    cut_choices,
    cut_entries,
    cut_moments,
    divisible,
    split,
)
from litecl.converter.quantization.recipes.knapsack import Choices, Divided, Option, choices_of, divided, neighbours
from litecl.converter.quantization.recipes.layers import Way
from litecl.converter.quantization.recipes.operands import joined
from litecl.converter.quantization.recipes.priced import Priced
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model

_POINTS = 9  # of the frontier, that are measured
_ROUNDS = 8  # of steps towards a size or an error
_WORST_DB = 100.0  # of an output without a signal
_NEAR = 0.004  # of a budget: as near as it is met, if the ways allow
_WITHIN = 0.99  # of a budget, or of a ratio: nearer, no layer is divided
_MORE = 0.1  # of a budget: what sizes of layers may add up to beyond it
_LARGE = 16  # layers that are tried to be divided
_NEIGHBOURS = 32  # of a choice, that are measured
_PADDING = 256  # bytes by which sizes of layers may add up to more than a file
_FILLED = 6  # ways to use the bytes that are left
_DIVIDED = 3  # of these, whose files are made


@dataclass(frozen=True)
class Search:
    """The search in a model whose layers have prices."""

    of: Priced

    @cached_property
    def choices(self) -> Choices:
        return choices_of(self.of.whole)

    @cached_property
    def divisible(self) -> Mapping[int, Divisible]:
        """The layers that can be divided and whose ways differ by much, the largest first, by number."""
        found = {n: divisible(self.of.model, layer) for n, layer in enumerate(self.of.layers)}
        spans = {n: max(o.size for o in own) - min(o.size for o in own) for n, own in enumerate(self.of.options)}
        large = sorted((n for n in found if spans[n] > (1 - _WITHIN) * self.of.float_bytes), key=lambda n: -spans[n])
        return {n: of for n in large[:_LARGE] if (of := found[n]) is not None}

    @cached_property
    def others(self) -> Mapping[int, Choices]:
        """The choices of all layers but one, by the number of that one."""
        return {n: choices_of([*self.of.whole[:n], *self.of.whole[n + 1 :]]) for n in self.divisible}

    @cached_property
    def more(self) -> Mapping[int, int]:
        """The bytes that each divisible layer takes more if it is divided, whatever the size of its parts."""
        return {n: self._more(n) for n in self.divisible}

    def _more(self, number: int) -> int:
        of, picked = self.divisible[number], [0] * len(self.of.layers)
        sizes = [o.size for o in self.of.options[number]]
        ways = self.of.layers[number].ways
        small = min((n for n, way in enumerate(ways) if of.takes(way)), key=lambda n: sizes[n])
        picked[number] = small
        made = self._made(picked, Cut(number, 0, of.channels // 2))
        linear = sizes[small] * (1 - (of.channels // 2) / of.channels)
        return max(0, round(len(write(made)) - self.of.float_bytes - linear))

    def _point(self, picked: Sequence[int], cut: Cut | None = None) -> Point:
        if (known := self._measured.get((tuple(picked), cut))) is not None:
            return known
        made = self._made(picked, cut)
        ratio = _db(max(self.of.errors(made)))
        found = Point(len(write(made)), ratio, self._predicted(picked, cut), tuple(picked), cut)
        self._measured[found.picked, cut] = found
        return found

    @cached_property
    def _measured(self) -> dict[tuple[tuple[int, ...], Cut | None], Point]:
        """The points whose files were made."""
        return {}

    def _made(self, picked: Sequence[int], cut: Cut | None) -> Model:
        ways = [layer.ways[o] for layer, o in zip(self.of.layers, picked, strict=True)]
        if cut is None or self.divisible[cut.layer].joined:
            if cut is not None:
                ways[cut.layer] = self._joined(picked, cut)
            return self.of.made({place: choice for way in ways for place, choice in way.chosen.items()})
        parts = split(self.of.model, self.divisible[cut.layer], cut)
        chosen = cut_choices(self.of.layers, picked, cut, parts)
        return self.of.made(chosen, parts.model, cut_moments(self.of.moments, parts))

    def _joined(self, picked: Sequence[int], cut: Cut) -> Way:
        layer = self.of.layers[cut.layer]
        share = cut.channels / self.divisible[cut.layer].channels
        return joined(self.of.model, layer, (layer.ways[picked[cut.layer]], layer.ways[cut.way]), share)

    def _predicted(self, picked: Sequence[int], cut: Cut | None) -> float:
        harm = sum(options[o].harm for options, o in zip(self.of.options, picked, strict=True))
        if cut is not None:
            share, options = cut.channels / self.divisible[cut.layer].channels, self.of.options[cut.layer]
            harm += share * (options[cut.way].harm - options[picked[cut.layer]].harm)
        return _db(harm)

    def for_size(self, budget: int) -> Frontier:
        """Return the outcome for the smallest error of a file of ``budget`` bytes at most.

        A layer is divided if no file otherwise comes within a percent. Raises ConversionError if the smallest file is
        larger.
        """
        best = self._point(self._within(self.choices.floor))
        if best.size_bytes > budget:
            raise ConversionError(f"quantize: budget of {budget} bytes: the smallest file has {best.size_bytes}")
        # Costs do not quite add up: layers share vectors of a file, and bins round up.
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
        if best.size_bytes < _WITHIN * budget and any(best.picked):
            list(self._cut_within(budget))
            list(self._filled(best, budget))
            best = self._best(budget)
        return replace(self._frontier(best), note=self._note(best, budget))

    def _best(self, budget: int) -> Point:
        """Return the most accurate point that was measured within a budget, the smallest of equal ones."""
        within = (p for p in self._measured.values() if p.size_bytes <= budget)
        return max(within, key=lambda point: (point.sqnr_db, -point.size_bytes))

    def _smallest(self, ratio_db: float) -> Point:
        """Return the smallest point that was measured with a ratio, the most accurate of equal ones."""
        good = (p for p in self._measured.values() if p.sqnr_db >= ratio_db)
        return min(good, key=lambda point: (point.size_bytes, -point.sqnr_db))

    def _refined(self, best: Point, more: Callable[[Point], int], chosen: Callable[[], Point]) -> Point:
        """Return the best of a point and those near it: errors nearly add up, so the most promising are measured.

        more: the bytes that others may take more. chosen: returns the best of all that were measured.
        """
        for _ in range(_ROUNDS):
            for picked in neighbours(self.of.whole, best.picked, more(best), _NEIGHBOURS):
                self._point(picked)
            found = chosen()
            if found.cut is not None or found.picked == best.picked:
                break
            best = found
        return best

    def _note(self, best: Point, budget: int) -> str:
        """Return why a file is more than a percent smaller than it may be."""
        if best.size_bytes >= _WITHIN * budget or not any(best.picked):
            return ""
        within = [p for p in self._measured.values() if p.size_bytes <= budget]
        if any(p.size_bytes > best.size_bytes for p in within):
            return (
                f"{best.size_bytes} of {budget} bytes: the most accurate of {len(within)} files that were measured; "
                "those that come nearer have larger errors"
            )
        nearest = self.choices.next_to(budget - self.of.float_bytes)
        sizes = {best.size_bytes, *(len(write(self._made(picked, None))) for picked in nearest)}
        below, above = max(s for s in sizes if s <= budget), min((s for s in sizes if s > budget), default=None)
        if self.divisible or below > best.size_bytes:
            return f"{best.size_bytes} of {budget} bytes: the most accurate of {len(within)} files that were measured"
        return f"{best.size_bytes} of {budget} bytes: no combination of ways comes nearer; the next larger has {above}"

    def _cut_within(self, size: float) -> Iterator[Point]:
        """Return the points of the most promising layers divided so that a file has a size at most."""
        target = size - self.of.float_bytes
        found = [divided(self._parts(i), i, self.others[i], target, self.more[i]) for i in self.divisible]
        fitting = sorted((d for d in found if d is not None), key=lambda d: d.harm)
        for plan in fitting[:_DIVIDED]:
            yield from self._cut_points(plan, size)

    def _filled(self, best: Point, size: int) -> Iterator[Point]:
        """Return the points of a file with some channels of one layer in more bits."""
        plans = []
        for number, of in self.divisible.items():
            own, ways, options = best.picked[number], self.of.layers[number].ways, self.of.options[number]
            left = size - best.size_bytes - self.more[number]
            for o, (way, option) in enumerate(zip(ways, options, strict=True)):
                more, harm = option.size - options[own].size, option.harm - options[own].harm
                if of.takes(way) and of.takes(ways[own]) and 0 < left < more and harm < 0:
                    plans.append(Divided(best.picked, number, o, left / more, harm * left / more))
        for plan in sorted(plans, key=lambda plan: plan.harm)[:_FILLED]:
            yield from self._cut_points(plan, size)

    def _parts(self, number: int) -> list[list[Option]]:
        """Return the options of all layers, and of the divided one those that its parts may have."""
        options, ways = list(self.of.options), self.of.layers[number].ways
        own = zip(options[number], map(self.divisible[number].takes, ways), strict=True)
        options[number] = [option if takes else replace(option, harm=math.inf) for option, takes in own]
        return options

    def _cut_points(self, plan: Divided, size: float) -> Iterator[Point]:
        of, options, own = self.divisible[plan.item], self.of.options[plan.item], plan.picked[plan.item]
        by_channel = (options[plan.option].size - options[own].size) / of.channels
        if not self.of.layers[plan.item].ways[own].entries or by_channel <= 0:
            return
        channels, tried = of.nearest(plan.share * of.channels), set[int]()
        while channels and channels not in tried and len(tried) < _ROUNDS:
            tried.add(channels)
            point = self._point(plan.picked, Cut(plan.item, plan.option, channels))
            rest = size - point.size_bytes
            if rest >= 0:
                yield point
            if 0 <= rest <= _NEAR / 4 * size:
                return
            channels = of.nearest(channels + math.floor(rest / by_channel))

    def _within(self, size: float) -> list[int]:
        picked = self.choices.within(max(size, self.choices.floor))
        assert picked is not None
        return picked

    def for_ratio(self, ratio_db: float) -> Frontier:
        """Return the outcome for the smallest file whose outputs all have at least a ratio of signal to error."""
        low, high, below = float(self.choices.floor), 0.0, self.of.float_bytes + self.choices.floor
        best = self._point([0] * len(self.of.layers))
        for _ in range(2 * _ROUNDS):
            middle = (low + high) / 2
            point = self._point(self._within(middle))
            if point.sqnr_db >= ratio_db:
                high = middle
                best = point if point.size_bytes < best.size_bytes else best
            else:
                low, below = middle, max(below, point.size_bytes)
            if high - low < _NEAR / 4 * self.of.float_bytes:
                break
        best = self._refined(best, lambda point: -1, lambda: self._smallest(ratio_db))
        if best.sqnr_db > ratio_db / _WITHIN:
            best = self._cut_for_ratio(ratio_db, best, below)
        return self._frontier(best)

    def _cut_for_ratio(self, ratio_db: float, best: Point, low: float) -> Point:
        """Return a smaller file with a divided layer that has the ratio, or else the given one."""
        high = float(best.size_bytes)
        while high - low > _NEAR * high:
            middle = (low + high) / 2
            good = [p for p in self._cut_within(middle) if p.sqnr_db >= ratio_db and p.size_bytes < best.size_bytes]
            best = min([best, *good], key=lambda point: point.size_bytes)
            low, high = (low, middle) if good else (middle, high)
        return best

    def _frontier(self, best: Point) -> Frontier:
        floor = self.choices.floor
        shares = (number / (_POINTS - 1) for number in range(_POINTS))
        unique = {tuple(self._within(floor * (1 - share))) for share in shares}
        unique -= {best.picked} if best.cut is None else set()
        points = sorted([best, *map(self._point, unique)], key=lambda point: point.size_bytes)
        rows = [
            Sensitivity(layer.name, way.name, self.of.float_bytes + option.size, _db(option.harm))
            for layer, options in zip(self.of.layers, self.of.options, strict=True)
            for way, option in zip(layer.ways, options, strict=True)
            if not way.mixed
        ]
        ways, entries = self._said(best)
        return Frontier(self.of.float_bytes, best, tuple(points), tuple(rows), ways, entries)

    def _said(self, best: Point) -> tuple[tuple[tuple[str, str], ...], tuple[dict[str, Any], ...]]:
        """Return the way of each layer in words, and the entries of a recipe."""
        ways, entries = [], list[dict[str, Any]]()
        for number, (layer, o) in enumerate(zip(self.of.layers, best.picked, strict=True)):
            cut = best.cut
            if cut is None or number != cut.layer:
                ways.append((layer.name, layer.ways[o].name))
                entries += layer.ways[o].entries
                continue
            total = self.divisible[number].channels
            first = f"{layer.ways[cut.way].name} for {cut.channels} of {total} channels"
            ways.append((layer.name, f"{first}, {layer.ways[o].name} for the rest"))
            joins = self.divisible[number].joined
            entries += self._joined(best.picked, cut).entries if joins else cut_entries(layer, o, cut)
        return tuple(ways), tuple(entries)


def _db(error: float) -> float:
    return math.inf if error <= 0 else -10 * math.log10(error)
