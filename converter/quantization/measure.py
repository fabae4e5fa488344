"""Compares a quantized model with the float model, layer by layer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from litecl.converter.quantization.aware import CONVERSION
from litecl.converter.quantization.choose import results
from litecl.converter.quantization.data import Sample, signatures_of
from litecl.converter.quantization.difference import Difference
from litecl.converter.quantization.integers import Quantized, quantize_model
from litecl.converter.quantization.options import Quantization
from litecl.converter.quantization.report import Layer, Output, QuantizationReport
from litecl.converter.quantization.scales import dequantize, quantize
from litecl.converter.quantization.watch import After, Look, Runner
from litecl.interpreter.graph import ABSENT, Array, Model, Signature, Subgraph, TensorSpec
from litecl.interpreter.kit.types import integer_limits
from litecl.interpreter.op import Op, Run
from litecl.interpreter.schema import TensorType

_Values = dict[int, Array]


@dataclass
class _Result:
    """The measurements for one result of a node."""

    whole: Difference = field(default_factory=Difference)
    own: Difference = field(default_factory=Difference)
    at_limits: int = 0


def measure(
    model: Model, quantized: Model, done: Mapping[int, Quantized], how: Quantization, samples: Sequence[Sample]
) -> QuantizationReport:
    """Return the report on a quantized model, measured on the first samples."""
    used = samples[: how.measured]
    comparison = _Comparison(model, quantized, done)
    for sample in used:
        comparison.add(sample)
    layers = [layer for index in done for layer in comparison.layers(index)]
    if how.sensitivity:
        sqnr_db = sensitivity(model, done, how, used)
        layers = [replace(layer, output_sqnr_db=sqnr_db.get((layer.subgraph, layer.node))) for layer in layers]
    return QuantizationReport(tuple(layers), tuple(comparison.outputs()), len(samples), len(used))


class _Comparison:
    """Both models, and the sums of their differences."""

    def __init__(self, model: Model, quantized: Model, done: Mapping[int, Quantized]) -> None:
        self._model, self._done = model, done
        self._expected: dict[int, _Values] = {index: {} for index in done}
        self._got: dict[int, _Values] = {index: {} for index in done}
        self._float = Runner(model, {i: _keep(model.subgraphs[i], values) for i, values in self._expected.items()})
        looks = {i: _keep(done[i].rewritten.graph, values) for i, values in self._got.items()}
        self._integer = QuantizedRunner(quantized, looks)
        self._results: dict[tuple[int, int], _Result] = {}
        self._outputs: dict[tuple[str, str], Difference] = {}
        self._bound: dict[tuple[object, ...], Run] = {}  # kernels, by node and input shapes

    def add(self, sample: Sample) -> None:
        """Run both models on a sample and add up the differences."""
        signature, _ = sample
        expected, got = self._float(sample), self._integer(sample)
        for name, value in expected.items():
            self._outputs.setdefault((signature.key, name), Difference()).add(value, got[name])
        index = signature.subgraph
        done = self._done[index]
        for number in (n for n in done.chosen.rules if n in done.rewritten.nodes):
            for tensor, alone in self._alone(index, number):
                self._add(index, tensor, alone)

    def _alone(self, index: int, number: int) -> Iterator[tuple[int, Array]]:
        """Yield each float tensor a node writes, with its integer kernel's result on exact operands."""
        graph, part = self._model.subgraphs[index], self._done[index].rewritten
        old_node, node = graph.nodes[number], part.graph.nodes[part.nodes[number]]
        specs = [None if t == ABSENT else part.graph.tensors[t] for t in node.inputs]
        values, written = self._expected[index], list(zip(node.outputs, old_node.outputs, strict=True))
        fed = [None if s is None else _exact(s, t, values) for s, t in zip(specs, old_node.inputs, strict=True)]
        actual = [(s and x is not None and replace(s, shape=x.shape)) or None for s, x in zip(specs, fed, strict=True)]
        # Bind kernels to the sample's dimensions; declared ones may be open.
        outputs = [replace(part.graph.tensors[t], shape=values[old].shape) for t, old in written]
        outputs += [part.graph.tensors[t] for t in node.intermediates]
        key = (index, number, *(None if x is None else x.shape for x in fed))
        if key not in self._bound:
            assert isinstance(node.op, Op)
            self._bound[key] = (node.op.bind and node.op.bind(node.options, actual, outputs)) or node.op.run
        results = self._bound[key](node.options, fed)  # outputs, then states
        for tensor, spec, result in zip(old_node.outputs, outputs, results, strict=False):
            if spec.quantization is not None and graph.tensors[tensor].type == TensorType.FLOAT32:
                yield tensor, dequantize(result, spec.quantization)

    def _add(self, index: int, tensor: int, alone: Array) -> None:
        part = self._done[index].rewritten
        spec, expected = part.graph.tensors[part.stored[tensor]], self._expected[index][tensor]
        got = self._got[index][part.stored[tensor]]
        assert spec.quantization is not None
        result = self._results.setdefault((index, tensor), _Result())
        result.whole.add(expected, dequantize(got, spec.quantization))
        result.own.add(expected, alone)
        low, high = integer_limits(spec.type)
        result.at_limits += int(np.count_nonzero((got == low) | (got == high)))

    def outputs(self) -> Iterator[Output]:
        """Yield the report's rows for the model's outputs."""
        for (key, name), difference in self._outputs.items():
            yield Output(key, name, difference.error, difference.sqnr_db)

    def layers(self, index: int) -> Iterator[Layer]:
        """Yield the report's rows for a subgraph's float nodes."""
        graph, part = self._model.subgraphs[index], self._done[index]
        for number, node in enumerate(graph.nodes):
            for tensor in results(graph, node) or node.outputs[:1]:
                layer = Layer(index, number, node.op.name, graph.tensors[tensor].name)
                if number in part.chosen.reasons:
                    yield replace(layer, reason=part.chosen.reasons[number])
                elif tensor in part.rewritten.stored and number in part.rewritten.nodes:
                    yield _with_numbers(layer, part, tensor, self._results.get((index, tensor)))


