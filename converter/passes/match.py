"""Patterns of TensorFlow operators, matched by ``litecl.interpreter.match``."""

from collections.abc import Sequence

from litecl.converter.graph import Node, Value
from litecl.converter.traits import traits_of
from litecl.interpreter import match as trees
from litecl.interpreter.graph import Array
from litecl.interpreter.match import AnyTensor, Constant, Number, Pattern, Tree

Bindings = trees.Match[Value, Node]

__all__ = ["AnyTensor", "Bindings", "Constant", "Number", "Pattern", "Tree", "match"]


class _Values:
    """Values and nodes as a ``litecl.interpreter.match.Graph``."""

    def producer(self, value: Value) -> Node | None:
        return value.producer

    def consumers(self, value: Value) -> Sequence[Node]:
        return value.users

    def operands(self, node: Node) -> Sequence[Value | None]:
        return node.inputs

    def results(self, node: Node) -> Sequence[Value]:
        return node.outputs

    def is_a(self, node: Node, op: object) -> bool:
        return node.op == op

    def commutes(self, node: Node) -> bool:
        return traits_of(node.op).commutative

    def value(self, tensor: Value) -> Array | None:
        return tensor.data


_VALUES = _Values()


def match(tree: Tree, value: Value) -> Bindings | None:
    """Return the values bound to the pattern's names if ``value`` matches, else None."""
    return trees.match(_VALUES, tree, value)
