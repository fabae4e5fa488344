"""Reads weights as integers, on a CPU, that a file dequantizes for a product of floats."""

from litecl.delegate.ops import fully_connected, gather
from litecl.delegate.ops.hybrid import embedding_lookup
from litecl.delegate.ops.weight_only import WEIGHT_ONLY, suits
from litecl.delegate.plan.fusion import fuse
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.quantize import DEQUANTIZE

_DENSE, (_LOOKUP,) = fully_connected.CL_OPS[0], embedding_lookup.CL_OPS
_FLOAT_LOOKUP = next(cl_op for cl_op in gather.CL_OPS if cl_op.op is EMBEDDING_LOOKUP)
_LEAST = 1 << 16  # weights: fewer stay in a cache as floats, which are read as fast and need no conversion


def weight_only(graph: RegionGraph) -> RegionGraph:
    """Let FULLY_CONNECTED of one row, and EMBEDDING_LOOKUP, read the constants before dequantization."""
    return fuse(graph, _stored)


def _stored(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    if node.cl_op not in (_DENSE, _FLOAT_LOOKUP):
        return None
    stored = _dequantized_from(graph, node.inputs[1])
    if stored is None or not suits(graph.specs[stored]):
        return None
    x, weights = (graph.specs[t] for t in (node.inputs[0], stored))
    if node.cl_op is _DENSE and (x.size != weights.static_shape[1] or weights.size < _LEAST):
        return None
    kernel = WEIGHT_ONLY if node.cl_op is _DENSE else _LOOKUP
    return node.behind(kernel=kernel, inputs=(node.inputs[0], stored, *node.inputs[2:]), options=node.node.options)


def _dequantized_from(graph: RegionGraph, tensor: int) -> int | None:
    """Return the tensor that a constant is dequantized from; None for any other tensor."""
    producer = graph.computed_before(tensor)
    return producer.inputs[0] if producer is not None and producer.op is DEQUANTIZE else None
