"""Replaces slices of a concatenation of integers that equal one of its inputs."""

import math
from collections.abc import Sequence

from litecl.delegate.kit.claims import integers
from litecl.delegate.kit.strided import box, is_dense, offset, view
from litecl.delegate.ops import reshape
from litecl.delegate.plan.fusion import fuse, without_unread
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.schema import TensorType

_NUMBERS = (TensorType.INT32, TensorType.INT64)
_RESHAPE = next(cl_op for cl_op in reshape.CL_OPS if cl_op.op is RESHAPE)


def parts(graph: RegionGraph) -> RegionGraph:
    """Replace SLICE of a CONCATENATION, or of its RESHAPE, by the input that it selects."""
    return without_unread(graph, fuse(graph, _part))


def _part(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    begin = graph.value(node.inputs[1]) if graph.is_a(node, SLICE) else None
    joined = None if begin is None else _joined(graph, node.inputs[0])
    if begin is None or joined is None:
        return None
    whole, shape = (graph.specs[t].static_shape for t in (node.inputs[0], node.outputs[0]))
    edges = zip(integers(begin), shape, strict=True)
    sliced = box(view(whole), [slice(start, start + size) for start, size in edges])
    part = _at(graph, joined.inputs, offset(sliced), math.prod(shape)) if is_dense(sliced) else None
    if part is None or not graph.is_there(part, node):
        return None
    return node.behind(kernel=_RESHAPE, inputs=(part,), options=ReshapeOptions(shape))


def _joined(graph: RegionGraph, tensor: int) -> RegionNode | None:
    """Return the concatenation whose inputs a tensor consists of, one after another; else None."""
    node = graph.producer(tensor)
    if node is not None and graph.is_a(node, RESHAPE):
        return _joined(graph, node.inputs[0])
    if node is None or not graph.is_a(node, CONCATENATION) or not node.is_plain:
        return None
    ahead = graph.specs[node.outputs[0]].static_shape[: node.node.options.axis]
    return node if graph.specs[tensor].type in _NUMBERS and math.prod(ahead) == 1 else None


def _at(graph: RegionGraph, tensors: Sequence[int], start: int, count: int) -> int | None:
    """Return the one of several consecutive tensors that has exactly ``count`` elements from ``start``; else None."""
    at = 0
    for tensor in tensors:
        size = graph.specs[tensor].size
        if (at, size) == (start, count):
            return tensor
        at += size
    return None
