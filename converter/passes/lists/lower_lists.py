"""Turns lists of tensors into dense tensors, with elements along the first dimension.

Lists of fixed size are written in place by slice updates; growing lists are concatenated.
"""

from litecl.converter.graph import Module, Node, Value
from litecl.converter.passes.lists.builder import ListNode
from litecl.converter.passes.lists.elements import Scope
from litecl.converter.passes.lists.rules import LIST_RULES, resizes
from litecl.interpreter.schema import TensorType

_GROWS = (
    "TensorListPushBack",
    "TensorListPopBack",
    "TensorListResize",
    "TensorListConcatLists",
    "TensorListPushBackBatch",
)


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
                length = None if node.op == "While" and _grows(argument) else value.shape[0]
                argument.type, argument.shape = value.type, (length, *value.shape[1:])
        _lower(scope.enter(node, body))
    inner = node.bodies[-1]
    for i, (value, result) in enumerate(zip(node.outputs, inner.outputs, strict=True)):
        if value.type == TensorType.VARIANT:
            like = inner.inputs[i] if node.op == "While" else result
            value.type, value.shape = like.type, like.shape
            if node.op == "If" and node.bodies[0].outputs[i].shape != result.shape:
                value.shape = (None, *(result.shape or ())[1:])


def _grows(list_: Value) -> bool:
    """Return whether a body changes the length of a list passed to it."""
    for user in list_.users:
        if user.op in _GROWS or (user.op == "TensorListSetItem" and resizes(user)):
            return True
        if user.op == "TensorListSetItem" and _grows(user.output):
            return True
        for i, operand in enumerate(user.inputs):
            if operand is list_ and any(_grows(body.inputs[i - (user.op == "If")]) for body in user.bodies):
                return True
    return False
