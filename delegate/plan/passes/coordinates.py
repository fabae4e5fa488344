"""Simplifies updates at a position with only one non-constant coordinate: they read that coordinate."""

from litecl.delegate.kit.claims import integers
from litecl.delegate.ops.slice import UPDATE_ALONG, UpdateOptions
from litecl.delegate.plan.fusion import fuse, without_unread
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.pack import PACK


def coordinates(graph: RegionGraph) -> RegionGraph:
    """Drop the CONCATENATION or PACK of a DYNAMIC_UPDATE_SLICE's position, such as a KV cache's."""
    return without_unread(graph, fuse(graph, _along))


def _along(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    joined = graph.producer(node.inputs[2]) if graph.is_a(node, DYNAMIC_UPDATE_SLICE) else None
    if joined is None or joined.node.op not in (CONCATENATION, PACK) or not joined.is_plain:
        return None
    unknown = [t for t in joined.inputs if graph.value(t) is None]
    if len(unknown) != 1 or graph.specs[unknown[0]].size != 1 or not graph.is_there(unknown[0], node):
        return None
    values = [graph.value(t) for t in joined.inputs]
    starts = [start for value in values for start in ([None] if value is None else integers(value))]
    inputs = (*node.inputs[:2], unknown[0])
    return node.behind(kernel=UPDATE_ALONG, inputs=inputs, options=UpdateOptions(tuple(starts)))
