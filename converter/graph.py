"""The converter's graph: small, mutable, holding TensorFlow's operators at first and TFLite's at the end.

A pass rewires values and adds nodes in any order; ``Function.tidy`` then drops what nothing needs and sorts the rest.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from litecl.converter.order import in_order
from litecl.converter.records import Dims, Grid, OwnOp, Variable
from litecl.converter.traits import Effects, traits_of
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Array
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.schema import TensorType

Operator = str | OwnOp | Op | ControlOp


@dataclass(eq=False)
class Value:
    """A tensor: the result of a node, an input of the function, or a constant (``data``).

    shape: None where not even the rank is known; None for a dimension that is known only at run time.
    variable: the one that a resource tensor is a handle of. is_state: whether an operator updates it in place.
    grid: of a constant that quantization-aware training has rounded; of one in INT8, what its integers stand for.
    users: the nodes that read it, once for every operand.
    """

    type: TensorType
    shape: Dims | None
    name: str = ""
    data: Array | None = None
    variable: Variable | None = None
    is_state: bool = False
    grid: Grid | None = None
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

    op: the name of a TensorFlow operator, or the record of one of the converter's own or of a TFLite one.
    options: attributes by name, or for a TFLite operator an instance of ``op.options``.
    effects: those of the operator itself, without those of its bodies.
    name: the place in the user's model.
    bodies: the functions that this node alone runs: branches of an If, condition and body of a While, the
        decomposition of a composite. They see nothing but their arguments.
    """

    def __init__(
        self,
        op: Operator,
        inputs: Sequence[Value | None],
        outputs: Sequence[Value],
        options: Any,
        name: str,
        bodies: "Sequence[Function]" = (),
        effects: Effects | None = None,
    ) -> None:
        self.op = op
        self.effects = _effects_of(op) if effects is None else effects
        self.bodies = tuple(bodies)
        self.options = options
        self.name = name
        self.outputs = tuple(outputs)
        self.inputs: tuple[Value | None, ...] = ()
        self.rewire(inputs)
        for value in outputs:
            value.producer = self

    def rewire(self, inputs: Sequence[Value | None]) -> None:
        """Read other values from now on."""
        for value in self.inputs:
            if value is not None:
                value.users.remove(self)
        self.inputs = tuple(inputs)
        for value in self.inputs:
            if value is not None:
                value.users.append(self)

    def become(self, op: Operator, inputs: Sequence[Value | None], options: Any) -> None:
        """Turn into another operator with the same results, and that operator's effects."""
        self.op, self.options, self.effects = op, options, _effects_of(op)
        self.rewire(inputs)

    def copied(self, copies: Mapping[Value, Value]) -> "Node":
        """Return a copy that reads and makes copies of values; its bodies are cloned."""
        inputs = [None if value is None else copies[value] for value in self.inputs]
        outputs = [copies[value] for value in self.outputs]
        bodies = [body.clone() for body in self.bodies]
        return Node(self.op, inputs, outputs, self.options, self.name, bodies, self.effects)

    def input(self, position: int) -> Value:
        """Return an operand that must be there."""
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
        """The attributes of a TensorFlow operator or an internal one."""
        assert isinstance(self.op, str | OwnOp), f"{self} is not TensorFlow's"
        return self.options  # type: ignore[no-any-return]

    @property
    def op_name(self) -> str:
        """The name of the operator."""
        return self.op if isinstance(self.op, str) else self.op.name

    @property
    def writes(self) -> bool:
        """True if the node must run, whether or not its results are read: it or one of its bodies has effects."""
        return self.effects is Effects.WRITES or any(node.writes for body in self.bodies for node in body.nodes)

    def __str__(self) -> str:
        return f"{self.op_name} {self.name!r}"


