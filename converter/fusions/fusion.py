"""Turns composites, functions that represent one operation, into TFLite's operators."""

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

    name: of the composite. rewrite: gives its results, built from its operands with ``Builder.op``.
    check: the contract; says what is not met, in which case the composite is converted from its body, or None.
    matches: for a family of names, given a name and its attributes; by default the name must be equal.
    """

    name: str
    rewrite: Rewrite
    check: Check = field(default=_always)
    matches: Matches | None = None

    def takes(self, name: str, attrs: Mapping[str, Any]) -> bool:
        """Return whether a composite is this fusion's."""
        return name == self.name if self.matches is None else self.matches(name, attrs)


def mark_of(function: Function) -> Callee | None:
    """Return what a function is said to implement; None if nothing."""
    mark = function.attrs.get("_implements")
    if isinstance(mark, Callee):
        return mark
    if isinstance(mark, str) and mark:
        return Callee(mark)
    interface = function.attrs.get("api_implements")
    return Callee(interface, function.attrs) if isinstance(interface, str) and interface else None


def expect(composite: Composite, inputs: range, outputs: range) -> str | None:
    """Return what is wrong with the numbers of operands and results; None if nothing."""
    for what, values, allowed in (("operands", composite.inputs, inputs), ("results", composite.outputs, outputs)):
        if len(values) not in allowed:
            wanted = f"{allowed.start}" if len(allowed) == 1 else f"{allowed.start} to {allowed.stop - 1}"
            return f"expected {wanted} {what}, got {len(values)}"
    return None


def expect_constants(composite: Composite, **positions: int) -> str | None:
    """Return the first named operand that is computed, where the contract requires constants; None if none."""
    return next(
        (
            f"its {name} is computed, expected a constant"
            for name, position in positions.items()
            if composite.inputs[position].data is None
        ),
        None,
    )


def expect_rank(composite: Composite, position: int, rank: int, what: str) -> str | None:
    """Return what is wrong with the rank of an operand; None if nothing."""
    got = composite.inputs[position].rank
    return None if got == rank else f"expected {what} of rank {rank}, got {'an unknown one' if got is None else got}"
