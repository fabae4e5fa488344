"""Lowers composites that meet their fusion's contract."""

from collections.abc import Sequence

from litecl.converter.composites import composite_of
from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder


def lower_composite(b: Builder) -> Value | Sequence[Value]:
    """Return the results of the composite's fusion. Raises ConversionError if their number is wrong."""
    results = b.node.attrs["fusion"].rewrite(b, composite_of(b.node))
    values = [results] if isinstance(results, Value) else list(results)
    if len(values) != len(b.node.outputs):
        name = b.node.attrs["name"]
        raise b.error(f"the fusion of {name!r} gave {len(values)} results, expected {len(b.node.outputs)}")
    return values
