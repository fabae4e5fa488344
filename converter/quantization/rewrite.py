"""Rewrites a subgraph from floats to integers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from litecl.converter.compact import compact_graph
from litecl.converter.quantization.aware import CONVERSION
from litecl.converter.quantization.calibrate import Known
from litecl.converter.quantization.cells import intermediates
from litecl.converter.quantization.choose import Chosen, operands, results
from litecl.converter.quantization.formats import Format, stored
from litecl.converter.quantization.groups import Scales
from litecl.converter.quantization.limits import LIMITS, limit
from litecl.converter.quantization.rules import Rule
from litecl.converter.quantization.scales import Affine, bias, given, integers
from litecl.converter.tensors import Tensors
from litecl.converter.versions import version_of
from litecl.interpreter.graph import ABSENT, Array, Node, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.quantize import DEQUANTIZE, QUANTIZE
from litecl.interpreter.schema import TensorType

_LARGEST_BIAS = 1 << 30
_FLOAT32 = TensorType.FLOAT32


@dataclass(frozen=True)
class Borders:
    """The types of a model's float inputs and outputs."""

    inputs: TensorType = _FLOAT32
    outputs: TensorType = _FLOAT32


@dataclass(frozen=True)
class Rewritten:
    """A quantized subgraph.

    stored: maps old tensors stored as integers to new indices. inputs, outputs: map old to new indices. nodes: maps old
    to new node numbers, without conversions that vanished.
    """

    graph: Subgraph
    stored: Mapping[int, int]
    inputs: Mapping[int, int]
    outputs: Mapping[int, int]
    nodes: Mapping[int, int]


def rewrite(
    graph: Subgraph,
    chosen: Chosen,
    scales: Scales,
    type_: TensorType,
    borders: Borders,
    known: Known | None = None,
    per_channel: bool = True,
) -> Rewritten:
    """Return a subgraph in which nodes with rules compute with integers of a type.

    known: has the formats of weights; by default int8, with per-channel scales if ``per_channel``.
    """
    work = _Rewrite(graph, chosen, scales, type_, known or Known(), per_channel)
    inputs = work.enter(borders.inputs)
    for number, node in enumerate(graph.nodes):
        work.add(number, node)
    outputs = work.leave(borders.outputs)
    return work.finished(inputs, outputs)


