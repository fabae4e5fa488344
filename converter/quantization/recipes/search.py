"""Bits for each layer: the recipe of the smallest error within a size, or of the smallest size for an error."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from litecl.converter.quantization.data import Sample
from litecl.converter.quantization.difference import Difference
from litecl.converter.quantization.frontier import Cut, Frontier, Point, Sensitivity
from litecl.converter.quantization.gptq import Moments
from litecl.converter.quantization.measure import QuantizedRunner
from litecl.converter.quantization.moments import has_moments, moments
from litecl.converter.quantization.recipes.choices import Choice
from litecl.converter.quantization.recipes.cut import (
    Divisible,
    cut_choices,
    cut_entries,
    cut_moments,
    divisible,
    split,
)
from litecl.converter.quantization.recipes.knapsack import Choices, Divided, Option, choices_of, divided
from litecl.converter.quantization.recipes.layers import Layer, Place, layers_of
from litecl.converter.quantization.recipes.weights import narrowed
from litecl.converter.quantization.watch import Runner
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model

_POINTS = 9  # of the frontier, that are measured
_ROUNDS = 8  # of steps towards a size or an error
_WORST_DB = 100.0  # of an output without a signal
_NEAR = 0.004  # of a budget: as near as it is met, if the ways allow
_WITHIN = 0.99  # of a budget, or of a ratio: nearer, no layer is divided
_LARGE = 16  # layers that are tried to be divided
_DIVIDED = 3  # of these, whose files are made


@dataclass(frozen=True)
class Search:
    """The search in a model.

    samples: that the inputs of layers are measured on. measured: of these, how many outputs are compared on.
    widened: whether all weights are widened to floats, or those alone that no kernel multiplies as integers.
    """

    model: Model
    samples: Sequence[Sample]
    measured: int
    widened: bool

    @cached_property
    def layers(self) -> list[Layer]:
        found = layers_of(self.model, widened=self.widened)
        if not found:
            raise ConversionError("quantize: the model has no weights in float to search bits for")
        return found

    @cached_property
    def expected(self) -> list[Mapping[str, Array]]:
        run = Runner(self.model)
        return [run(sample) for sample in self.samples[: self.measured]]

    @cached_property
    def moments(self) -> Mapping[int, Mapping[int, Moments]]:
        places = {place for layer in self.layers for way in layer.ways for place in way.chosen}
        wanted: dict[int, list[int]] = {}
        for i, n in sorted(places):
            if has_moments(self.model.subgraphs[i], self.model.subgraphs[i].nodes[n]):
                wanted.setdefault(i, []).append(n)
        return moments(self.model, wanted, self.samples)

    @cached_property
    def whole(self) -> int:
        """The bytes of the file in float."""
        return len(write(self.model))

    @cached_property
    def options(self) -> list[list[Option]]:
        """The cost of each way to store each layer alone, next to the file in float, and its error."""
        return [[self._option(way.chosen) for way in layer.ways] for layer in self.layers]

    @cached_property
    def choices(self) -> Choices:
        return choices_of(self.options)

    @cached_property
    def divisible(self) -> Mapping[int, Divisible]:
        """The layers that can be divided and whose ways differ by much, the largest first, by number."""
        found = {n: divisible(self.model, layer) for n, layer in enumerate(self.layers)}
        spans = {n: max(o.size for o in own) - min(o.size for o in own) for n, own in enumerate(self.options)}
        large = sorted((n for n in found if spans[n] > (1 - _WITHIN) * self.whole), key=lambda n: -spans[n])
        return {n: of for n in large[:_LARGE] if (of := found[n]) is not None}

    @cached_property
    def others(self) -> Mapping[int, Choices]:
        """The choices of all layers but one, by the number of that one."""
        return {n: choices_of([*self.options[:n], *self.options[n + 1 :]]) for n in self.divisible}

    def _option(self, chosen: Mapping[Place, Choice]) -> Option:
        if not chosen:
            return Option(0, 0.0)
        made = self._made(chosen)
        return Option(len(write(made)) - self.whole, sum(self._errors(made)))

    def _made(
        self,
        chosen: Mapping[Place, Choice],
        model: Model | None = None,
        moments: Mapping[int, Mapping[int, Moments]] | None = None,
    ) -> Model:
        of, known = (self.model, self.moments) if model is None or moments is None else (model, moments)
        graphs = list(of.subgraphs)
        for i, graph in enumerate(graphs):
            own = {n: choice for (j, n), choice in chosen.items() if j == i}
            graphs[i] = narrowed(graph, own, known.get(i, {})).graph if own else graph
        return replace(of, subgraphs=tuple(graphs))

    def _errors(self, made: Model) -> list[float]:
        """Return the squared error of each output, next to its signal."""
        run, found = QuantizedRunner(made), dict[tuple[str, str], Difference]()
        for sample, wanted in zip(self.samples[: self.measured], self.expected, strict=True):
            got = run(sample)
            for name, value in wanted.items():
                found.setdefault((sample[0].key, name), Difference()).add(value, got[name])
        return [min(10 ** (-max(of.sqnr_db, -_WORST_DB) / 10), 10 ** (_WORST_DB / 10)) for of in found.values()]

    def _point(self, picked: Sequence[int], cut: Cut | None = None) -> Point:
        if cut is None:
            chosen = {
                p: c for layer, o in zip(self.layers, picked, strict=True) for p, c in layer.ways[o].chosen.items()
            }
            made = self._made(chosen)
        else:
            parts = split(self.model, self.divisible[cut.layer], cut)
            chosen = cut_choices(self.layers, picked, cut, parts)
            made = self._made(chosen, parts.model, cut_moments(self.moments, parts))
        return Point(len(write(made)), _db(max(self._errors(made))), self._predicted(picked, cut), tuple(picked), cut)

    def _predicted(self, picked: Sequence[int], cut: Cut | None) -> float:
        harm = sum(options[o].harm for options, o in zip(self.options, picked, strict=True))
        if cut is not None:
            share, options = cut.channels / self.divisible[cut.layer].channels, self.options[cut.layer]
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
        target = float(self.choices.floor + budget - best.size_bytes)
        for _ in range(_ROUNDS):
            point = self._point(self._within(target))
            if point.size_bytes <= budget and point.sqnr_db > best.sqnr_db:
                best = point
            rest = budget - point.size_bytes
            if 0 <= rest <= _NEAR * budget or not any(point.picked):
                break
            target += rest
        if best.size_bytes < _WITHIN * budget and any(best.picked):
            best = max([best, *self._cut_within(budget)], key=lambda point: point.sqnr_db)
        return replace(self._frontier(best), note=self._note(best, budget))

    def _note(self, best: Point, budget: int) -> str:
        """Return why a file is more than a percent smaller than it may be."""
        if best.size_bytes >= _WITHIN * budget or not any(best.picked):
            return ""
        near = self.choices.reaches(_WITHIN * budget - self.whole, budget - self.whole)
        why = "those that come nearer have larger errors" if near else "no combination of ways comes nearer"
        return f"{best.size_bytes} of {budget} bytes: {why}"

    def _cut_within(self, size: float) -> Iterator[Point]:
        """Return the points of the most promising layers divided so that a file has a size at most."""
        target = size - self.whole
        found = [divided(self._parts(i), i, self.others[i], target) for i in self.divisible]
        fitting = sorted((d for d in found if d is not None), key=lambda d: d.harm)
        for plan in fitting[:_DIVIDED]:
            yield from self._cut_points(plan, size)

    def _parts(self, number: int) -> list[list[Option]]:
        """Return the options of all layers; blocks of a table's columns leave too few places to divide it."""
        options = list(self.options)
        if self.divisible[number].columns:
            blocks = [any(c.form.block for c in way.chosen.values()) for way in self.layers[number].ways]
            own = zip(options[number], blocks, strict=True)
            options[number] = [replace(option, harm=math.inf) if block else option for option, block in own]
        return options

    def _cut_points(self, plan: Divided, size: float) -> Iterator[Point]:
        of, options, own = self.divisible[plan.item], self.options[plan.item], plan.picked[plan.item]
        by_channel = (options[plan.option].size - options[own].size) / of.channels
        if not self.layers[plan.item].ways[own].entries or by_channel <= 0:
            return
        channels, tried = of.nearest(plan.share * of.channels), set[int]()
        while channels and channels not in tried and len(tried) < _ROUNDS:
            tried.add(channels)
            point = self._point(plan.picked, Cut(plan.item, plan.option, channels))
            rest = size - point.size_bytes
            if rest >= 0:
                yield point
            if 0 <= rest <= _NEAR * size:
                return
            channels = of.nearest(channels + math.floor(rest / by_channel))

    def _within(self, size: float) -> list[int]:
        picked = self.choices.within(max(size, self.choices.floor))
        assert picked is not None
        return picked

    def for_ratio(self, ratio_db: float) -> Frontier:
        """Return the outcome for the smallest file whose outputs all have at least a ratio of signal to error."""
        low, high, below = float(self.choices.floor), 0.0, self.whole + self.choices.floor
        best = self._point([0] * len(self.layers))
        for _ in range(2 * _ROUNDS):
            middle = (low + high) / 2
            point = self._point(self._within(middle))
            if point.sqnr_db >= ratio_db:
                high = middle
                best = point if point.size_bytes < best.size_bytes else best
            else:
                low, below = middle, max(below, point.size_bytes)
            if high - low < _NEAR / 4 * self.whole:
                break
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
            Sensitivity(layer.name, way.name, self.whole + option.size, _db(option.harm))
            for layer, options in zip(self.layers, self.options, strict=True)
            for way, option in zip(layer.ways, options, strict=True)
        ]
        ways, entries = self._said(best)
        return Frontier(self.whole, best, tuple(points), tuple(rows), ways, entries)

    def _said(self, best: Point) -> tuple[tuple[tuple[str, str], ...], tuple[dict[str, Any], ...]]:
        """Return the way of each layer in words, and the entries of a recipe."""
        ways, entries = [], list[dict[str, Any]]()
        for number, (layer, o) in enumerate(zip(self.layers, best.picked, strict=True)):
            cut = best.cut
            if cut is None or number != cut.layer:
                ways.append((layer.name, layer.ways[o].name))
                entries += layer.ways[o].entries
                continue
            total = self.divisible[number].channels
            first = f"{layer.ways[cut.way].name} for {cut.channels} of {total} channels"
            ways.append((layer.name, f"{first}, {layer.ways[o].name} for the rest"))
            entries += cut_entries(layer, o, cut)
        return tuple(ways), tuple(entries)


def _db(error: float) -> float:
    return math.inf if error <= 0 else -10 * math.log10(error)
