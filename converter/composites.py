"""Composites: function calls that stand for one operation, whatever their bodies compute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from litecl.converter.graph import Node, Value


@dataclass(frozen=True, eq=False)
class Composite:
    """A call of a function marked ``_implements`` or ``api_implements``.

    attrs: those given with the name; for ``api_implements``, the function's own.
    inputs: the operands; constants have ``data``. outputs: the results, with their ``users``.
    """

    name: str
    attrs: Mapping[str, Any]
    inputs: Sequence[Value]
    outputs: Sequence[Value]


def composite_of(node: Node) -> Composite:
    """Return the composite that a fusion sees for a node."""
    inputs = [node.input(i) for i in range(len(node.inputs))]
    return Composite(node.attrs["name"], node.attrs["attrs"], inputs, node.outputs)
