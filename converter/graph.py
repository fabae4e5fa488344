"""The converter's graph: small, mutable, holding TensorFlow's operators at first and TFLite's at the end.

A pass rewires values and adds nodes in any order; ``Function.tidy`` then drops what nothing needs and sorts the rest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Array
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.schema import TensorType

Dims = tuple[int | None, ...]

_WRITES = ("Assign", "ResourceScatter", "ResourceApply", "ASSIGN_VARIABLE", "CALL_ONCE")


@dataclass(frozen=True)
class Variable:
    """A TensorFlow variable and the value that it has when the model is converted.

    key: what tells it from other variables of the process, whose names may be equal.
    """

    name: str = field(compare=False)
    data: Array = field(compare=False)
    key: str


@dataclass(frozen=True)
class Callee:
    """A function named by an attribute, with the attributes given to it."""

    name: str
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Value:
    """A tensor: the result of a node, an input of the function, or a constant (``data``).

    shape: None where not even the rank is known; None for a dimension that is known only at run time.
    variable: what a resource tensor stands for. is_state: whether an operator updates it in place.
    users: the nodes that read it, once for every operand.
    """

    type: TensorType
    shape: Dims | None
    name: str = ""
    data: Array | None = None
    variable: Variable | None = None
    is_state: bool = False
    producer: "Node | None" = None
    users: "list[Node]" = field(default_factory=list)

    @property
    def rank(self) -> int | None:
        """The number of dimensions, where it is known."""
        return None if self.shape is None else len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape if every dimension is known, else None."""
        if self.shape is None or None in self.shape:
            return None
        return tuple(d for d in self.shape if d is not None)

    def __repr__(self) -> str:
        return f"{self.name or '?'}:{self.type.name}{self.shape}{' const' if self.data is not None else ''}"


