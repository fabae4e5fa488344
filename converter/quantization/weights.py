"""Weights stored with fewer bits, after the conversion.

float16: every large constant, widened by a DEQUANTIZE when the model runs. int8: the weights of operators that multiply
float activations with integer weights (dynamic range), symmetric, with a scale for every output channel where the
operators' kernels take that; all others stay as they are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from litecl.converter.quantization.options import Quantization
from litecl.converter.quantization.scales import channels, integers
from litecl.converter.versions import version_of
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import ABSENT, Node, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, NoOptions, Op
from litecl.interpreter.ops.bidirectional_sequence_lstm import BIDIRECTIONAL_SEQUENCE_LSTM
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.ops.lstm import LSTM
from litecl.interpreter.ops.quantize import DEQUANTIZE
from litecl.interpreter.ops.rnn import UNIDIRECTIONAL_SEQUENCE_RNN
from litecl.interpreter.ops.unidirectional_sequence_lstm import UNIDIRECTIONAL_SEQUENCE_LSTM
from litecl.interpreter.schema import TensorType

_FEWEST_FLOAT16 = 64
_FEWEST_INT8 = 1024  # as in TensorFlow's converter: what is smaller saves nothing


@dataclass(frozen=True)
class _Weights:
    """The positions of weights, which are quantized all or none, and the axis of their output channels."""

    positions: tuple[int, ...]
    axis: int | None = None


_CELL = (*range(1, 9), 16)
_WEIGHTS: Mapping[Op | ControlOp, _Weights] = {
    FULLY_CONNECTED: _Weights((1,), 0),
    CONV_2D: _Weights((1,), 0),
    DEPTHWISE_CONV_2D: _Weights((1,), 3),
    EMBEDDING_LOOKUP: _Weights((1,)),
    LSTM: _Weights(_CELL),
    UNIDIRECTIONAL_SEQUENCE_LSTM: _Weights(_CELL),
    UNIDIRECTIONAL_SEQUENCE_RNN: _Weights((1, 2)),
    BIDIRECTIONAL_SEQUENCE_LSTM: _Weights((*_CELL, *range(18, 26), 33)),
}


def quantize(graph: Subgraph, how: Quantization) -> Subgraph:
    """Return a subgraph with its weights as halves, or as int8 where its operators take these."""
    return _float16(graph) if how.weights == "float16" else _int8(graph)


def _float16(graph: Subgraph) -> Subgraph:
    tensors, nodes = list(graph.tensors), []
    wide: dict[int, int] = {}
    _check_states(graph)
    for index, spec in enumerate(graph.tensors):
        if spec.data is None or spec.type != TensorType.FLOAT32 or spec.data.size < _FEWEST_FLOAT16:
            continue
        half = replace(spec, type=TensorType.FLOAT16, data=spec.data.astype(np.float16))
        tensors[index] = half
        wide[index] = len(tensors)
        tensors.append(replace(spec, data=None, name=f"{spec.name}/float32"))
        nodes.append(Node(DEQUANTIZE, (index,), (wide[index],), NoOptions(), version=3))
    nodes += [replace(node, inputs=tuple(wide.get(t, t) for t in node.inputs)) for node in graph.nodes]
    outputs = tuple(wide.get(t, t) for t in graph.outputs)
    return replace(graph, tensors=tuple(tensors), nodes=tuple(nodes), outputs=outputs)


def _check_states(graph: Subgraph) -> None:
    """Refuse open dimensions next to states.

    LiteRT widens a constant once. When an input is resized, so are states, and the widened constants, which lie in the
    same memory, move without being computed again: the results would be wrong.
    """
    stateful = next((n for n in graph.nodes if isinstance(n.op, Op) and n.op.states), None)
    if stateful is not None and any(graph.tensors[t].shape_signature is not None for t in graph.inputs):
        raise ConversionError(
            f"float16 weights and {stateful.op.name} do not go together where an input has an open dimension: give "
            'input_shapes, or convert with quantize="int8" or lstm="while"'
        )


def _int8(graph: Subgraph) -> Subgraph:
    tensors = list(graph.tensors)
    chosen = _chosen(graph)
    for index, axis in chosen.items():
        tensors[index] = _quantized(graph.tensors[index], axis)
    nodes = [
        replace(node, version=version_of(node, [None if t == ABSENT else tensors[t] for t in node.inputs]))
        if chosen.keys() & set(node.inputs)
        else node
        for node in graph.nodes
    ]
    return replace(graph, tensors=tuple(tensors), nodes=tuple(nodes))


def _chosen(graph: Subgraph) -> dict[int, int | None]:
    """Return the tensors to quantize, each with the axis of its scales: weights that nothing else reads."""
    readers: dict[int, int] = {}
    for t in (*graph.outputs, *(t for node in graph.nodes for t in node.inputs)):
        readers[t] = readers.get(t, 0) + 1
    axes: dict[int, int | None] = {}
    for node in graph.nodes:
        weights = _WEIGHTS.get(node.op)
        if weights is None:
            continue
        given = [node.inputs[i] for i in weights.positions if i < len(node.inputs) and node.inputs[i] != ABSENT]
        if _are_worth_it(graph, given) and all(readers[t] == given.count(t) for t in given):
            axes |= dict.fromkeys(given, weights.axis)
    return axes


def _are_worth_it(graph: Subgraph, given: Iterable[int]) -> bool:
    specs = [graph.tensors[t] for t in given]
    constant = all(spec.data is not None and spec.type == TensorType.FLOAT32 for spec in specs)
    return constant and sum(spec.data.size for spec in specs if spec.data is not None) >= _FEWEST_INT8


def _quantized(spec: TensorSpec, axis: int | None) -> TensorSpec:
    assert spec.data is not None
    return integers(spec, channels(spec.data, axis), TensorType.INT8, symmetric=True)
