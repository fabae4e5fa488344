"""Turns lists of tensors into dense tensors, with elements along the first dimension.

Lists of fixed size are written in place by slice updates; growing lists are concatenated.
"""

from litecl.converter.graph import Module, Node
from litecl.converter.passes.lists.builder import ListNode
from litecl.converter.passes.lists.elements import Scope, grows
from litecl.converter.passes.lists.rules import LIST_RULES
from litecl.interpreter.schema import TensorType


def lower_lists(module: Module) -> None:
    """Replace every list operator, in loops and branches too."""
    _lower(Scope(module.main))


def _lower(scope: Scope) -> None:
    function = scope.function
    for node in list(function.nodes):
        rule = LIST_RULES.get(node.op_name)
        if rule is not None:
            function.replace_node(node, rule(ListNode(scope, node)))
        elif node.op in ("While", "If"):
            _control(scope, node)
    function.tidy()


def _control(scope: Scope, node: Node) -> None:
    """Give list arguments their dense type, inside and out."""
    operands = node.inputs[node.op == "If" :]
    for body in node.bodies:
        for value, argument in zip(operands, body.inputs, strict=True):
            if argument.type == TensorType.VARIANT and value is not None and value.shape:
                length = None if node.op == "While" and grows(argument) else value.shape[0]
                argument.type, argument.shape = value.type, (length, *value.shape[1:])
        _lower(scope.enter(node, body))
    inner = node.bodies[-1]
    for i, (value, result) in enumerate(zip(node.outputs, inner.outputs, strict=True)):
        if value.type == TensorType.VARIANT:
            like = inner.inputs[i] if node.op == "While" else result
            value.type, value.shape = like.type, like.shape
            if node.op == "If" and node.bodies[0].outputs[i].shape != result.shape:
                value.shape = (None, *(result.shape or ())[1:])
