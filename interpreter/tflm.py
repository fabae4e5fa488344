"""The rules of ``numbers="tflm"``: operators whose integers differ in tflite-micro (0.dev20261023) from the reference.

All others agree. Devices have the reference's bits alone, so they leave nodes with a rule to the CPU.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from litecl.interpreter.arithmetic import fixed_point, gemmlowp, lookup, quantized_binary, rescale, weighted
from litecl.interpreter.arithmetic import quantized_unary as quantized
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Bind, ControlOp, Op, Run, Specs
from litecl.interpreter.ops import batch_matmul, binary, fully_connected, prelu, reduce, softmax, transpose_conv, unary
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU
from litecl.interpreter.ops.unidirectional_sequence_lstm import UNIDIRECTIONAL_SEQUENCE_LSTM
from litecl.interpreter.recurrent import micro_lstm
from litecl.interpreter.schema import ActivationFunctionType, FullyConnectedOptionsWeightsFormat, TensorType

_UNRULED = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.UINT8)  # of the last tflite-micro has no kernels


def of_tflm(model: Model) -> Model:
    """Return a model whose nodes compute tflite-micro's bits."""
    return replace(model, subgraphs=tuple(map(_graph, model.subgraphs)))


def _graph(graph: Subgraph) -> Subgraph:
    return replace(graph, nodes=tuple(_ruled(graph, node) for node in graph.nodes))


def _ruled(graph: Subgraph, node: Node) -> Node:
    specs = [graph.tensors[t] for t in node.inputs if t != ABSENT]
    if not any(map(require.is_quantized, specs)) or any(spec.type in _UNRULED for spec in specs):
        return node
    if node.op in (binary.ADD, binary.SUB):
        return replace(node, options=replace(node.options, pot_scale_int16=False))
    bound = _FUNCTIONS.get(node.op) if isinstance(node.op, Op) else None
    if bound is not None and _same(bound, node, specs[0], graph.tensors[node.outputs[0]]):
        return node
    return replace(node, op=_RULES.get(node.op, node.op))


def _same(bound: quantized.Bound, node: Node, x: TensorSpec, output: TensorSpec) -> bool:
    """Return whether all elements have the reference's results, which a device computes too."""
    assert isinstance(node.op, Op) and node.op.bind is not None
    low, high = types.limits(x.dtype)
    first = fixed_point.zero_point_of(x) if node.op == unary.RSQRT else low  # no roots below
    every = np.arange(first, high + 1).astype(x.dtype)
    try:
        reference, run = node.op.bind(node.options, [x], [output]), bound(node.options, x, output)
    except ModelError:  # which the rule raises again, unless tflite-micro takes the node
        return False
    assert reference is not None
    return np.array_equal(reference(node.options, [every])[0], run(node.options, [every])[0])


