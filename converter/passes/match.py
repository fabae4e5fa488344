"""Patterns over TensorFlow operators: trees to be found above a value.

``Pattern("Mul", [Any("x"), Pattern("Sigmoid", [Any("x")])])`` matches x * sigmoid(x), and sigmoid(x) * x.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.traits import traits_of

Bindings = dict[str, Value]


@dataclass(frozen=True)
class Any:
    """Any value; the same value wherever the same name is."""

    name: str


@dataclass(frozen=True)
class Number:
    """A constant whose elements all equal a number, nearly."""

    value: float


@dataclass(frozen=True)
class Constant:
    """Any constant."""

    name: str


@dataclass(frozen=True)
class Pattern:
    """A result of an operator whose operands match; ``name`` binds the value itself."""

    op: str
    operands: Sequence["Tree"]
    index: int = 0
    name: str = ""

    def __hash__(self) -> int:
        return id(self)


Tree = Any | Number | Constant | Pattern


def match(tree: Tree, value: Value) -> Bindings | None:
    """Return the values that the names of a pattern are bound to, if ``value`` is what it describes."""
    return next(_match(tree, value, {}), None)


def _match(tree: Tree, value: Value, bound: Bindings) -> Iterator[Bindings]:
    if isinstance(tree, Number):
        if value.data is not None and value.data.size and np.allclose(value.data, tree.value, rtol=1e-5, atol=0):
            yield bound
    elif isinstance(tree, Pattern):
        yield from _match_node(tree, value, bound)
    elif (isinstance(tree, Any) or value.data is not None) and bound.get(tree.name, value) is value:
        yield bound | {tree.name: value}


def _match_node(tree: Pattern, value: Value, bound: Bindings) -> Iterator[Bindings]:
    node = value.producer
    if node is None or node.op != tree.op or len(node.inputs) != len(tree.operands):
        return
    if node.outputs[tree.index : tree.index + 1] != (value,):
        return
    if tree.name:
        bound = bound | {tree.name: value}
    orders = permutations(node.inputs) if traits_of(node.op).commutative else [node.inputs]
    for operands in orders:
        yield from _match_all(tree.operands, operands, bound)


def _match_all(trees: Sequence[Tree], values: Sequence[Value | None], bound: Bindings) -> Iterator[Bindings]:
    if not trees:
        yield bound
        return
    if values[0] is None:
        return
    for further in _match(trees[0], values[0], bound):
        yield from _match_all(trees[1:], values[1:], further)
