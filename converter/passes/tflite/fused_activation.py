"""Fuses a RELU, RELU6 or RELU_N1_TO_1 into the operator before it."""

from dataclasses import replace

from litecl.converter.graph import Function, Node, Operator
from litecl.interpreter.ops.binary import ADD, DIV, MUL, SUB
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.conv_3d import CONV_3D
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D
from litecl.interpreter.ops.unary import RELU, RELU6, RELU_N1_TO_1
from litecl.interpreter.schema import ActivationFunctionType, TensorType

_FUNCTIONS: dict[Operator, ActivationFunctionType] = {
    RELU: ActivationFunctionType.RELU,
    RELU6: ActivationFunctionType.RELU6,
    RELU_N1_TO_1: ActivationFunctionType.RELU_N1_TO_1,
}
_PRODUCERS = frozenset(
    {CONV_2D, CONV_3D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, ADD, SUB, MUL, DIV, AVERAGE_POOL_2D, MAX_POOL_2D}
)


def fuse_activation(function: Function) -> bool:
    """Fuse every activation that is the only reader of its operand; return whether there was one."""
    changed = False
    for node in list(function.nodes):
        if node.op in _FUNCTIONS and node.input(0).type == TensorType.FLOAT32:
            changed |= _fuse(function, node, _FUNCTIONS[node.op])
    function.tidy()
    return changed


def _fuse(function: Function, node: Node, activation: ActivationFunctionType) -> bool:
    value = node.input(0)
    producer = value.producer
    if producer is None or producer.op not in _PRODUCERS or function.only_user(value) is not node:
        return False
    if producer.options.fused_activation_function != ActivationFunctionType.NONE:
        return False
    producer.options = replace(producer.options, fused_activation_function=activation)
    function.replace_node(node, [value])
    return True
