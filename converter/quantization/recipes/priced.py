"""Prices every way to store each layer of a model: its cost in bytes, and its measured error."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from litecl.converter.quantization.data import Sample
from litecl.converter.quantization.difference import Difference
from litecl.converter.quantization.gptq import Moments
from litecl.converter.quantization.measure import QuantizedRunner
from litecl.converter.quantization.moments import has_moments, moments
from litecl.converter.quantization.recipes.alone import Part, Tail, Tails, alone
from litecl.converter.quantization.recipes.choices import Choice
from litecl.converter.quantization.recipes.kept import Kept
from litecl.converter.quantization.recipes.knapsack import Option
from litecl.converter.quantization.recipes.layers import Layer, Place, layers_of
from litecl.converter.quantization.recipes.operands import FLOAT, mixed, mixes, positions_of
from litecl.converter.quantization.recipes.recipe import FORMS
from litecl.converter.quantization.recipes.weights import narrowed
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model

_WORST_DB = 100.0  # of an output without signal

_SMALL = 0.01  # of a file: smaller layers are not split by operand
_OF_OPERANDS = 16  # samples to measure single operands on
_ALIKE = (FLOAT, "float16", "int8", "int4", "int2")  # forms that the layer already has as ways for all operands

Progress = Callable[[int, int], None]
"""Receives the number of layers measured so far, and the total."""


def silent(done: int, total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class Priced:
    """A model with prices.

    samples: to measure layer inputs on. measured: how many of them to compare outputs on.
    widened: whether to dequantize all weights, or only those that no kernel multiplies as integers.
    progress: receives the number of layers measured so far, and the total.

    A layer's bytes are those it adds to the file, to within the padding of constants. Its error is measured by running
    the nodes from it on, if the earlier ones can't change.
    """

    model: Model
    samples: Sequence[Sample]
    measured: int
    widened: bool
    progress: Progress = silent

    @property
    def layers(self) -> list[Layer]:
        """The layers, with the ways to store each."""
        return [layer for layer, _ in self._priced]

    @property
    def options(self) -> list[list[Option]]:
        """For each way to store each layer alone: its cost relative to the float file, and its error."""
        return [options for _, options in self._priced]

    @cached_property
    def float_bytes(self) -> int:
        """The size of the float file."""
        return len(write(self.model))

    @cached_property
    def moments(self) -> Mapping[int, Mapping[int, Moments]]:
        """The moments of layer inputs, by subgraph and node."""
        places = {place for layer in self._found for way in layer.ways for place in way.chosen}
        wanted: dict[int, list[int]] = {}
        for i, n in sorted(places):
            if has_moments(self.model.subgraphs[i], self.model.subgraphs[i].nodes[n]):
                wanted.setdefault(i, []).append(n)
        return moments(self.model, wanted, self.samples)

    def made(
        self,
        chosen: Mapping[Place, Choice],
        model: Model | None = None,
        moments: Mapping[int, Mapping[int, Moments]] | None = None,
    ) -> Model:
        """Return the model, or another with its moments, stored as chosen; the model's stored constants are cached."""
        of, known = (self.model, self.moments) if model is None or moments is None else (model, moments)
        graphs = list(of.subgraphs)
        for i, graph in enumerate(graphs):
            own = {n: choice for (j, n), choice in chosen.items() if j == i}
            graphs[i] = narrowed(graph, own, known.get(i, {}), self._kept).graph if own else graph
        return replace(of, subgraphs=tuple(graphs))

    def errors(self, changed: Model) -> list[float]:
        """Return the squared error of each output, relative to its signal."""
        return self._errors(changed, self.samples[: self.measured])

    def _errors(self, changed: Model, samples: Sequence[Sample]) -> list[float]:
        """Return the errors of a model or of a tail, on the given samples."""
        run, differences = QuantizedRunner(changed), dict[tuple[str, str], Difference]()
        for sample, wanted in zip(samples, self._tails.expected, strict=False):
            got = run(sample)
            for name, value in wanted.items():
                differences.setdefault((sample[0].key, name), Difference()).add(value, got[name])
        return [min(10 ** (-max(of.sqnr_db, -_WORST_DB) / 10), 10 ** (_WORST_DB / 10)) for of in differences.values()]

    @cached_property
    def _found(self) -> list[Layer]:
        layers = layers_of(self.model, widened=self.widened)
        if not layers:
            raise ConversionError("quantize: the model has no weights in float to search bits for")
        return layers

    @cached_property
    def _tails(self) -> Tails:
        firsts = [min(n for _, n in layer.places) for layer in self._found]
        return Tails(self.model, self.samples[: self.measured], firsts)

    @cached_property
    def _kept(self) -> Kept:
        specs = (spec for graph in self.model.subgraphs for spec in graph.tensors)
        return Kept([spec.data for spec in specs if spec.data is not None])

    @cached_property
    def _priced(self) -> list[tuple[Layer, list[Option]]]:
        options = list[tuple[Layer, list[Option]]]()
        for number, layer in enumerate(self._found):
            self.progress(number, len(self._found))
            options.append(self._priced_layer(layer))
        self.progress(len(options), len(options))
        return options

    def _priced_layer(self, layer: Layer) -> tuple[Layer, list[Option]]:
        """Return a layer with the costs of its ways; small layers are not split by operand."""
        alone = self._alone(layer)
        options = [alone.option(way.chosen) for way in layer.ways]
        sizes = [option.size for option in options]
        if max(sizes) - min(sizes) <= _SMALL * self.float_bytes:
            return replace(layer, by_operand=False), options
        return self._with_mixes(alone, layer, options)

    def _alone(self, layer: Layer) -> "_Alone":
        tail = self._tails.of(min(n for _, n in layer.places))
        used = self.samples[: self.measured]
        if tail is None:
            tail = Tail(Part(self.model, {place: place for place in layer.places}), used)
        return _Alone(self, alone(self.model, layer.places), tail)

    def _with_mixes(self, alone: "_Alone", layer: Layer, options: list[Option]) -> tuple[Layer, list[Option]]:
        """Add ways that store operands in different bits; operands are measured one by one, and errors are added."""
        positions = positions_of(layer)
        if not positions:
            return layer, options
        forms = [*FORMS]
        ones = [[{} if form == FLOAT else {p: form} for form in forms] for p in positions]
        chosen = [[mixed(self.model, layer, one).chosen if one else {} for one in own] for own in ones]
        items = [[alone.option(one, _OF_OPERANDS) for one in own] for own in chosen]
        ways, prices = list(layer.ways), list(options)
        for picked in mixes(items):
            of = {p: forms[o] for p, o in zip(positions, picked, strict=True)}
            if {*of.values()} in ({name} for name in _ALIKE):
                continue
            own = [options[o] for options, o in zip(items, picked, strict=True)]
            ways.append(replace(mixed(self.model, layer, of), mixed=True))
            prices.append(Option(sum(o.size for o in own), sum(o.harm for o in own)))
        return replace(layer, ways=tuple(ways)), prices


@dataclass(frozen=True)
class _Alone:
    """A layer of a priced model. part: the layer alone. tail: the model's nodes from it on."""

    of: Priced
    part: Part
    tail: Tail

    @cached_property
    def _bytes(self) -> int:
        return len(write(self.part.model))

    def option(self, chosen: Mapping[Place, Choice], most: int | None = None) -> Option:
        """Return the cost of a choice for the layer while all others stay in float. most: samples to measure on."""
        if not chosen:
            return Option(0, 0.0)
        size = len(write(self._stored(self.part, chosen))) - self._bytes
        return Option(size, sum(self.of._errors(self._stored(self.tail.part, chosen), self.tail.samples[:most])))

    def _stored(self, part: Part, chosen: Mapping[Place, Choice]) -> Model:
        moments: dict[int, dict[int, Moments]] = {}
        for place in chosen.keys() & part.places.keys():
            i, n = part.places[place]
            if (own := self.of.moments.get(place[0], {}).get(place[1])) is not None:
                moments.setdefault(i, {})[n] = own
        return self.of.made({part.places[place]: choice for place, choice in chosen.items()}, part.model, moments)
