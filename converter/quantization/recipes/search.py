"""Bits for each layer: the recipe of the smallest error within a size, or of the smallest size for an error."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from litecl.converter.quantization.data import Sample
from litecl.converter.quantization.difference import Difference
from litecl.converter.quantization.frontier import Frontier, Point, Sensitivity
from litecl.converter.quantization.gptq import Moments
from litecl.converter.quantization.measure import QuantizedRunner
from litecl.converter.quantization.moments import has_moments, moments
from litecl.converter.quantization.recipes.choices import Choice
from litecl.converter.quantization.recipes.knapsack import Choices, Option, choices_of
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

    def _option(self, chosen: Mapping[Place, Choice]) -> Option:
        if not chosen:
            return Option(0, 0.0)
        made = self._made(chosen)
        return Option(len(write(made)) - self.whole, sum(self._errors(made)))

    def _made(self, chosen: Mapping[Place, Choice]) -> Model:
        graphs = list(self.model.subgraphs)
        for i, graph in enumerate(graphs):
            own = {n: choice for (j, n), choice in chosen.items() if j == i}
            graphs[i] = narrowed(graph, own, self.moments.get(i, {})).graph if own else graph
        return replace(self.model, subgraphs=tuple(graphs))

    def _errors(self, made: Model) -> list[float]:
        """Return the squared error of each output, next to its signal."""
        run, found = QuantizedRunner(made), dict[tuple[str, str], Difference]()
        for sample, wanted in zip(self.samples[: self.measured], self.expected, strict=True):
            got = run(sample)
            for name, value in wanted.items():
                found.setdefault((sample[0].key, name), Difference()).add(value, got[name])
        return [min(10 ** (-max(of.sqnr_db, -_WORST_DB) / 10), 10 ** (_WORST_DB / 10)) for of in found.values()]

    def _point(self, picked: Sequence[int]) -> Point:
        chosen = {p: c for layer, o in zip(self.layers, picked, strict=True) for p, c in layer.ways[o].chosen.items()}
        made = self._made(chosen)
        return Point(len(write(made)), _db(max(self._errors(made))), self._predicted(picked), tuple(picked))

    def _predicted(self, picked: Sequence[int]) -> float:
        return _db(sum(options[o].harm for options, o in zip(self.options, picked, strict=True)))

    def for_size(self, budget: int) -> Frontier:
        """Return the outcome for the smallest error of a file of ``budget`` bytes at most.

        Raises ConversionError if the smallest file is larger.
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
        return self._frontier(best)

    def _within(self, size: float) -> list[int]:
        picked = self.choices.within(max(size, self.choices.floor))
        assert picked is not None
        return picked

    def for_ratio(self, ratio_db: float) -> Frontier:
        """Return the outcome for the smallest file whose outputs all have at least a ratio of signal to error."""
        low, high = float(self.choices.floor), 0.0
        best = self._point([0] * len(self.layers))
        for _ in range(2 * _ROUNDS):
            middle = (low + high) / 2
            point = self._point(self._within(middle))
            if point.sqnr_db >= ratio_db:
                high = middle
                best = point if point.size_bytes < best.size_bytes else best
            else:
                low = middle
            if high - low < _NEAR / 4 * self.whole:
                break
        return self._frontier(best)

    def _frontier(self, best: Point) -> Frontier:
        floor = self.choices.floor
        shares = (number / (_POINTS - 1) for number in range(_POINTS))
        unique = {tuple(self._within(floor * (1 - share))) for share in shares} - {best.picked}
        points = sorted([best, *map(self._point, unique)], key=lambda point: point.size_bytes)
        entries = [e for layer, o in zip(self.layers, best.picked, strict=True) for e in layer.ways[o].entries]
        rows = [
            Sensitivity(layer.name, way.name, self.whole + option.size, _db(option.harm))
            for layer, options in zip(self.layers, self.options, strict=True)
            for way, option in zip(layer.ways, options, strict=True)
        ]
        ways = tuple((layer.name, layer.ways[o].name) for layer, o in zip(self.layers, best.picked, strict=True))
        return Frontier(self.whole, best, tuple(points), tuple(rows), ways, tuple(entries))


def _db(error: float) -> float:
    return math.inf if error <= 0 else -10 * math.log10(error)
