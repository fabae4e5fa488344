"""Gives every If, While and Case its own functions, so that each can be changed separately."""

from collections.abc import Mapping

import numpy as np

from litecl.converter.graph import Function, Module, Node, Value, constant
from litecl.converter.records import Callee
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.schema import TensorType

_BODIES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "If": ("If", ("then_branch", "else_branch")),
    "StatelessIf": ("If", ("then_branch", "else_branch")),
    "While": ("While", ("cond", "body")),
    "StatelessWhile": ("While", ("cond", "body")),
}
_CASES = ("Case", "StatelessCase")
_MAX_DEPTH = 100


def own_bodies(module: Module) -> None:
    """Make every control flow node an If or a While with ``bodies``, and drop the function library."""
    _own(module.main, module.functions, 0)
    module.functions = {}


def _own(function: Function, library: Mapping[str, Function], depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise ConversionError(f"function {function.name!r} runs itself, which a .tflite file cannot express")
    for node in list(function.nodes):
        if node.op in _CASES:
            _chain(function, node, [_copy(callee, library, depth) for callee in node.attrs["branches"]])
        elif node.op in _BODIES and not node.bodies:
            op, names = _BODIES[node.op_name]
            node.bodies = tuple(_copy(node.attrs[name], library, depth) for name in names)
            node.become(op, node.inputs, {})
        else:
            for body in node.bodies:
                _own(body, library, depth + 1)
    function.tidy()


def _copy(callee: Callee, library: Mapping[str, Function], depth: int) -> Function:
    copy = library[callee.name].clone()
    _own(copy, library, depth + 1)
    return copy


def _chain(function: Function, case: Node, branches: list[Function]) -> None:
    """Turn a Case into an If on index 0, else a Case of the rest; an index out of range runs the last branch."""
    if len(branches) == 1:
        branches = [*branches, branches[0].clone()]
    function.replace_node(case, _if_chain(function, case, case.inputs, 0, branches))


def _if_chain(
    function: Function, case: Node, inputs: "tuple[Value | None, ...]", position: int, branches: list[Function]
) -> tuple[Value, ...]:
    index, *arguments = inputs
    assert index is not None
    first, *rest = branches
    otherwise = rest[0] if len(rest) == 1 else _remaining(case, position + 1, rest)
    operands = [index, *arguments] if len(rest) > 1 else arguments
    if len(rest) > 1:
        first.inputs.insert(0, Value(index.type, index.shape, index.name))
    condition = _equal(function, case, index, position)
    node = Node("If", [condition, *operands], _copies(case), {}, case.name, [first, otherwise])
    return function.add(node).outputs


def _remaining(case: Node, position: int, branches: list[Function]) -> Function:
    """Return a function of index and arguments that chooses among the branches from ``position`` on."""
    inputs = [Value(value.type, value.shape, value.name) for value in case.inputs if value is not None]
    function = Function(f"{case.name}/from_{position}", inputs, [])
    function.outputs = list(_if_chain(function, case, tuple(inputs), position, branches))
    function.tidy()
    return function


def _equal(function: Function, case: Node, index: Value, number: int) -> Value:
    operands = [index, constant(np.array(number, np.int32))]
    name = f"{case.name}/is_{number}"
    return function.emit("Equal", operands, (TensorType.BOOL, ()), name, incompatible_shape_error=True)


def _copies(node: Node) -> list[Value]:
    return [Value(value.type, value.shape, value.name) for value in node.outputs]
