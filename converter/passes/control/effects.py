"""Refuses operators with effects that TensorFlow Lite cannot have."""

from collections.abc import Collection, Iterator

from litecl.converter.graph import Function, Node
from litecl.converter.own_ops import COMPOSITE
from litecl.converter.traits import Effects
from litecl.interpreter.errors import ConversionError


def refuse_effects(function: Function, lowered: Collection[str]) -> None:
    """Raise ConversionError that names the nodes that write something, if their operators are not ``lowered``.

    The body of a composite counts only once no fusion has taken it; ``lower`` refuses what is left of it then.
    """
    refused = {node.op: node for node in reversed(list(_writers(function))) if node.op not in lowered}
    if refused:
        raise ConversionError(
            f"no TFLite operator has the effect of {'; '.join(map(str, reversed(refused.values())))}. Write to the "
            "whole of a variable, with assign, assign_add or assign_sub, and keep what acts outside of the model out "
            "of it"
        )


def _writers(function: Function) -> Iterator[Node]:
    for node in function.nodes:
        if node.effects is Effects.WRITES:
            yield node
        for body in node.bodies if node.op is not COMPOSITE else ():
            yield from _writers(body)
