"""Folds per-channel sums and products into the layer before them, and scalar products into the layer after them.

This removes batch normalisation, as scale * (w * x + b) + offset = (scale * w) * x + (scale * b + offset).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from litecl.converter.graph import Function, Node, Operator, Value, constant
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.binary import ADD, MUL, SUB
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.conv_3d import CONV_3D
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.ops.reshape import RESHAPE
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV
from litecl.interpreter.ops.unary import RELU, RELU6
from litecl.interpreter.schema import ActivationFunctionType, TensorType


@dataclass(frozen=True)
class _Layout:
    """The positions of weights, bias and data among the operands, and the weights' axis of output channels."""

    weights: int
    channel_axis: int
    bias: int
    data: int = 0


_LAYOUTS: dict[Operator, _Layout] = {
    CONV_2D: _Layout(1, 0, 2),
    DEPTHWISE_CONV_2D: _Layout(1, 3, 2),
    FULLY_CONNECTED: _Layout(1, 0, 2),
    TRANSPOSE_CONV: _Layout(1, 0, 3, 2),
    CONV_3D: _Layout(1, 4, 2),
}
_ELEMENTWISE = (ADD, SUB, MUL, RELU, RELU6)


def fold_linear(function: Function) -> bool:
    """Fold whatever can be folded; return whether anything was."""
    changed = False
    for node in list(function.nodes):
        changed |= _fold(function, node) or _fold_factor(function, node) or _sink_reshape(function, node)
    function.tidy()
    return changed


def _fold(function: Function, node: Node) -> bool:
    """Turn conv(x) + c, conv(x) - c and conv(x) * c into conv'(x)."""
    operands = _operands(node)
    producer = None if operands is None else operands[0].producer
    if operands is None or producer is None or function.only_user(operands[0]) is not node:
        return False
    if not _is_per_channel(operands[1], operands[0]) or not _takes(producer, operands[1], scales=node.op is MUL):
        return False
    _absorb(producer, node, operands[1])
    function.replace_node(node, [operands[0]])
    return True


def _takes(producer: Node, per_channel: Array, *, scales: bool) -> bool:
    """Return whether weights and bias can absorb a constant, per channel or scalar."""
    layout = _LAYOUTS.get(producer.op)
    if layout is None or _is_activated(producer):
        return False
    weights, bias = producer.input(layout.weights), _bias(producer, layout)
    if weights.data is None or (bias is not None and bias.data is None):
        return False
    if weights.type != TensorType.FLOAT32 and scales:
        return False
    return per_channel.size in (1, weights.data.shape[layout.channel_axis])


def _bias(producer: Node, layout: _Layout) -> Value | None:
    return producer.inputs[layout.bias] if layout.bias < len(producer.inputs) else None


def _absorb(producer: Node, node: Node, per_channel: Array) -> None:
    """Give a producer the weights, bias and activation that compute the result of ``node``."""
    layout = _LAYOUTS[producer.op]
    weights, bias = producer.input(layout.weights), _bias(producer, layout)
    assert weights.data is not None
    channels = weights.data.shape[layout.channel_axis]
    vector = np.broadcast_to(per_channel.reshape(-1), (channels,)).astype(np.float64)
    before = np.zeros(channels) if bias is None or bias.data is None else bias.data.astype(np.float64).reshape(-1)
    after, scaled = _FOLDS[node.op](before, vector)
    inputs = list(producer.inputs) + [None] * (layout.bias + 1 - len(producer.inputs))
    if scaled:
        axes = [-1 if axis == layout.channel_axis else 1 for axis in range(weights.data.ndim)]
        grid = None if weights.grid is None else weights.grid.scaled(vector, layout.channel_axis)
        inputs[layout.weights] = constant((weights.data * vector.reshape(axes)).astype(np.float32), weights.name, grid)
    inputs[layout.bias] = constant(after.astype(np.float32), f"{producer.name}/bias")
    producer.rewire(inputs)
    producer.options = _with_activation(producer, node)


