"""The converter's graph: small and mutable, with TensorFlow's operators at first and TFLite's at the end.

Passes rewire values and add nodes in any order. ``Function.tidy`` then drops dead nodes and sorts the rest.
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
    """A tensor: a node's result, a function input, or a constant (``data``).

    shape: None if not even the rank is known; a None dimension is known only at run time.
    variable: the variable that a resource tensor refers to. is_state: whether an operator updates it in place.
    grid: of a constant rounded by quantization-aware training; for INT8, the range its integers represent.
    users: the nodes that read it, once per operand.
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
        """The number of dimensions, or None if unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape, or None if a dimension is unknown."""
        if self.shape is None or None in self.shape:
            return None
        return tuple(d for d in self.shape if d is not None)

    def __repr__(self) -> str:
        return f"{self.name or '?'}:{self.type.name}{self.shape}{' const' if self.data is not None else ''}"


class Node:
    """An operator applied to operands.

    op: the name of a TensorFlow operator, or the record of an internal or a TFLite operator.
    options: attributes by name; for a TFLite operator, an instance of ``op.options``.
    effects: the operator's own, without those of its bodies.
    name: the place in the user's model.
    bodies: functions that only this node runs: branches of an If, condition and body of a While, the decomposition of a
        composite. They see only their arguments.
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
        """Replace the operands."""
        for value in self.inputs:
            if value is not None:
                value.users.remove(self)
        self.inputs = tuple(inputs)
        for value in self.inputs:
            if value is not None:
                value.users.append(self)

    def become(self, op: Operator, inputs: Sequence[Value | None], options: Any) -> None:
        """Turn into another operator with the same results, and take on its effects."""
        self.op, self.options, self.effects = op, options, _effects_of(op)
        self.rewire(inputs)

    def copied(self, copies: Mapping[Value, Value]) -> "Node":
        """Return a copy with values mapped to their copies; bodies are cloned."""
        inputs = [None if value is None else copies[value] for value in self.inputs]
        outputs = [copies[value] for value in self.outputs]
        bodies = [body.clone() for body in self.bodies]
        return Node(self.op, inputs, outputs, self.options, self.name, bodies, self.effects)

    def input(self, position: int) -> Value:
        """Return an operand. Raises ConversionError if it is missing."""
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
        """The attributes of a TensorFlow or internal operator."""
        assert isinstance(self.op, str | OwnOp), f"{self} is not TensorFlow's"
        return self.options  # type: ignore[no-any-return]

    @property
    def op_name(self) -> str:
        """The name of the operator."""
        return self.op if isinstance(self.op, str) else self.op.name

    @property
    def writes(self) -> bool:
        """True if the node must run even if nothing reads its results: it or one of its bodies has side effects."""
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
        """Add a node at the end, for ``tidy`` to sort, or right before another one."""
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
        """Add a node with attributes and return its result, which has the type and shape of ``like``."""
        type_, shape = (like.type, like.shape) if isinstance(like, Value) else like
        return self.add(Node(op, inputs, [Value(type_, shape, name)], attrs, name)).output

    def walk(self) -> "Iterator[Function]":
        """Yield the functions that nodes own, innermost first, then this one."""
        for node in list(self.nodes):
            for body in node.bodies:
                yield from body.walk()
        yield self

    def clone(self) -> "Function":
        """Return a deep copy, bodies included; only constants' data is shared."""
        values = [*self.inputs, *self.outputs, *(v for node in self.nodes for v in (*node.inputs, *node.outputs) if v)]
        copies = {value: replace(value, producer=None, users=[]) for value in values}
        nodes = [node.copied(copies) for node in self.nodes]
        inputs, outputs = ([copies[value] for value in part] for part in (self.inputs, self.outputs))
        return Function(self.name, inputs, outputs, nodes, self.attrs)

    def replace(self, old: Value, new: Value) -> None:
        """Make every reader of ``old`` read ``new``."""
        if old is new:
            return
        for user in dict.fromkeys(old.users):  # in order, so that conversions are reproducible
            user.rewire([new if value is old else value for value in user.inputs])
        self.outputs = [new if value is old else value for value in self.outputs]

    def replace_node(self, node: Node, values: Sequence[Value]) -> None:
        """Make readers of the node's results read ``values``; the node is then dead."""
        for old, new in zip(node.outputs, values, strict=True):
            self.replace(old, new)
        node.effects = Effects.PURE
        node.rewire(())

    def only_user(self, value: Value) -> Node | None:
        """Return the only node that reads ``value``; None if there are several, or if ``value`` is an output."""
        return value.users[0] if len(value.users) == 1 and not self.is_output(value) else None

    def is_output(self, value: Value) -> bool:
        """Return whether the value is an output of the function."""
        return any(value is output for output in self.outputs)

    def tidy(self) -> None:
        """Drop dead nodes and sort the rest topologically, keeping the present order if possible."""
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
        """Raise AssertionError if links between values and nodes are inconsistent."""
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
    """A whole program: the entry point with its argument and result names, and the functions it calls.

    functions: TensorFlow's function library, until every caller owns its callee.
    reshaped: whether input shapes were changed, which makes all other shapes stale.
    variables: those that the program changes, once known.
    place: maps a node's name to the line of user code that made it, or None.
    source: the same function in TensorFlow, by input and result names; only if asked for.
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
    """Return a constant value."""
    return Value(TensorType.of(data.dtype), data.shape, name, data, grid=grid)


def _effects_of(op: Operator) -> Effects:
    """Return an operator's effects. TFLite operators that write get theirs from ``Builder.write``."""
    if isinstance(op, OwnOp):
        return op.effects
    if isinstance(op, Op):
        return Effects.PURE if op.pure else Effects.READS
    return Effects.READS if isinstance(op, ControlOp) else traits_of(op).effects


def _producers(node: Node) -> list[Node]:
    return [value.producer for value in node.inputs if value is not None and value.producer is not None]
