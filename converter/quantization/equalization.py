"""Cross-layer equalization: equalizes the ranges of weight channels (Nagel et al., 2019, section 4.1).

Dividing a channel of one layer's results by a number, and multiplying the next layer's weights for that channel by it,
changes nothing if the activation between them is none or RELU.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from litecl.converter.quantization.rules import RULES
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.schema import ActivationFunctionType, TensorType

_INWARD: Mapping[object, int] = {CONV_2D: 3, DEPTHWISE_CONV_2D: 3, FULLY_CONNECTED: 1}
"""The axis of a layer's weights that corresponds to the channels of its operand."""
_SCALES = (ActivationFunctionType.NONE, ActivationFunctionType.RELU)
_ROUNDS = 3  # for chains of layers; a pair needs one


def equalize(model: Model) -> Model:
    """Return an equivalent model with equalized weight ranges in consecutive layers."""
    return replace(model, subgraphs=tuple(map(_equalized, model.subgraphs)))


def _equalized(graph: Subgraph) -> Subgraph:
    tensors, pairs = list(graph.tensors), list(_pairs(graph))
    for _ in range(_ROUNDS):
        for first, second in pairs:
            _share(tensors, first, second)
    return replace(graph, tensors=tuple(tensors))


def _pairs(graph: Subgraph) -> Iterator[tuple[Node, Node]]:
    """Yield pairs of layers: the second is the only reader of the first, and no other node reads their weights."""
    count = Counter([*graph.outputs, *(t for node in graph.nodes for t in node.inputs)])
    reader = {node.inputs[0]: node for node in graph.nodes if node.op in _INWARD}
    for first in graph.nodes:
        second = reader.get(first.outputs[0]) if first.op in _INWARD else None
        if second is None or count[first.outputs[0]] > 1:
            continue
        if first.options.fused_activation_function not in _SCALES:
            continue
        own = [t for t in (*first.inputs[1:], second.inputs[1]) if t != ABSENT]
        specs = [graph.tensors[t] for t in own]
        if all(count[t] == 1 for t in own) and all(map(_is_free, specs)) and _fits(graph, first, second):
            yield first, second


def _is_free(spec: TensorSpec) -> bool:
    return spec.data is not None and spec.type == TensorType.FLOAT32 and spec.quantization is None


def _fits(graph: Subgraph, first: Node, second: Node) -> bool:
    """Return whether the first layer's output channels match the second one's input channels."""
    return _outward(graph.tensors, first).shape == _inward(graph.tensors, second).shape


def _outward(tensors: Sequence[TensorSpec], node: Node) -> Array:
    """Return the largest weight magnitude per output channel."""
    return _largest(tensors[node.inputs[1]], RULES[node.op].weights[1])


def _inward(tensors: Sequence[TensorSpec], node: Node) -> Array:
    """Return the largest weight magnitude per input channel."""
    return _largest(tensors[node.inputs[1]], _INWARD[node.op])


def _largest(spec: TensorSpec, axis: int | None) -> Array:
    assert spec.data is not None
    largest: Array = np.abs(spec.data).max(axis=tuple(i for i in range(spec.data.ndim) if i != axis), initial=0.0)
    return largest


def _share(tensors: list[TensorSpec], first: Node, second: Node) -> None:
    before, after = _outward(tensors, first), _inward(tensors, second)
    known = (before > 0) & (after > 0)
    factor = np.sqrt(np.divide(before, after, out=np.ones_like(before), where=known))
    axis = RULES[first.op].weights[1]
    assert axis is not None
    _scale(tensors, first.inputs[1], axis, 1 / factor)
    if len(first.inputs) > 2 and first.inputs[2] != ABSENT:
        _scale(tensors, first.inputs[2], -1, 1 / factor)
    _scale(tensors, second.inputs[1], _INWARD[second.op], factor)


def _scale(tensors: list[TensorSpec], tensor: int, axis: int, factor: Array) -> None:
    data = tensors[tensor].data
    assert data is not None
    shape = [1] * data.ndim
    shape[axis] = -1
    tensors[tensor] = replace(tensors[tensor], data=(data * factor.reshape(shape)).astype(np.float32))
