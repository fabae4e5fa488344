"""Finds the lowest operator version that supports a node."""

from litecl.interpreter.graph import Node
from litecl.interpreter.op import Op, Specs


def version_of(node: Node, inputs: Specs) -> int:
    """Return the version to write for a node with operands ``inputs``."""
    first: int = node.op.versions.start
    if not isinstance(node.op, Op) or node.op.lowest is None:
        return first
    return max(first, node.op.lowest(node.options, inputs))