class _Rewrite:
    """The new subgraph under construction. Floats keep their tensor indices; integers get new ones."""

    def __init__(
        self, graph: Subgraph, chosen: Chosen, scales: Scales, type_: TensorType, known: Known, per_channel: bool
    ) -> None:
        self._graph, self._rules, self._scales, self._type = graph, chosen.rules, scales, type_
        self._known, self._form = known, Format(axis=0 if per_channel else None)
        self._cells = chosen.cells
        self._memories = {cell.memory for cell in chosen.cells.values()}
        self._tensors = Tensors(graph.tensors)
        self._nodes: list[Node] = []
        self._numbers: dict[int, int] = {}
        self._stored: dict[int, int] = {}  # float tensors that also exist as integers, in their producers' scales
        self._floats = {t for t in graph.inputs if graph.tensors[t].type == _FLOAT32}  # tensors that exist as floats
        self._computed = {t for n in chosen.rules for t in results(graph, graph.nodes[n])}  # by integer nodes
        self._brought: dict[tuple[int, bytes], int] = {}  # integers converted to another scale
        self._constants: dict[tuple[int, TensorType, bytes, bool], int] = {}

    # Borders

    def enter(self, type_: TensorType) -> tuple[int, ...]:
        """Return the inputs of the new subgraph."""
        if type_ == _FLOAT32:
            return self._graph.inputs
        return tuple(self._entering(tensor, type_) for tensor in self._graph.inputs)

    def _entering(self, tensor: int, type_: TensorType) -> int:
        scale = self._scales.tensors.get(tensor)
        if self._graph.tensors[tensor].type != _FLOAT32 or scale is None:
            return tensor
        self._floats.discard(tensor)
        if type_ == self._type:
            self._stored[tensor] = self._integer(tensor, scale)
            return self._stored[tensor]
        # UINT8 is INT8 plus 128.
        shifted = given(float(scale.scale[0]), int(scale.zero_point[0]) + 128)
        outer = self._new(tensor, type_, shifted)
        self._stored[tensor] = self._integer(tensor, scale)
        self._convert(QUANTIZE, outer, self._stored[tensor])
        return outer

    def leave(self, type_: TensorType) -> tuple[int, ...]:
        """Return the outputs of the new subgraph."""
        return tuple(self._leaving(tensor, type_) for tensor in self._graph.outputs)

    def _leaving(self, tensor: int, type_: TensorType) -> int:
        scale = self._scales.tensors.get(tensor)
        if self._graph.tensors[tensor].type != _FLOAT32 or type_ == _FLOAT32 or scale is None:
            return self._float(tensor)
        inner = self._as(tensor, scale)
        if type_ == self._type:
            return inner
        shifted = given(float(scale.scale[0]), int(scale.zero_point[0]) + 128)
        outer = self._new(tensor, type_, shifted)
        self._convert(QUANTIZE, inner, outer)
        return outer

    # Nodes

    def add(self, number: int, node: Node) -> None:
        """Add a node, on integers if it has a rule."""
        rule = self._rules.get(number)
        if rule is None:
            inputs = tuple(t if t == ABSENT else self._float(t) for t in node.inputs)
            self._floats.update(node.outputs)
            self._append(number, replace(node, inputs=inputs))
            return
        if rule is CONVERSION:
            self._convert_to_trained(number, node)
            return
        inputs = self._operands(number, node, rule)
        outputs = list(node.outputs)
        for tensor in results(self._graph, node):
            self._stored[tensor] = self._integer(tensor, self._scales.tensors[tensor])
            outputs[outputs.index(tensor)] = self._stored[tensor]
        node = replace(node, inputs=inputs, outputs=tuple(outputs), options=_options(node, rule, self._type))
        self._append(number, replace(node, intermediates=self._intermediates(number, node)))

    def _convert_to_trained(self, number: int, node: Node) -> None:
        """Add the conversion for a FAKE_QUANT: nothing, if its input already has its scale."""
        (source,), (target,) = node.inputs, node.outputs
        scale, count = self._scales.tensors[target], len(self._nodes)
        if self._graph.tensors[source].data is not None:
            self._stored[target] = self._constant(source, scale, self._type)
        elif source in self._floats - self._computed:
            key = (source, _key(scale))
            if key not in self._brought:
                self._brought[key] = self._integer(target, scale)
                self._convert(QUANTIZE, source, self._brought[key])
            self._stored[target] = self._brought[key]
        else:
            self._stored[target] = self._as(source, scale)
        if len(self._nodes) > count:
            self._numbers[number] = count

    def _intermediates(self, number: int, node: Node) -> tuple[int, ...]:
        """Return the intermediate tensors of a quantized LSTM node; of other nodes, those they have."""
        hidden = self._tensors[node.outputs[0]].quantization if number in self._cells else None
        return node.intermediates if hidden is None else tuple(map(self._tensors.push, intermediates(hidden)))

    def _append(self, number: int, node: Node) -> None:
        self._numbers[number] = len(self._nodes)
        lowest = self._tensors.versioned(node)
        known = isinstance(node.op, Op) and node.op.custom
        self._nodes.append(node if known or node.version > lowest.version else lowest)

    def _operands(self, number: int, node: Node, rule: Rule) -> tuple[int, ...]:
        inputs = list(node.inputs)
        for position in operands(self._graph, node, rule):
            tensor, scale = node.inputs[position], self._scales.operands[number, position]
            if self._graph.tensors[tensor].data is None:
                inputs[position] = self._as(tensor, scale)
            elif node.op in LIMITS and scale.same(self._scales.operands.get((number, 1 - position), scale)):
                inputs[position] = self._limit(node, position, scale)
            else:
                inputs[position] = self._constant(tensor, scale, self._type_of(node.outputs[0]))
        weights = {p: self._weights(node, rule, p, axis) for p, axis in rule.weights.items()}
        for position, tensor in weights.items():
            inputs[position] = tensor
        for position, of_weights in rule.sums.items():
            if position < len(inputs) and inputs[position] != ABSENT:
                inputs[position] = self._bias(node, rule, position, weights[of_weights])
        for position in rule.states:
            inputs[position] = self._stored[node.inputs[position]]
        return tuple(inputs)

    def _type_of(self, tensor: int) -> TensorType:
        return TensorType.INT16 if tensor in self._memories else self._type

    def _weights(self, node: Node, rule: Rule, position: int, axis: int | None) -> int:
        tensor = node.inputs[position]
        form = self._known.forms.get(node.outputs[0], self._form)
        form = replace(form, axis=None if form.axis is None else axis)
        least = self._least_scales(node, rule, position, form.axis)
        spec = stored(self._graph.tensors[tensor], form, self._known.moments.get(node.outputs[0]), least)
        assert spec.quantization is not None
        return self._kept(tensor, spec, spec.quantization, True)

    def _least_scales(self, node: Node, rule: Rule, position: int, axis: int | None) -> Array | None:
        """Return the smallest scales of weights for which the bias, in the scale of the sums, fits into 32 bits."""
        biases = [node.inputs[p] for p, weights in rule.sums.items() if weights == position and p < len(node.inputs)]
        if self._type == TensorType.INT16 or not biases or biases[0] == ABSENT:
            return None
        added = self._graph.tensors[biases[0]].data
        assert added is not None
        least: Array = np.abs(added.reshape(-1).astype(np.float64)) / (_LARGEST_BIAS * self._input_scale(node, rule))
        return least if axis is not None else least.max(initial=0.0).reshape(1)

    def _input_scale(self, node: Node, rule: Rule) -> float:
        (position,) = operands(self._graph, node, rule)
        return float(self._scales.tensors[node.inputs[position]].scale[0])

    def _bias(self, node: Node, rule: Rule, position: int, weights: int) -> int:
        of_weights = self._tensors[weights].quantization
        assert of_weights is not None
        type_ = TensorType.INT64 if self._type == TensorType.INT16 else TensorType.INT32
        tensor = node.inputs[position]
        sums = self._input_scale(node, rule) * of_weights.scale.astype(np.float64)
        spec = bias(self._graph.tensors[tensor], sums, type_)
        assert spec.quantization is not None
        return self._kept(tensor, spec, spec.quantization, True)

    # Tensors

    def _float(self, tensor: int) -> int:
        """Return a tensor as floats, dequantized if necessary."""
        if tensor in self._stored and tensor not in self._floats:
            self._floats.add(tensor)
            self._convert(DEQUANTIZE, self._stored[tensor], tensor)
        return tensor

    def _as(self, tensor: int, scale: Affine) -> int:
        """Return a tensor as integers of a scale."""
        if tensor not in self._stored:
            self._stored[tensor] = self._integer(tensor, self._scales.tensors[tensor])
            self._convert(QUANTIZE, tensor, self._stored[tensor])
        stored = self._tensors[self._stored[tensor]].quantization
        assert stored is not None
        if stored.same(scale):
            return self._stored[tensor]
        key = (tensor, _key(scale))
        if key not in self._brought:
            self._brought[key] = self._integer(tensor, scale)
            self._convert(QUANTIZE, self._stored[tensor], self._brought[key])
        return self._brought[key]

    def _constant(self, tensor: int, scale: Affine, type_: TensorType) -> int:
        return self._kept(tensor, integers(self._graph.tensors[tensor], scale, type_), scale, False)

    def _limit(self, node: Node, position: int, scale: Affine) -> int:
        """Return a constant to compare integers of a scale with."""
        spec = self._graph.tensors[node.inputs[position]]
        assert spec.data is not None
        data = limit(spec.data, float(scale.scale[0]), LIMITS[node.op][position])
        return self._tensors.push(integers(replace(spec, data=data), scale, self._type))

    def _kept(self, tensor: int, spec: TensorSpec, scale: Affine, symmetric: bool) -> int:
        key = (tensor, spec.type, _key(scale), symmetric)
        if key not in self._constants:
            self._constants[key] = self._tensors.push(spec)
        return self._constants[key]

    def _integer(self, tensor: int, scale: Affine) -> int:
        return self._new(tensor, self._type_of(tensor), scale)

    def _new(self, tensor: int, type_: TensorType, scale: Affine) -> int:
        spec = self._graph.tensors[tensor]
        name = f"{spec.name}/{type_.name.lower()}"
        return self._tensors.push(replace(spec, type=type_, quantization=scale, name=name))

    def _convert(self, op: Op, source: int, target: int) -> None:
        node = Node(op, (source,), (target,), NoOptions())
        ends = [self._tensors[source], self._tensors[target]]  # QUANTIZE's version depends on its result's type too
        self._nodes.append(replace(node, version=version_of(node, ends)))

    def finished(self, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> Rewritten:
        """Return the subgraph without unused tensors."""
        whole = replace(self._graph, tensors=tuple(self._tensors), nodes=tuple(self._nodes))
        compacted, moved = compact_graph(replace(whole, inputs=inputs, outputs=outputs))
        return Rewritten(
            compacted,
            {old: moved[new] for old, new in self._stored.items() if new in moved},
            dict(zip(self._graph.inputs, compacted.inputs, strict=True)),
            dict(zip(self._graph.outputs, compacted.outputs, strict=True)),
            self._numbers,
        )


def _key(scale: Affine) -> bytes:
    return scale.scale.tobytes() + scale.zero_point.tobytes()


def _options(node: Node, rule: Rule, type_: TensorType) -> object:
    if type_ != TensorType.INT16 or not rule.options:
        return node.options
    return replace(node.options, **rule.options)