@dataclass(eq=False)
class Function:
    """Nodes that compute outputs from inputs. ``attrs`` are those of TensorFlow's FunctionDef."""

    name: str
    inputs: list[Value]
    outputs: list[Value]
    nodes: list[Node] = field(default_factory=list)
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def add(self, node: Node, before: Node | None = None) -> Node:
        """Add a node, to be sorted in by ``tidy``, or to run right before another one."""
        self.nodes.insert(len(self.nodes) if before is None else self.nodes.index(before), node)
        return node

    def emit(
        self,
        op: Operator,
        inputs: Sequence[Value | None],
        like: "Value | tuple[TensorType, Dims | None]",
        name: str,
        **attrs: Any,
    ) -> Value:
        """Add a node with attributes and return its result, of the type and shape of ``like``."""
        type_, shape = (like.type, like.shape) if isinstance(like, Value) else like
        return self.add(Node(op, inputs, [Value(type_, shape, name)], attrs, name)).output

    def walk(self) -> "Iterator[Function]":
        """Return the functions that the nodes own, innermost first, and then this one."""
        for node in list(self.nodes):
            for body in node.bodies:
                yield from body.walk()
        yield self

    def clone(self) -> "Function":
        """Return a copy that shares nothing but the data of constants, bodies included."""
        values = [*self.inputs, *self.outputs, *(v for node in self.nodes for v in (*node.inputs, *node.outputs) if v)]
        copies = {value: replace(value, producer=None, users=[]) for value in values}
        nodes = [node.copied(copies) for node in self.nodes]
        inputs, outputs = ([copies[value] for value in part] for part in (self.inputs, self.outputs))
        return Function(self.name, inputs, outputs, nodes, self.attrs)

    def replace(self, old: Value, new: Value) -> None:
        """Let every reader of ``old`` read ``new``."""
        if old is new:
            return
        for user in set(old.users):
            user.rewire([new if value is old else value for value in user.inputs])
        self.outputs = [new if value is old else value for value in self.outputs]

    def replace_node(self, node: Node, values: Sequence[Value]) -> None:
        """Let readers of the results of ``node`` read ``values``; the node reads and does nothing any more."""
        for old, new in zip(node.outputs, values, strict=True):
            self.replace(old, new)
        node.effects = Effects.PURE
        node.rewire(())

    def only_user(self, value: Value) -> Node | None:
        """Return the node that alone reads ``value``, if there is one and the caller does not get the value too."""
        return value.users[0] if len(value.users) == 1 and not self.is_output(value) else None

    def is_output(self, value: Value) -> bool:
        """Return whether the caller gets the value."""
        return any(value is output for output in self.outputs)

    def tidy(self) -> None:
        """Drop nodes that nothing needs, and sort the others, in their present order where that is one."""
        live = self._live()
        kept = [node for node in self.nodes if node in live]
        for node in self.nodes:
            if node not in live:
                node.rewire(())
        self.nodes = in_order(kept, _producers)

    def _live(self) -> set[Node]:
        live: set[Node] = set()
        pending = [value.producer for value in self.outputs] + [node for node in self.nodes if node.writes]
        while pending:
            node = pending.pop()
            if node is None or node in live:
                continue
            live.add(node)
            pending += [value.producer for value in node.inputs if value is not None]
        return live

    def check(self) -> None:
        """Raise AssertionError where the links between values and nodes do not hold together."""
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
    place: tells from the name of a node the line of the user's code that made it, None where that is not known.
    source: what computes the same in TensorFlow, by the names of inputs and results; only where it was asked for.
    """

    main: Function
    input_names: list[str]
    output_names: list[str]
    functions: dict[str, Function] = field(default_factory=dict)
    reshaped: bool = False
    variables: list[Variable] = field(default_factory=list)
    place: Callable[[str], str | None] = lambda name: None
    source: Callable[[Mapping[str, Array]], dict[str, Array]] | None = None


def constant(data: Array, name: str = "", grid: Grid | None = None) -> Value:
    """Return a value that is known."""
    return Value(TensorType.of(data.dtype), data.shape, name, data, grid=grid)


def _effects_of(op: Operator) -> Effects:
    """Return the effects of an operator; of TFLite's that write, ``Builder.write`` tells the node."""
    if isinstance(op, OwnOp):
        return op.effects
    if isinstance(op, Op):
        return Effects.PURE if op.pure else Effects.READS
    return Effects.READS if isinstance(op, ControlOp) else traits_of(op).effects


def _producers(node: Node) -> list[Node]:
    return [value.producer for value in node.inputs if value is not None and value.producer is not None]
