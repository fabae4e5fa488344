"""The rules of ``numbers="tflm"``: operators whose integers differ in tflite-micro (0.dev20261023) from the reference.

All others agree. Devices have the reference's bits alone, so they leave nodes with a rule to the CPU.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from litecl.interpreter.arithmetic import fixed_point, quantized_binary, rescale, weighted
from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Bind, ControlOp, Op, Run, Specs
from litecl.interpreter.ops import binary, fully_connected, prelu, reduce, transpose_conv, unary
from litecl.interpreter.ops.unidirectional_sequence_lstm import UNIDIRECTIONAL_SEQUENCE_LSTM
from litecl.interpreter.recurrent import micro_lstm
from litecl.interpreter.schema import ActivationFunctionType, FullyConnectedOptionsWeightsFormat, TensorType

_FLOATS = (TensorType.FLOAT32, TensorType.FLOAT16)


def of_tflm(model: Model) -> Model:
    """Return a model whose nodes compute tflite-micro's bits."""
    return replace(model, subgraphs=tuple(map(_graph, model.subgraphs)))


def _graph(graph: Subgraph) -> Subgraph:
    return replace(graph, nodes=tuple(_ruled(graph, node) for node in graph.nodes))


def _ruled(graph: Subgraph, node: Node) -> Node:
    specs = [graph.tensors[t] for t in node.inputs if t != ABSENT]
    if not any(map(require.is_quantized, specs)) or any(spec.type in _FLOATS for spec in specs):
        return node
    if node.op in (binary.ADD, binary.SUB):
        return replace(node, options=replace(node.options, pot_scale_int16=False))
    return replace(node, op=_RULES.get(node.op, node.op))


def _fully_connected(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    (x,) = require.present(inputs, 1)
    if options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:  # which tflite-micro lacks
        assert fully_connected.FULLY_CONNECTED.bind is not None
        return fully_connected.FULLY_CONNECTED.bind(options, inputs, outputs)
    factor_of = rescale.wide if weighted.is_wide(x, require.optional(inputs, 2)) else rescale.twice_rounded
    return fully_connected.integer(options, inputs, outputs[0], factor_of, coarse=False)


def _transpose_conv(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    return transpose_conv.integer(replace(options, quantized_bias_type=TensorType.INT64), inputs, outputs[0])


def _sum(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    x, _ = require.present(inputs, 2)
    return reduce.kernel(reduce.quantized_sum(mean=False)(x, outputs[0]))


def _multiply(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    """Multiply by a factor of scales in float64."""
    a, b = require.present(inputs, 2)
    x_scale, y_scale, scale = map(fixed_point.scale_of, (a, b, outputs[0]))
    return quantized_binary.multiply_by_factor(options, a, b, outputs[0], float(x_scale * y_scale / scale))


def _divide(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    """Divide by a factor of scales in float64."""
    a, b = require.present(inputs, 2)
    x_scale, y_scale, scale = map(fixed_point.scale_of, (a, b, outputs[0]))
    return quantized_binary.divide_by_factor(options, a, b, outputs[0], float(x_scale / (y_scale * scale)))


def _prelu(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    """Multiply by factors of scales in float64."""
    x_scale, alpha_scale = map(fixed_point.scale_of, require.present(inputs, 2))
    scale = fixed_point.scale_of(outputs[0])
    positive, negative = map(fixed_point.quantize_multiplier, (x_scale / scale, x_scale * alpha_scale / scale))
    return prelu.integer(inputs, outputs[0], positive, negative)


def _relu_6(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    """Clamp on the input's scale, whatever the output's is."""
    (x,) = require.present(inputs, 1)
    low, high = fixed_point.activation_range(ActivationFunctionType.RELU6, x)
    return lambda options, inputs: [value.clip(low, high) for value in require.arrays(inputs, 1)]


def _lstm(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    if micro_lstm.applies(inputs):
        return micro_lstm.bind(options, inputs, outputs, options.time_major)
    assert UNIDIRECTIONAL_SEQUENCE_LSTM.bind is not None
    return UNIDIRECTIONAL_SEQUENCE_LSTM.bind(options, inputs, outputs)


_BINDS: Mapping[Op, Bind] = {
    fully_connected.FULLY_CONNECTED: _fully_connected,
    transpose_conv.TRANSPOSE_CONV: _transpose_conv,
    reduce.SUM: _sum,
    unary.RELU6: _relu_6,
    UNIDIRECTIONAL_SEQUENCE_LSTM: _lstm,
    binary.MUL: _multiply,
    binary.DIV: _divide,
    prelu.PRELU: _prelu,
}
_RULES: Mapping[Op | ControlOp, Op] = {op: replace(op, bind=bind) for op, bind in _BINDS.items()}
