"""Decides which composites are converted whole: those whose fusion finds its contract met."""

from litecl.converter.composites import composite_of
from litecl.converter.graph import Function, Node
from litecl.converter.own_ops import COMPOSITE
from litecl.converter.passes.splice import splice
from litecl.converter.report import FusionRecord


def fuse_composites(function: Function) -> list[FusionRecord]:
    """Give up the bodies of composites that are fused, and put those of others in place of the calls."""
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
