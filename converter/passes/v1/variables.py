"""Turns TensorFlow 1's variables, tensors that operators write in place, into TensorFlow 2's handles."""

from collections.abc import Iterator

from litecl.converter.graph import Function, Node, Value
from litecl.converter.passes.v1.views import Views, refuse_shared
from litecl.converter.traits import Effects
from litecl.interpreter.schema import TensorType

_KINDS = ("Update", "Add", "Sub", "Max", "Min")
_WRITES = {
    "Assign": "AssignVariableOp",
    "AssignAdd": "AssignAddVariableOp",
    "AssignSub": "AssignSubVariableOp",
    "StridedSliceAssign": "ResourceStridedSliceAssign",
    **{f"Scatter{kind}": f"ResourceScatter{kind}" for kind in (*_KINDS, "Mul", "Div")},
    **{f"ScatterNd{kind}": f"ResourceScatterNd{kind}" for kind in _KINDS},
}
_PASS_ON = ("RefEnter", "RefSwitch", "RefIdentity", "Enter", "Switch")


def raise_variables(function: Function) -> None:
    """Make every use of a variable as a tensor read it at that point, and every write use its handle.

    A use sees everything written before it, even if an Identity between variable and use ran earlier: TensorFlow copies
    nothing there.
    """
    for node in list(function.nodes):
        variable = node.output.variable if node.op in ("VariableV2", "Variable") else None
        if variable is not None:
            handle = Value(TensorType.RESOURCE, (), node.output.name, variable=variable)
            refuse_shared(function, list(_raise(function, node.output, handle)), variable)


def _raise(function: Function, variable: Value, handle: Value) -> Iterator[Node]:
    """Make all users of a variable read it where they run, or take its handle; yield the readers."""
    _write_by_handle(function, variable, handle)
    views = Views(function, variable, handle)
    for user in views.users():
        if user.op in _PASS_ON and views.is_whole(user.input(0)):
            others = [value and views.now(value, user) for value in user.inputs[1:]]
            user.become(user.op_name.removeprefix("Ref"), [handle, *others], user.options)
            yield from _raise_behind(function, user, variable)
        elif not views.is_view(user):
            user.rewire([value and views.now(value, user) for value in user.inputs])
            yield user
    function.outputs = [views.now(value, None) for value in function.outputs]


def _write_by_handle(function: Function, variable: Value, handle: Value) -> None:
    """Make writes of a variable use its handle; their results become the variable."""
    while writes := [user for user in dict.fromkeys(variable.users) if _is_write(user, variable, handle)]:
        for node in writes:
            _become_write(function, node, variable, handle)


def _become_write(function: Function, node: Node, variable: Value, handle: Value) -> None:
    position = node.inputs.index(variable)
    if position:  # the optimizer's state beside the variable it updates
        node.rewire([*node.inputs[:position], handle, *node.inputs[position + 1 :]])
        return
    results, node.outputs = node.outputs, ()
    node.become(_by_handle(node) or node.op, [handle, *node.inputs[1:]], node.options)
    node.effects = Effects.WRITES
    for value in results:
        function.replace(value, variable)


def _raise_behind(function: Function, user: Node, variable: Value) -> Iterator[Node]:
    """Rewrite readers behind a Switch or an Enter that passes on the handle; yield them."""
    for inner in user.outputs:
        readers, inner.users = inner.users, []
        passed = Value(TensorType.RESOURCE, (), inner.name, variable=variable.variable, producer=user)
        like = Value(variable.type, variable.shape, inner.name, variable=variable.variable, users=readers)
        for reader in dict.fromkeys(readers):
            reader.inputs = tuple(like if value is inner else value for value in reader.inputs)
        user.outputs = tuple(passed if value is inner else value for value in user.outputs)
        yield from _raise(function, like, passed)


def _by_handle(node: Node) -> str | None:
    """Return TensorFlow 2's operator for a write of TensorFlow 1."""
    return f"Resource{node.op}" if node.op_name.startswith("Apply") else _WRITES.get(node.op_name)


def _is_step(node: Node) -> bool:
    """Return whether a node is an optimizer step, which writes several variables."""
    return node.op_name.removeprefix("Resource").startswith("Apply")


def _is_write(node: Node, variable: Value, handle: Value) -> bool:
    """Return whether a node writes a variable without using its handle yet."""
    if handle in node.inputs or variable not in node.inputs:
        return False
    return _is_step(node) or (_by_handle(node) is not None and node.input(0) is variable)
