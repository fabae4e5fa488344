"""The layers of a model in every way to store them: what each costs, and the errors that it makes, measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from litecl.converter.quantization.data import Sample
from litecl.converter.quantization.difference import Difference
from litecl.converter.quantization.gptq import Moments
from litecl.converter.quantization.measure import QuantizedRunner
from litecl.converter.quantization.moments import has_moments, moments
from litecl.converter.quantization.recipes.choices import Choice
from litecl.converter.quantization.recipes.knapsack import Option
from litecl.converter.quantization.recipes.layers import Layer, Place, layers_of
from litecl.converter.quantization.recipes.operands import FLOAT, mixed, mixes, positions_of
from litecl.converter.quantization.recipes.recipe import FORMS
from litecl.converter.quantization.recipes.weights import narrowed
from litecl.converter.quantization.watch import Runner
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model

_WORST_DB = 100.0  # of an output without a signal

_SMALL = 0.01  # of a file: layers that differ by less between their ways
_OF_OPERANDS = 16  # samples that single operands are measured on
_ALIKE = (FLOAT, "float16", "int8", "int4", "int2")  # of all operands, which the layer has as ways


@dataclass(frozen=True)
class Priced:
    """The prices of a model.

    samples: that the inputs of layers are measured on. measured: of these, how many outputs are compared on.
    widened: whether all weights are widened to floats, or those alone that no kernel multiplies as integers.
    """

    model: Model
    samples: Sequence[Sample]
    measured: int
    widened: bool

    @property
    def layers(self) -> list[Layer]:
        """The layers, with the ways that are for parts of their channels last."""
        return [layer for layer, _ in self._priced]

    @property
    def options(self) -> list[list[Option]]:
        """The cost of each way to store each layer alone, next to the file in float, and its error."""
        return [options for _, options in self._priced]

    @property
    def whole(self) -> list[list[Option]]:
        """The options without those for parts of channels."""
        pairs = ((layer.ways, options) for layer, options in self._priced)
        return [[o for way, o in zip(ways, options, strict=True) if not way.part] for ways, options in pairs]

    @cached_property
    def float_bytes(self) -> int:
        """The bytes of the file in float."""
        return len(write(self.model))

    @cached_property
    def moments(self) -> Mapping[int, Mapping[int, Moments]]:
        """The moments of the inputs of layers, by subgraph and node."""
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
        """Return the model, or another with its moments, stored as chosen."""
        of, known = (self.model, self.moments) if model is None or moments is None else (model, moments)
        graphs = list(of.subgraphs)
        for i, graph in enumerate(graphs):
            own = {n: choice for (j, n), choice in chosen.items() if j == i}
            graphs[i] = narrowed(graph, own, known.get(i, {})).graph if own else graph
        return replace(of, subgraphs=tuple(graphs))

    def errors(self, made: Model, most: int | None = None) -> list[float]:
        """Return the squared error of each output, next to its signal. most: samples that are measured."""
        run, found = QuantizedRunner(made), dict[tuple[str, str], Difference]()
        for sample, wanted in islice(zip(self.samples, self._expected, strict=False), most):
            got = run(sample)
            for name, value in wanted.items():
                found.setdefault((sample[0].key, name), Difference()).add(value, got[name])
        return [min(10 ** (-max(of.sqnr_db, -_WORST_DB) / 10), 10 ** (_WORST_DB / 10)) for of in found.values()]

    @cached_property
    def _found(self) -> list[Layer]:
        found = layers_of(self.model, widened=self.widened)
        if not found:
            raise ConversionError("quantize: the model has no weights in float to search bits for")
        return found

    @cached_property
    def _expected(self) -> list[Mapping[str, Array]]:
        run = Runner(self.model)
        return [run(sample) for sample in self.samples[: self.measured]]

    @cached_property
    def _priced(self) -> list[tuple[Layer, list[Option]]]:
        return [self._priced_layer(layer) for layer in self._found]

    def _priced_layer(self, layer: Layer) -> tuple[Layer, list[Option]]:
        """Return a layer with the costs of its ways; a small one is not divided, nor are its operands stored apart."""
        whole = tuple(way for way in layer.ways if not way.part)
        options = [self._option(way.chosen) for way in whole]
        sizes = [option.size for option in options]
        if max(sizes) - min(sizes) <= _SMALL * self.float_bytes:
            return replace(layer, ways=whole, joins=False), options
        parts = [self._option(way.chosen) for way in layer.ways if way.part]
        return self._with_mixes(layer, [*options, *parts])

    def _option(self, chosen: Mapping[Place, Choice], most: int | None = None) -> Option:
        if not chosen:
            return Option(0, 0.0)
        made = self.made(chosen)
        return Option(len(write(made)) - self.float_bytes, sum(self.errors(made, most)))

    def _with_mixes(self, layer: Layer, options: list[Option]) -> tuple[Layer, list[Option]]:
        """Return a layer with ways to store its operands in different bits: each is measured alone, and errors add."""
        positions = positions_of(layer)
        if not positions:
            return layer, options
        forms = [*FORMS]
        ones = [[{} if form == FLOAT else {p: form} for form in forms] for p in positions]
        chosen = [[mixed(self.model, layer, one).chosen if one else {} for one in own] for own in ones]
        items = [[self._option(one, _OF_OPERANDS) for one in own] for own in chosen]
        ways, prices = list(layer.ways), list(options)
        place = next((n for n, way in enumerate(ways) if way.part), len(ways))
        for picked in mixes(items):
            of = {p: forms[o] for p, o in zip(positions, picked, strict=True)}
            if {*of.values()} in ({name} for name in _ALIKE):
                continue
            own = [options[o] for options, o in zip(items, picked, strict=True)]
            ways.insert(place, replace(mixed(self.model, layer, of), mixed=True))
            prices.insert(place, Option(sum(o.size for o in own), sum(o.harm for o in own)))
        return replace(layer, ways=tuple(ways)), prices
