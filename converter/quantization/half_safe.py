"""Rescales models by powers of two so that nothing leaves the float16 range, where that is exact."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import frexp, prod
from typing import Any

import numpy as np

from litecl.converter.quantization.calibrate import Ranges, calibrate
from litecl.converter.quantization.data import Sample, samples, signatures_of
from litecl.converter.quantization.observers import MinMax
from litecl.converter.quantization.options import Quantization
from litecl.converter.quantization.powers import Exponents, Need, Operand, solved, value
from litecl.converter.quantization.report import Rescaled
from litecl.converter.quantization.watch import Runner
from litecl.interpreter.graph import Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D
from litecl.interpreter.ops.reduce import MEAN
from litecl.interpreter.schema import TensorType

_EXPONENT = 15  # 2**15 leaves a factor of 2 to 65504, for other inputs
_LEAST_WEIGHTS = -6  # weights whose largest is at least 2**-6 keep most of their digits


def half_safe(model: Model, data: Any) -> tuple[Model, Rescaled]:
    """Return a bit-identical model that computes smaller numbers, and what was rescaled.

    data: representative samples, as ``Quantization.data``, or True for random inputs. Raises ConversionError for
    others.
    """
    used = _random(model) if data is True else samples(Quantization(activations="int8", data=data), model)
    known = calibrate(model, used, MinMax)
    parts = [_Graph(graph, known[i]) for i, graph in enumerate(model.subgraphs)]
    rescaled = [part.rescaled() for part in parts]
    smaller = replace(model, subgraphs=tuple(graph for graph, _, _ in rescaled))
    powers = {name: power for _, own, _ in rescaled for name, power in own.items()}
    left = {name: size for _, _, own in rescaled for name, size in own.items()}
    if not powers:
        return model, Rescaled({}, left, data is True)
    if not (all(part.is_exact for part in parts) and _are_same(model, smaller, used)):
        everything = {name: size for i, graph in enumerate(model.subgraphs) for name, size in _beyond(graph, known[i])}
        return model, Rescaled({}, everything, data is True, "rescaled weights would lose digits in float32")
    return smaller, Rescaled(powers, left, data is True)


def _random(model: Model) -> list[Sample]:
    """Return one sample per signature: standard normal floats, and zeros for other types."""
    rng = np.random.default_rng(0)

    def drawn(spec: TensorSpec) -> Array:
        shape = [max(1, n) for n in spec.shape_signature or spec.shape or ()]
        return (
            rng.standard_normal(shape).astype(np.float32)
            if spec.type == TensorType.FLOAT32
            else np.zeros(shape, spec.dtype)
        )

    return [
        (s, {name: drawn(model.subgraphs[s.subgraph].tensors[t]) for name, t in s.inputs.items()})
        for s in signatures_of(model)
    ]


def _are_same(model: Model, other: Model, used: Sequence[Sample]) -> bool:
    first, second = Runner(model), Runner(other)
    pairs = ((first(sample), second(sample)) for sample in used)
    return all(np.array_equal(a[name], b[name], equal_nan=a[name].dtype.kind == "f") for a, b in pairs for name in a)


def _size(known: Ranges, tensor: int) -> float:
    return max(abs(known[tensor].low), abs(known[tensor].high)) if tensor in known else 0.0


def _beyond(graph: Subgraph, known: Ranges) -> list[tuple[str, float]]:
    sizes = [(graph.tensors[t].name, _size(known, t)) for node in graph.nodes for t in node.outputs]
    return [(name, size) for name, size in sizes if size > 2**_EXPONENT]


class _Graph:
    """A subgraph with exponents for its tensors. known: their ranges. is_exact: whether constants kept all digits."""

    def __init__(self, graph: Subgraph, known: Ranges) -> None:
        self.is_exact = True
        self._graph, self._known = graph, known
        self._forms = Exponents(graph) if known else None

    def rescaled(self) -> tuple[Subgraph, dict[str, int], dict[str, float]]:
        """Return the rescaled subgraph, the powers by name, and the sizes of tensors that are still too large."""
        if self._forms is None or not _beyond(self._graph, self._known):
            return self._graph, {}, {}
        whole = [*self._forms.tensors.values(), *self._forms.constants.values()]
        values = solved(self._needs(), whole)
        results = [t for node in self._graph.nodes for t in node.outputs if t in self._forms.tensors]
        powers = {t: int(value(self._forms.tensors[t], values)) for t in results}
        sizes = {t: _size(self._known, t) * 2.0 ** -powers[t] for t in results}
        name = {t: self._graph.tensors[t].name for t in results}
        left = {name[t]: size for t, size in sizes.items() if size > 2**_EXPONENT}
        factors = {operand: int(value(form, values)) for operand, form in self._forms.constants.items()}
        return self._with(factors), {name[t]: power for t, power in powers.items() if power}, left

    def _needs(self) -> list[Need]:
        """Return the conditions that keep results, sums within operators, and constants in range."""
        assert self._forms is not None
        needs = []
        for node in self._graph.nodes:
            for tensor in (t for t in node.outputs if t in self._forms.tensors):
                size = _size(self._known, tensor) * _count(self._graph, node)
                needs.append(Need(self._forms.tensors[tensor], _exponent(size) - _EXPONENT))
        for (number, position), form in self._forms.constants.items():
            data = self._graph.tensors[self._graph.nodes[number].inputs[position]].data
            size = 0.0 if data is None else float(np.abs(data).max(initial=0.0))
            if size:
                needs.append(Need(form, _exponent(size) - _EXPONENT))
                needs.append(Need({v: -c for v, c in form.items()}, min(0, _LEAST_WEIGHTS - _exponent(size))))
        return [need for need in needs if need.form]

    def _with(self, factors: Mapping[Operand, int]) -> Subgraph:
        """Return the subgraph with constants divided by powers of two, per use."""
        tensors, nodes = [*self._graph.tensors], [*self._graph.nodes]
        reads = Counter([*self._graph.outputs, *(t for node in nodes for t in node.inputs)])
        for (number, position), power in ((operand, power) for operand, power in factors.items() if power):
            tensor = nodes[number].inputs[position]
            spec = self._graph.tensors[tensor]
            assert spec.data is not None
            data = np.ldexp(spec.data, -power)
            self.is_exact &= np.array_equal(np.ldexp(data, power), spec.data)
            divided = replace(spec, data=data)
            if reads[tensor] == 1:
                tensors[tensor] = divided
                continue
            inputs = [*nodes[number].inputs]
            inputs[position] = len(tensors)
            tensors.append(replace(divided, name=f"{spec.name}/2**{power}"))
            nodes[number] = replace(nodes[number], inputs=tuple(inputs))
        return replace(self._graph, tensors=tuple(tensors), nodes=tuple(nodes))


def _exponent(size: float) -> int:
    """Return the exponent of the smallest power of two that is at least ``size``, and 0 for 0."""
    mantissa, exponent = frexp(size)
    return exponent - (mantissa == 0.5)


def _count(graph: Subgraph, node: Node) -> int:
    """Return how many numbers an operator sums before dividing by their count."""
    if node.op is AVERAGE_POOL_2D:
        return int(node.options.filter_width * node.options.filter_height)
    if node.op is MEAN:
        x, y = (graph.tensors[t] for t in (node.inputs[0], node.outputs[0]))
        return prod(x.shape or (1,)) // max(1, prod(y.shape or (1,)))
    return 1
