"""Decides which composites to convert whole: those that meet their fusion's contract."""

from litecl.converter.composites import composite_of
from litecl.converter.graph import Function, Node
from litecl.converter.own_ops import COMPOSITE
from litecl.converter.passes.splice import splice
from litecl.converter.report import FusionRecord


def fuse_composites(function: Function) -> list[FusionRecord]:
    """Drop the bodies of fused composites, and inline those of the others."""
    composites = [node for node in function.nodes if node.op == COMPOSITE and node.bodies]
    records = [_decide(function, node) for node in composites]
    function.tidy()
    return records


def _decide(function: Function, node: Node) -> FusionRecord:
    composite = composite_of(node)
    reason: str | None = node.attrs["fusion"].check(composite)
    (body,), node.bodies = node.bodies, ()
    if reason is not None:
        splice(function, node, body)
    return FusionRecord(composite.name, node.name, reason)
