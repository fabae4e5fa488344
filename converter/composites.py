"""Composites: calls of functions that represent one operation, whatever their bodies compute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from litecl.converter.graph import Node, Value


@dataclass(frozen=True, eq=False)
class Composite:
    """A call of a function that is marked ``_implements`` or ``api_implements``: what it is said to be, on what.

    attrs: the attributes given with the name; of a function marked ``api_implements``, those of the function.
    inputs: the operands; ``data`` is known of those that are constant. outputs: the results, with their ``users``.
    """

    name: str
    attrs: Mapping[str, Any]
    inputs: Sequence[Value]
    outputs: Sequence[Value]


def composite_of(node: Node) -> Composite:
    """Return the composite that a node is, as a fusion gets to see it."""
    inputs = [node.input(i) for i in range(len(node.inputs))]
    return Composite(node.attrs["name"], node.attrs["attrs"], inputs, node.outputs)
