"""Refuses operators whose effects TensorFlow Lite can't express."""

from collections.abc import Collection, Iterator

from litecl.converter.graph import Function, Node
from litecl.converter.hints import hint
from litecl.converter.own_ops import COMPOSITE
from litecl.converter.traits import Effects
from litecl.interpreter.errors import ConversionError


def refuse_effects(function: Function, lowered: Collection[str]) -> None:
    """Raise ConversionError that names the nodes with side effects whose operators are not ``lowered``.

    A composite's body is ignored while a fusion may still take it; ``lower`` refuses what is left of it.
    """
    refused: dict[str, Node] = {}
    for node in _writers(function):
        if node.op not in lowered:
            refused.setdefault(node.op_name, node)
    if refused:
        raise ConversionError(
            "\n".join(f"no TFLite operator has the effect of {node}: {hint(op)}" for op, node in refused.items())
        )


def _writers(function: Function) -> Iterator[Node]:
    for node in function.nodes:
        if node.effects is Effects.WRITES:
            yield node
        for body in node.bodies if node.op is not COMPOSITE else ():
            yield from _writers(body)
