"""Turns composites, functions that stand for one operation, into TFLite operators."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from litecl.converter.composites import Composite
from litecl.converter.graph import Function, Value
from litecl.converter.lower.builder import Builder
from litecl.converter.records import Callee

Check = Callable[[Composite], str | None]
Rewrite = Callable[[Builder, Composite], Value | Sequence[Value]]
Matches = Callable[[str, Mapping[str, Any]], bool]


def _always(composite: Composite) -> str | None:
    return None


@dataclass(frozen=True)
class Fusion:
    """A rule to convert composites of one name.

    name: of the composite. rewrite: builds its results from its operands with ``Builder.op``.
    check: returns why the contract isn't met, so that the composite is converted from its body, or None.
    matches: for a family of names, takes a name and its attributes; by default the name must be equal.
    """

    name: str
    rewrite: Rewrite
    check: Check = field(default=_always)
    matches: Matches | None = None

    def takes(self, name: str, attrs: Mapping[str, Any]) -> bool:
        """Return whether the fusion applies to a composite."""
        return name == self.name if self.matches is None else self.matches(name, attrs)


def mark_of(function: Function) -> Callee | None:
    """Return what a function is marked to implement, or None."""
    mark = function.attrs.get("_implements")
    if isinstance(mark, Callee):
        return mark
    if isinstance(mark, str) and mark:
        return Callee(mark)
    interface = function.attrs.get("api_implements")
    return Callee(interface, function.attrs) if isinstance(interface, str) and interface else None


def expect(composite: Composite, inputs: range, outputs: range) -> str | None:
    """Return what is wrong with the number of operands or results, or None."""
    for kind, values, allowed in (("operands", composite.inputs, inputs), ("results", composite.outputs, outputs)):
        if len(values) not in allowed:
            wanted = f"{allowed.start}" if len(allowed) == 1 else f"{allowed.start} to {allowed.stop - 1}"
            return f"expected {wanted} {kind}, got {len(values)}"
    return None


def expect_constants(composite: Composite, **positions: int) -> str | None:
    """Return which named operand is computed although the contract requires a constant, or None."""
    return next(
        (
            f"its {name} is computed, expected a constant"
            for name, position in positions.items()
            if composite.inputs[position].data is None
        ),
        None,
    )


def expect_rank(composite: Composite, position: int, rank: int, operand: str) -> str | None:
    """Return what is wrong with an operand's rank, or None."""
    got = composite.inputs[position].rank
    return None if got == rank else f"expected {operand} of rank {rank}, got {'an unknown one' if got is None else got}"
