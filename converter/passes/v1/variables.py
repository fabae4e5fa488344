"""Variables of TensorFlow 1, which are tensors that operators write in place, as the handles of TensorFlow 2."""

from litecl.converter.graph import Function, Node, Value
from litecl.converter.traits import Effects
from litecl.interpreter.schema import TensorType

_WRITES = {
    "Assign": "AssignVariableOp",
    "AssignAdd": "AssignAddVariableOp",
    "AssignSub": "AssignSubVariableOp",
    "StridedSliceAssign": "ResourceStridedSliceAssign",
    **{f"Scatter{kind}": f"ResourceScatter{kind}" for kind in ("Update", "Add", "Sub")},
    **{f"ScatterNd{kind}": f"ResourceScatterNd{kind}" for kind in ("Update", "Add", "Sub")},
}
_PASS_ON = ("RefEnter", "RefSwitch", "RefIdentity")


def raise_variables(function: Function) -> None:
    """Make every use of a variable as a tensor a read right there, every write one by its handle."""
    for node in list(function.nodes):
        if node.op in ("VariableV2", "Variable") and node.output.variable is not None:
            handle = Value(TensorType.RESOURCE, (), node.output.name, variable=node.output.variable)
            _raise(function, node.output, handle)


def _raise(function: Function, made: Value, handle: Value) -> None:
    for user in list(dict.fromkeys(made.users)):
        if _by_handle(user) is not None and user.input(0) is made:
            _write(function, user, handle)
        elif _is_step(user):
            user.rewire([handle if value is made else value for value in user.inputs])
        elif user.op in _PASS_ON:
            inputs = [handle if value is made else value for value in user.inputs]
            user.become(user.op_name.removeprefix("Ref"), inputs, user.options)
            for inner in user.outputs:
                readers, inner.users = inner.users, []
                passed = Value(TensorType.RESOURCE, (), inner.name, variable=made.variable, producer=user)
                like = Value(made.type, made.shape, inner.name, variable=made.variable, users=readers)
                for reader in set(readers):
                    reader.inputs = tuple(like if value is inner else value for value in reader.inputs)
                user.outputs = tuple(passed if value is inner else value for value in user.outputs)
                _raise(function, like, passed)
        else:
            read = _read(function, handle, made, user)
            user.rewire([read if value is made else value for value in user.inputs])
    if function.is_output(made):
        function.replace(made, _read(function, handle, made, None))


def _by_handle(node: Node) -> str | None:
    """Return the operator of TensorFlow 2 that writes what an operator of TensorFlow 1 does."""
    return f"Resource{node.op}" if node.op_name.startswith("Apply") else _WRITES.get(node.op_name)


def _is_step(node: Node) -> bool:
    """Return whether a node is the step of an optimizer, which writes several variables."""
    return node.op_name.removeprefix("Resource").startswith("Apply")


def _read(function: Function, handle: Value, made: Value, before: Node | None) -> Value:
    result = Value(made.type, made.shape, made.name)
    return function.add(Node("ReadVariableOp", [handle], [result], {}, made.name), before=before).output


def _write(function: Function, node: Node, handle: Value) -> None:
    """Make a write one by a handle; readers of its result read the variable as it is afterwards."""
    after = node.output
    follower = function.nodes[function.nodes.index(node) + 1 :][:1]
    node.outputs = ()
    node.become(_by_handle(node) or node.op, [handle, *node.inputs[1:]], node.options)
    node.effects = Effects.WRITES
    if after.users or function.is_output(after):
        function.replace(after, _read(function, handle, after, follower[0] if follower else None))
