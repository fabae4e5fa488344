"""Patterns over graphs of operators: trees to match above a tensor.

``Pattern("Mul", [AnyTensor("x"), Pattern("Sigmoid", [AnyTensor("x")])])`` matches x * sigmoid(x), and sigmoid(x) * x,
in any graph with the few methods of ``Graph``: the converter's, and a region's on a device.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import permutations
from types import EllipsisType
from typing import Generic, Protocol, TypeVar

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array

Tensor = TypeVar("Tensor")
Node = TypeVar("Node")


class Graph(Protocol[Tensor, Node]):
    """A graph as a matcher sees it. Tensors are compared with ``==``."""

    def producer(self, tensor: Tensor) -> Node | None:
        """Return the node that computes a tensor, None if none does."""

    def consumers(self, tensor: Tensor) -> Sequence[Node]:
        """Return the nodes that read a tensor; one that reads it twice is listed twice."""

    def operands(self, node: Node) -> Sequence[Tensor | None]:
        """Return a node's operands, None for an absent one."""

    def results(self, node: Node) -> Sequence[Tensor]:
        """Return a node's results."""

    def is_a(self, node: Node, op: object) -> bool:
        """Return whether a node is of an operator, as patterns name it."""

    def commutes(self, node: Node) -> bool:
        """Return whether a node's operands may be swapped."""

    def value(self, tensor: Tensor) -> Array | None:
        """Return the value of a constant, None for any other tensor."""


@dataclass(frozen=True)
class AnyTensor:
    """Any tensor; equal names stand for the same tensor."""

    name: str


@dataclass(frozen=True)
class Number:
    """A constant whose elements all nearly equal a number."""

    value: float


@dataclass(frozen=True)
class Constant:
    """Any constant."""

    name: str


@dataclass(frozen=True, eq=False)
class Pattern:
    """A result of an operator whose operands match.

    op: as the graph's ``is_a`` takes it. operands: ``...`` at the end matches any others, or none. index: the result's
    position. name: the result's name, if it has one.
    """

    op: object
    operands: Sequence["Tree | EllipsisType"]
    index: int = 0
    name: str = ""


@dataclass(frozen=True, eq=False)
class Behind:
    """A tensor that a tree describes, or a chain of ``ops`` on it, each the only reader of the one before."""

    ops: Sequence[object]
    tree: "Tree"


Tree = AnyTensor | Number | Constant | Pattern | Behind


@dataclass(frozen=True)
class Match(Generic[Tensor, Node]):
    """A match of a pattern: the tensors by their names in it, and the nodes, last one first."""

    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()

    def __getitem__(self, name: str) -> Tensor:
        """Return the tensor that has a name."""
        return self.tensors[name]

    def __contains__(self, name: str) -> bool:
        """Return whether a tensor has a name."""
        return name in self.tensors

    def named(self, name: str, tensor: Tensor) -> "Match[Tensor, Node]":
        """Return the match with one more name."""
        return Match({**self.tensors, name: tensor}, self.nodes)

    def beside(self, node: Node) -> "Match[Tensor, Node]":
        """Return the match with one more node."""
        return Match(self.tensors, (*self.nodes, node))


def match(graph: Graph[Tensor, Node], tree: Tree, tensor: Tensor) -> Match[Tensor, Node] | None:
    """Return the bindings of a tree's names if it describes ``tensor``, else None."""
    return next(_match(graph, tree, tensor, Match()), None)


def match_node(graph: Graph[Tensor, Node], tree: Pattern, node: Node, **known: Tensor) -> Match[Tensor, Node] | None:
    """Return the same for a result of a node. known: names that are bound already."""
    if not graph.is_a(node, tree.op):  # true of nearly all nodes
        return None
    return next(_match_node(graph, tree, node, Match(known)), None)


def _match(
    graph: Graph[Tensor, Node], tree: Tree, tensor: Tensor, bound: Match[Tensor, Node]
) -> Iterator[Match[Tensor, Node]]:
    if isinstance(tree, Number):
        data = graph.value(tensor)
        if data is not None and data.size and np.allclose(data, tree.value, rtol=1e-5, atol=0):
            yield bound
    elif isinstance(tree, Pattern):
        node = graph.producer(tensor)
        if node is not None and graph.is_a(node, tree.op) and _result(graph, tree, node) == tensor:
            yield from _match_node(graph, tree, node, bound)
    elif isinstance(tree, Behind):
        yield from _match_behind(graph, tree, tensor, bound)
    elif (isinstance(tree, AnyTensor) or graph.value(tensor) is not None) and bound.tensors.get(
        tree.name, tensor
    ) == tensor:
        yield bound.named(tree.name, tensor)


def _match_node(
    graph: Graph[Tensor, Node], tree: Pattern, node: Node, bound: Match[Tensor, Node]
) -> Iterator[Match[Tensor, Node]]:
    """Yield the matches of a node that is of the tree's operator."""
    operands, result = graph.operands(node), _result(graph, tree, node)
    if result is None or not _fits(tree.operands, len(operands)):
        return
    bound = (bound.named(tree.name, result) if tree.name else bound).beside(node)
    for order in permutations(operands) if graph.commutes(node) else [tuple(operands)]:
        yield from _match_all(graph, tree.operands, order, bound)


def _result(graph: Graph[Tensor, Node], tree: Pattern, node: Node) -> Tensor | None:
    """Return the result that a pattern describes, None if the node has fewer."""
    results = graph.results(node)
    return results[tree.index] if tree.index < len(results) else None


def _fits(trees: Sequence[Tree | EllipsisType], count: int) -> bool:
    """Return whether a pattern can have this number of operands."""
    return count >= len(trees) - 1 if trees and trees[-1] is ... else count == len(trees)


def _match_behind(
    graph: Graph[Tensor, Node], tree: Behind, tensor: Tensor, bound: Match[Tensor, Node]
) -> Iterator[Match[Tensor, Node]]:
    yield from _match(graph, tree.tree, tensor, bound)
    node = graph.producer(tensor)
    if node is None or not any(graph.is_a(node, op) for op in tree.ops):
        return
    for operand in graph.operands(node):
        if operand is not None and len(graph.consumers(operand)) == 1:  # so that nothing is visited twice
            yield from _match_behind(graph, tree, operand, bound.beside(node))


def _match_all(
    graph: Graph[Tensor, Node],
    trees: Sequence[Tree | EllipsisType],
    tensors: Sequence[Tensor | None],
    bound: Match[Tensor, Node],
) -> Iterator[Match[Tensor, Node]]:
    if not trees or isinstance(trees[0], EllipsisType):
        yield bound
        return
    if tensors[0] is None:
        return
    for further in _match(graph, trees[0], tensors[0], bound):
        yield from _match_all(graph, trees[1:], tensors[1:], further)