def _fully_connected(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    (x,) = require.present(inputs, 1)
    if options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:  # which tflite-micro lacks
        assert fully_connected.FULLY_CONNECTED.bind is not None
        return fully_connected.FULLY_CONNECTED.bind(options, inputs, outputs)
    factor_of = rescale.wide if weighted.is_wide(x, require.optional(inputs, 2)) else rescale.twice_rounded
    return fully_connected.integer(options, inputs, outputs[0], factor_of, coarse=False)


def _transpose_conv(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    return transpose_conv.integer(replace(options, quantized_bias_type=TensorType.INT64), inputs, outputs[0])


def _batch_matmul(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    """Multiply scales in float64."""
    return batch_matmul.integer(options, inputs, outputs[0], coarse=False)


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
    return prelu.integer(inputs, outputs[0], quantized.exact_ratio)


def _softmax(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    """Take the reciprocals of 16 bits from a table in float32, and multiply scales in float64."""
    (x,) = require.present(inputs, 1)
    if x.type != TensorType.INT16:
        assert softmax.SOFTMAX.bind is not None
        return softmax.SOFTMAX.bind(options, inputs, outputs)
    quantized.symmetric(x, *outputs)
    factor = fixed_point.scale_of(x) * np.float64(np.float32(options.beta)) / (10.0 / 65535.0)
    return softmax.integer_16(fixed_point.quantize_multiplier(factor), *softmax.tables_16(np.float32))


def _relu_6(options: Any, x: TensorSpec, output: TensorSpec) -> Run:
    """Clamp on the input's scale, whatever the output's is."""
    low, high = fixed_point.activation_range(ActivationFunctionType.RELU6, x)
    return quantized.elementwise(lambda q: q.clip(low, high), output)


def _rsqrt(options: Any, x: TensorSpec, output: TensorSpec) -> Run:
    """Take Newton's iteration for 16 bits too."""
    quantized.symmetric(x, output)
    return quantized.newton_rsqrt(
        x, output, 1.0 / float(np.sqrt(fixed_point.scale_of(x)) * fixed_point.scale_of(output))
    )


def _elu(value: Array) -> Array:
    return np.where(value < 0, lookup.exp(value) - np.float32(1), value)


def _in_fixed_point(
    function: Callable[[Array, int], Array], bits: int, zero: int, otherwise: quantized.Bound
) -> quantized.Bound:
    """Return a function of 8 bits in gemmlowp's fixed point, which ignores the output's quantization (integer_ops).

    bits: of the fraction of results; zero: what they are added to.
    """

    def bound(options: Any, x: TensorSpec, output: TensorSpec) -> Run:
        if x.type == TensorType.INT16:
            return otherwise(options, x, output)
        factor = fixed_point.quantize_multiplier(fixed_point.scale_of(x) * 2.0**27)
        radius = int(15 * 2.0 ** (27 - int(factor.shift)))  # from which the result is the end of the range
        low, high = types.limits(x.dtype)

        def run(q: Array) -> Array:
            value = q - fixed_point.zero_point_of(x)
            inside = np.clip(value, 1 - radius, radius - 1) if radius else np.zeros_like(value)
            raw = function(fixed_point.multiply_by_quantized_multiplier(inside, factor), 4)
            result = fixed_point.rounding_divide_by_pot(raw, 31 - bits) + zero
            return np.where(value <= -radius, low, np.where(value >= radius, high, result))

        return quantized.elementwise(run, output)

    return bound


def _lstm(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    if micro_lstm.applies(inputs):
        return micro_lstm.bind(options, inputs, outputs, options.time_major)
    assert UNIDIRECTIONAL_SEQUENCE_LSTM.bind is not None
    return UNIDIRECTIONAL_SEQUENCE_LSTM.bind(options, inputs, outputs)


_FUNCTIONS: Mapping[Op, quantized.Bound] = {
    unary.ABS: partial(quantized.absolute, ratio=quantized.exact_ratio),
    unary.ELU: quantized.table(lambda options, value: _elu(value)),
    unary.LOGISTIC: _in_fixed_point(gemmlowp.logistic, 8, -128, quantized.logistic),
    unary.RELU: quantized.relu(0.0, float("inf"), quantized.exact_ratio),
    unary.RELU6: _relu_6,
    unary.RSQRT: _rsqrt,
    unary.TANH: _in_fixed_point(gemmlowp.tanh, 7, 0, quantized.tanh),
    LEAKY_RELU: partial(quantized.leaky_relu, ratio=quantized.exact_ratio),
}
_BINDS: Mapping[Op, Bind] = {
    fully_connected.FULLY_CONNECTED: _fully_connected,
    transpose_conv.TRANSPOSE_CONV: _transpose_conv,
    batch_matmul.BATCH_MATMUL: _batch_matmul,
    reduce.SUM: _sum,
    UNIDIRECTIONAL_SEQUENCE_LSTM: _lstm,
    binary.MUL: _multiply,
    binary.DIV: _divide,
    prelu.PRELU: _prelu,
    softmax.SOFTMAX: _softmax,
    **{op: unary.bind_quantized(bound) for op, bound in _FUNCTIONS.items()},
}
_RULES: Mapping[Op | ControlOp, Op] = {op: replace(op, bind=bind) for op, bind in _BINDS.items()}