class Node:
    """An operator at work.

    op: the name of a TensorFlow operator, or the record of a TFLite one.
    options: the attributes by name of a TensorFlow operator, or an instance of ``op.options``.
    name: the place in the user's model.
    bodies: the functions that this node alone runs: branches of an If, condition and body of a While, the
        decomposition of a composite. They see nothing but their arguments.
    """

    def __init__(
        self,
        op: str | Op | ControlOp,
        inputs: Sequence[Value | None],
        outputs: Sequence[Value],
        options: Any,
        name: str,
        bodies: "Sequence[Function]" = (),
    ) -> None:
        self.op = op
        self.bodies = tuple(bodies)
        self.options = options
        self.name = name
        self.outputs = tuple(outputs)
        self.inputs: tuple[Value | None, ...] = ()
        self.rewire(inputs)
        for value in outputs:
            value.producer = self

    def rewire(self, inputs: Sequence[Value | None]) -> None:
        """Reads other values from now on."""
        for value in self.inputs:
            if value is not None:
                value.users.remove(self)
        self.inputs = tuple(inputs)
        for value in self.inputs:
            if value is not None:
                value.users.append(self)

    def input(self, position: int) -> Value:
        """An operand that must be there."""
        value = self.inputs[position] if position < len(self.inputs) else None
        if value is None:
            raise ConversionError(f"{self}: operand {position} is missing")
        return value

    @property
    def output(self) -> Value:
        """The first result."""
        return self.outputs[0]

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The attributes of a TensorFlow operator."""
        assert isinstance(self.op, str), f"{self} is not TensorFlow's"
        return self.options  # type: ignore[no-any-return]

    @property
    def is_effect(self) -> bool:
        """Whether the operator does something besides computing its results: it writes a variable."""
        name = self.op if isinstance(self.op, str) else self.op.name
        return name.startswith(_WRITES) or any(node.is_effect for body in self.bodies for node in body.nodes)

    def __str__(self) -> str:
        return f"{self.op if isinstance(self.op, str) else self.op.name} {self.name!r}"


@dataclass(eq=False)
class Function:
    """Nodes that compute outputs from inputs. ``attrs`` are those of TensorFlow's FunctionDef."""

    name: str
    inputs: list[Value]
    outputs: list[Value]
    nodes: list[Node] = field(default_factory=list)
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def add(self, node: Node, before: Node | None = None) -> Node:
        """Adds a node, to be sorted in by ``tidy``, or to run right before another one."""
        self.nodes.insert(len(self.nodes) if before is None else self.nodes.index(before), node)
        return node

    def emit(
        self,
        op: str,
        inputs: Sequence[Value | None],
        like: "Value | tuple[TensorType, Dims | None]",
        name: str,
        **attrs: Any,
    ) -> Value:
        """The result of a new TensorFlow operator, of the type and shape of ``like``."""
        type_, shape = (like.type, like.shape) if isinstance(like, Value) else like
        return self.add(Node(op, inputs, [Value(type_, shape, name)], attrs, name)).output

    def walk(self) -> "Iterator[Function]":
        """The functions that the nodes own, innermost first, and then this one."""
        for node in list(self.nodes):
            for body in node.bodies:
                yield from body.walk()
        yield self

    def clone(self) -> "Function":
        """A copy that shares nothing but the data of constants, bodies included."""
        copies: dict[Value, Value] = {}

        def copy(value: Value) -> Value:
            if value not in copies:
                copies[value] = replace(value, producer=None, users=[])
            return copies[value]

        inputs = [copy(value) for value in self.inputs]
        nodes = [
            Node(
                node.op,
                [None if value is None else copy(value) for value in node.inputs],
                [copy(value) for value in node.outputs],
                node.options,
                node.name,
                [body.clone() for body in node.bodies],
            )
            for node in self.nodes
        ]
        return Function(self.name, inputs, [copy(value) for value in self.outputs], nodes, self.attrs)

    def replace(self, old: Value, new: Value) -> None:
        """Lets every reader of ``old`` read ``new``."""
        if old is new:
            return
        for user in set(old.users):
            user.rewire([new if value is old else value for value in user.inputs])
        self.outputs = [new if value is old else value for value in self.outputs]

    def replace_node(self, node: Node, values: Sequence[Value]) -> None:
        """Lets ``values`` stand for the results of ``node``, which reads nothing any more."""
        for old, new in zip(node.outputs, values, strict=True):
            self.replace(old, new)
        node.rewire(())

    def only_user(self, value: Value) -> Node | None:
        """The node that alone reads ``value``, if there is one and the caller does not get the value too."""
        return value.users[0] if len(value.users) == 1 and not self.is_output(value) else None

    def is_output(self, value: Value) -> bool:
        """Whether the caller gets the value."""
        return any(value is output for output in self.outputs)

    def tidy(self) -> None:
        """Drops nodes that nothing needs, and sorts the others, in their present order where that is one."""
        live = self._live()
        kept = [node for node in self.nodes if node in live]
        for node in self.nodes:
            if node not in live:
                node.rewire(())
        self.nodes = _sorted(kept)

    def _live(self) -> set[Node]:
        live: set[Node] = set()
        pending = [value.producer for value in self.outputs] + [node for node in self.nodes if node.is_effect]
        while pending:
            node = pending.pop()
            if node is None or node in live:
                continue
            live.add(node)
            pending += [value.producer for value in node.inputs if value is not None]
        return live

    def check(self) -> None:
        """Raises AssertionError where the links between values and nodes do not hold together."""
        known = set(self.inputs)
        for node in self.nodes:
            for value in node.inputs:
                if value is None:
                    continue
                assert node in value.users, f"{self.name}: {node} reads {value} unseen"
                constant = value.data is not None or value.variable is not None
                assert constant or value in known, f"{self.name}: {node} reads {value} before it is computed"
            assert all(value.producer is node for value in node.outputs), f"{self.name}: {node} lost a result"
            for body in node.bodies:
                body.check()
            known |= set(node.outputs)
        for value in self.outputs:
            constant = value.data is not None or value.variable is not None
            assert constant or value in known, f"{self.name}: nothing computes the output {value}"


@dataclass(eq=False)
class Module:
    """A whole program: the entry point with the names of its arguments and results, and the functions that it calls.

    functions: TensorFlow's library of functions, until every node that calls one has its own.
    reshaped: whether the shapes of the inputs were changed, so that those of all other values are out of date.
    variables: those that the program changes, once they are known.
    """

    main: Function
    input_names: list[str]
    output_names: list[str]
    functions: dict[str, Function] = field(default_factory=dict)
    reshaped: bool = False
    variables: list[Variable] = field(default_factory=list)


def constant(data: Array, name: str = "") -> Value:
    """A value that is known."""
    return Value(TensorType.of(data.dtype), data.shape, name, data)


def _sorted(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, each after those whose results it reads."""
    done: set[Node] = set()
    result: list[Node] = []
    for root in nodes:
        stack = [root]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                continue
            missing = [v.producer for v in node.inputs if v is not None and v.producer is not None]
            missing = [producer for producer in missing if producer not in done]
            if missing:
                stack += reversed(missing)
                continue
            stack.pop()
            done.add(node)
            result.append(node)
    return result
