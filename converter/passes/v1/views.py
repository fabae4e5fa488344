"""Tensors that share memory with a TensorFlow 1 variable, and so see later writes."""

from collections.abc import Iterable

from litecl.converter.graph import Function, Node, Value
from litecl.converter.records import Variable
from litecl.interpreter.errors import ConversionError

_SAME = (
    *("CheckNumerics", "CheckNumericsV2", "EnsureShape", "GuaranteeConst", "Identity", "PlaceholderWithDefault"),
    *("PreventGradient", "Print", "StopGradient"),
)
_RESHAPED = ("Bitcast", "ExpandDims", "Reshape", "Squeeze")
# Results share memory with an operand if they happen to equal it, or a suitable part of it.
_MAY_SHARE = (
    *("AddN", "BatchToSpaceND", "BroadcastTo", "Exit", "IdentityN", "MatrixBandPart", "Merge", "MirrorPad"),
    *("NextIteration", "Pack", "Pad", "PadV2", "ReverseV2", "Select", "SelectV2", "Slice", "SpaceToBatchND", "Split"),
    *("SplitV", "StridedSlice", "Tile", "Transpose", "Unpack"),
    *("All", "Any", "Max", "Mean", "Min", "Prod", "Sum"),
)
_MAY_HOLD = (*_SAME, *_RESHAPED, *_MAY_SHARE)


class Views:
    """The views of a variable: ``made``, the variable itself, and other names for the same memory."""

    def __init__(self, function: Function, variable: Value, handle: Value) -> None:
        self.function, self.made, self.handle = function, variable, handle
        self._values: dict[Value, None] = {variable: None}
        pending = [variable]
        while pending:
            views = [user.output for user in pending.pop().users if self.is_view(user)]
            pending += [value for value in views if value not in self._values]
            self._values.update(dict.fromkeys(views))

    def is_view(self, node: Node) -> bool:
        """Return whether a node makes a view of a view."""
        same_type = node.op == "Cast" and node.input(0).type == node.output.type
        return (same_type or node.op in (*_SAME, *_RESHAPED)) and node.input(0) in self._values

    def users(self) -> list[Node]:
        """Return the nodes that read a view."""
        return list(dict.fromkeys(user for view in self._values for user in view.users))

    def is_whole(self, value: Value) -> bool:
        """Return whether a value is a view with the variable's type and shape."""
        while value is not self.made and value in self._values and value.producer is not None:
            if value.producer.op in _RESHAPED:
                return False
            value = value.producer.input(0)
        return value is self.made

    def now(self, value: Value, before: Node | None) -> Value:
        """Return a value as it is right before a node: a view is recomputed from a read of the variable.

        The new nodes get that node's name, by which a body keeps the order of effects.
        """
        if value not in self._values:
            return value
        name = value.name if before is None else before.name
        result = Value(value.type, value.shape, value.name)
        if value is self.made or value.producer is None:
            return self.function.add(Node("ReadVariableOp", [self.handle], [result], {}, name), before).output
        view = value.producer
        operands = [self.now(view.input(0), before), *view.inputs[1:]]
        return self.function.add(Node(view.op, operands, [result], view.options, name), before).output


def refuse_shared(function: Function, readers: Iterable[Node], variable: Variable) -> None:
    """Raise ConversionError if a reader's result may be a view and is used after a later write of the variable."""
    position = {node: i for i, node in enumerate(function.nodes)}
    writes = [node for node in function.nodes if node.writes and any(v and v.variable is variable for v in node.inputs)]
    for node in (reader for reader in readers if reader.op in _MAY_SHARE):
        users = [node, *_users_of(node)]
        returned = any(function.is_output(value) for user in users if user.op in _MAY_HOLD for value in user.outputs)
        last = len(position) if returned else max(position[user] for user in users)
        write = next((write for write in writes if position[node] < position[write] < last), None)
        if write is not None:
            raise ConversionError(
                f"{node} reads the variable {variable.name!r}, which {write} writes before the result is used: "
                "TensorFlow may give the old value or the new one; make the variable with use_resource=True"
            )


def _users_of(node: Node) -> Iterable[Node]:
    """Return the nodes that read a node's results, directly or through values that may share their memory."""
    seen: dict[Node, None] = {}
    pending = [node]
    while pending:
        users = [user for value in pending.pop().outputs for user in value.users if user not in seen]
        seen.update(dict.fromkeys(users))
        pending += [user for user in users if user.op in _MAY_HOLD]
    return seen
