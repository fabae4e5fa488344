"""Builds models with loops and branches."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from litecl.interpreter.graph import Array, Model, Subgraph
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.control import IF, WHILE, IfOptions, WhileOptions
from litecl.interpreter.schema import TensorType
from litecl.perf.models.build import Graph, model

INT, BOOL, FLOAT = TensorType.INT32, TensorType.BOOL, TensorType.FLOAT32
State = Sequence[tuple[tuple[int, ...], TensorType]]
Part = Callable[[Graph, Sequence[int]], Any]


def subgraph(name: str, state: State, part: Part) -> Subgraph:
    """Return a subgraph over loop variables. ``part`` adds its nodes and returns its outputs."""
    g = Graph(name)
    outputs = part(g, [g.input(shape, type_) for shape, type_ in state])
    return g.build(*([outputs] if isinstance(outputs, int) else outputs))


def while_model(state: State, condition: Part, body: Part, *more: Subgraph) -> Model:
    """Return a model with a single WHILE: subgraph 1 is its condition, 2 its body, and ``more`` follow."""
    return model(
        subgraph("main", state, lambda g, x: while_node(g, x, 1, 2)),
        subgraph("cond", state, condition),
        subgraph("body", state, body),
        *more,
    )


def while_node(g: Graph, x: Sequence[int], condition: int, body: int) -> list[int]:
    """Add a WHILE over tensors with these subgraphs; return its results."""
    return g.node(WHILE, x, [g.tensors[t] for t in x], WhileOptions(condition, body))


def if_node(g: Graph, x: Sequence[int], then: int, otherwise: int, *results: int) -> list[int]:
    """Add an IF on the first tensor, with the others as operands. Its results have the specs of ``results``."""
    return g.node(IF, x, [g.tensors[t] for t in results], IfOptions(then, otherwise))


def int32(value: int) -> Array:
    """Return a scalar."""
    return np.array(value, np.int32)


def below(limit: int, at: int = 0) -> Part:
    """Return the condition that an int32 variable is less than a limit."""
    return lambda g, x: g.op(LESS, [x[at], g.const(int32(limit))], NoOptions())


def plus(g: Graph, a: int, b: int) -> int:
    """Add a sum."""
    return g.op(ADD, [a, b], AddOptions())


def times(g: Graph, a: int, b: int) -> int:
    """Add a product."""
    return g.op(MUL, [a, b], MulOptions())


def next_(g: Graph, i: int) -> int:
    """Add an increment by one."""
    return plus(g, i, g.const(int32(1)))