def _fold_factor(function: Function, node: Node) -> bool:
    """Turn conv(x * c) with a scalar c into conv'(x); images are scaled this way."""
    if node.op is not MUL:
        return False
    operands, user = _operands(node), function.only_user(node.output)
    layout = None if user is None else _LAYOUTS.get(user.op)
    if operands is None or operands[1].size != 1 or user is None or layout is None:
        return False
    weights = user.input(layout.weights)
    if _is_activated(node) or user.input(layout.data) is not node.output or weights.data is None:
        return False
    if weights.type != TensorType.FLOAT32:
        return False
    factor = operands[1].astype(np.float64).reshape(())
    grid = None if weights.grid is None else weights.grid.scaled(factor, weights.grid.axis)
    scaled = constant((weights.data * factor).astype(np.float32), weights.name, grid)
    user.rewire([operands[0] if v is node.output else scaled if v is weights else v for v in user.inputs])
    function.replace_node(node, [operands[0]])
    return True


_FOLDS: dict[Operator, Callable[[Array, Array], tuple[Array, bool]]] = {
    ADD: lambda bias, c: (bias + c, False),
    SUB: lambda bias, c: (bias - c, False),
    MUL: lambda bias, c: (bias * c, True),
}


def _operands(node: Node) -> tuple[Value, Array] | None:
    """Return the computed operand and the constant one."""
    if node.op not in _FOLDS:
        return None
    a, b = node.input(0), node.input(1)
    if a.data is not None and node.op is not SUB:
        a, b = b, a
    if b.data is None or a.data is not None or b.type != TensorType.FLOAT32 or a.shape is None:
        return None
    return (a, b.data) if 0 < len(a.shape) >= b.data.ndim else None


def _is_per_channel(data: Array, value: Value) -> bool:
    """Return whether a constant has one element per channel of the value, or is a scalar."""
    return data.size == 1 or data.shape[-1] == data.size == (value.shape or (None,))[-1]


def _is_activated(node: Node) -> bool:
    return node.options.fused_activation_function != ActivationFunctionType.NONE  # type: ignore[no-any-return]


def _sink_reshape(function: Function, node: Node) -> bool:
    """Turn f(reshape(conv(x))) into reshape(f(conv(x))) if f works per channel and the reshape keeps channels."""
    if node.op not in _ELEMENTWISE:
        return False
    operands = _operands(node) if node.op in _FOLDS else (node.input(0), np.zeros(1))
    reshape = None if operands is None else operands[0].producer
    if operands is None or reshape is None or reshape.op is not RESHAPE or function.only_user(operands[0]) is not node:
        return False
    inner = reshape.input(0)
    producer = inner.producer
    if producer is None or producer.op not in _LAYOUTS or function.only_user(inner) is not reshape:
        return False
    if _is_activated(producer) or not _covers_channels(operands[1], operands[0], inner):
        return False
    computed = Value(inner.type, inner.shape, node.output.name)
    others = [constant(v.data.reshape(-1), v.name) for v in node.inputs if v is not None and v.data is not None]
    function.add(Node(node.op, [inner, *others], [computed], node.options, node.name))
    result = Value(node.output.type, node.output.shape, node.output.name)
    function.add(Node(RESHAPE, [computed, *reshape.inputs[1:]], [result], reshape.options, reshape.name))
    function.replace_node(node, [result])
    return True


def _covers_channels(data: Array, outer: Value, inner: Value) -> bool:
    """Return whether a flattened constant has one element per channel of the value before the reshape.

    It fits the reshaped value.
    """
    channels = (inner.shape or (None,))[-1]
    shape = data.shape[next((i for i, size in enumerate(data.shape) if size != 1), data.ndim) :]
    return data.size == 1 or (data.size == channels and shape == (outer.shape or ())[-len(shape) :])


def _with_activation(producer: Node, node: Node) -> object:
    return replace(producer.options, fused_activation_function=node.options.fused_activation_function)
