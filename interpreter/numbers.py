"""Whose bits the integer kernels compute, where runtimes differ: ``numbers``.

"reference" follows LiteRT's reference kernels. "tflm" follows tflite-micro (0.dev20261023), so that a laptop has a
microcontroller's results: a rule per operator, beside the arithmetic that all others share. Its kernels scale the sums
of FULLY_CONNECTED and TRANSPOSE_CONV in fixed point, use powers of two in no sum, compare 16-bit integers by the numbers
that they represent, and add up 8-bit ones in integers. Nodes of a rule stay on the CPU: devices have the reference's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from litecl.interpreter.arithmetic import fixed_point, quantized_binary, rescale, weighted
from litecl.interpreter.errors import ArgumentError
from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Bind, ControlOp, Op, Run, Specs
from litecl.interpreter.ops import binary, fully_connected, prelu, reduce, transpose_conv, unary
from litecl.interpreter.schema import ActivationFunctionType, TensorType

Numbers = Literal["reference", "tflm"]

TOLD = {"tflm": "integers are computed as by tflite-micro"}
"""The modes that are not the default, in words, for reports."""


def checked(numbers: str) -> str:
    """Return a mode. Raises ArgumentError for an unknown one."""
    if numbers not in get_args(Numbers):
        raise ArgumentError(f"numbers: expected 'reference' or 'tflm', got {numbers!r}")
    return numbers


def computed_as(model: Model, numbers: str) -> Model:
    """Return a model whose integer operators compute the bits of a runtime."""
    if checked(numbers) == "reference":
        return model
    return replace(model, subgraphs=tuple(map(_of_tflm, model.subgraphs)))


def _of_tflm(graph: Subgraph) -> Subgraph:
    return replace(graph, nodes=tuple(_ruled(graph, node) for node in graph.nodes))


def _ruled(graph: Subgraph, node: Node) -> Node:
    specs = [graph.tensors[t] for t in node.inputs if t != ABSENT]
    if not any(map(require.is_quantized, specs)) or specs[0].type == TensorType.FLOAT32:
        return node
    if node.op in (binary.ADD, binary.SUB):
        return replace(node, options=replace(node.options, pot_scale_int16=False))
    return replace(node, op=_RULES.get(node.op, node.op))


def _fully_connected(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    (x,) = require.present(inputs, 1)
    factor_of = rescale.wide if weighted.is_wide(x, require.optional(inputs, 2)) else rescale.twice_rounded
    return fully_connected.integer(options, inputs, outputs[0], factor_of, coarse=False)


def _transpose_conv(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    return transpose_conv.integer(replace(options, quantized_bias_type=TensorType.INT64), inputs, outputs[0])


def _sum(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    x, _ = require.present(inputs, 2)
    return reduce.kernel(reduce.quantized_sum(mean=False)(x, outputs[0]))


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


_BINDS: Mapping[Op, Bind] = {
    fully_connected.FULLY_CONNECTED: _fully_connected,
    transpose_conv.TRANSPOSE_CONV: _transpose_conv,
    reduce.SUM: _sum,
    unary.RELU6: _relu_6,
    binary.DIV: _divide,
    prelu.PRELU: _prelu,
}
_RULES: Mapping[Op | ControlOp, Op] = {op: replace(op, bind=bind) for op, bind in _BINDS.items()}