def _keep(graph: Subgraph, values: _Values) -> After:
    """Return looks that record the latest values of all inputs and results of a subgraph."""

    def keeping(tensor: int) -> tuple[Sequence[int], Look]:
        def look(arrays: Sequence[Array]) -> None:
            values[tensor] = arrays[0]

        return [tensor], look

    after: dict[int | None, list[tuple[Sequence[int], Look]]] = {None: [keeping(t) for t in graph.inputs]}
    return after | {number: [keeping(t) for t in node.outputs] for number, node in enumerate(graph.nodes)}


def _exact(spec: TensorSpec, old: int, values: _Values) -> Array:
    if spec.data is not None:
        return spec.data
    return values[old] if spec.quantization is None else quantize(values[old], spec.quantization, spec.type)


def _with_numbers(layer: Layer, part: Quantized, tensor: int, result: _Result | None) -> Layer:
    spec, values = part.rewritten.graph.tensors[part.rewritten.stored[tensor]], part.known.ranges.get(tensor)
    assert spec.quantization is not None
    layer = replace(
        layer,
        type=spec.type.name,
        scale=float(spec.quantization.scale[0]),
        zero_point=int(spec.quantization.zero_point[0]),
        low=None if values is None else values.low,
        high=None if values is None else values.high,
    )
    if result is None:  # nothing was measured
        return layer
    return replace(
        layer,
        saturated=result.at_limits / result.whole.count if result.whole.count else 0.0,
        error=result.whole.error,
        sqnr_db=result.whole.sqnr_db,
        own_sqnr_db=result.own.sqnr_db,
    )


def compared(model: Model, quantized: Model, samples: Sequence[Sample]) -> tuple[Output, ...]:
    """Return the differences between the outputs of a quantized and of the float model."""
    expected, got = Runner(model), QuantizedRunner(quantized)
    differences: dict[tuple[str, str], Difference] = {}
    for sample in samples:
        values = got(sample)
        for name, value in expected(sample).items():
            differences.setdefault((sample[0].key, name), Difference()).add(value, values[name])
    return tuple(Output(key, name, of.error, of.sqnr_db) for (key, name), of in differences.items())


def as_stored(model: Model, sample: Sample) -> Sample:
    """Return a float sample in the types that a quantized model's inputs have."""
    signature = next(s for s in signatures_of(model) if s.key == sample[0].key)
    tensors = model.subgraphs[signature.subgraph].tensors
    specs = {name: tensors[signature.inputs[name]] for name in sample[1]}
    values = {
        name: value if (by := specs[name].quantization) is None else quantize(value, by, specs[name].type)
        for name, value in sample[1].items()
    }
    return signature, values


class QuantizedRunner:
    """Runs a quantized model on samples of the float model, and returns float outputs."""

    def __init__(self, model: Model, looks: Mapping[int, After] | None = None) -> None:
        self._run = Runner(model, looks)
        self._model = model
        self._signatures = {signature.key: signature for signature in signatures_of(model)}

    def __call__(self, sample: Sample) -> dict[str, Array]:
        """Return the outputs by name."""
        signature = self._signatures[sample[0].key]
        outputs = self._run(as_stored(self._model, sample))
        return {name: self._widened(signature, name, value) for name, value in outputs.items()}

    def _widened(self, signature: Signature, name: str, value: Array) -> Array:
        spec = self._model.subgraphs[signature.subgraph].tensors[signature.outputs[name]]
        return value if spec.quantization is None else dequantize(value, spec.quantization)


def sensitivity(
    model: Model, done: Mapping[int, Quantized], how: Quantization, samples: Sequence[Sample]
) -> dict[tuple[int, int], float]:
    """Return the SQNR of the outputs in decibels if only one layer is quantized, by that layer."""
    run = Runner(model)
    expected = [run(sample) for sample in samples]
    plain = replace(how, input_type="float32", output_type="float32", strict=False)
    sqnr_db = {}
    for index, part in done.items():
        for number in (n for n, rule in part.chosen.rules.items() if not rule.moves and rule is not CONVERSION):
            own = part.chosen.cells[number].writers if number in part.chosen.cells else ()
            others = {n: "another layer is examined" for n in part.chosen.rules if n not in (number, *own)}
            alone, _ = quantize_model(model, plain, {index: part.known}, {index: others})
            sqnr_db[index, number] = _total(QuantizedRunner(alone), samples, expected).sqnr_db
    return sqnr_db


def _total(run: QuantizedRunner, samples: Sequence[Sample], expected: Sequence[Mapping[str, Array]]) -> Difference:
    difference = Difference()
    for sample, wanted in zip(samples, expected, strict=True):
        got = run(sample)
        for name, value in wanted.items():
            difference.add(value, got[name])
    return difference
