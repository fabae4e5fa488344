"""Attention masks that repeat: heads that share keys are rows of one product, so exporters repeat a head's mask for
all of them, booleans by way of floats.
"""

import math
from collections.abc import Iterator

import numpy as np

from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.graph import Shape
from litecl.interpreter.ops.cast import CAST
from litecl.interpreter.ops.compare import NOT_EQUAL
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.reshape import RESHAPE
from litecl.interpreter.schema import TensorType


def repeated(graph: RegionGraph, mask: int, reader: RegionNode) -> int:
    """Return the tensor that a mask repeats, or else the mask itself.

    reader: the node that reads the mask, and would read the tensor.
    """
    whole, source = graph.specs[mask], mask
    for tensor in _origins(graph, mask):
        spec = graph.specs[tensor]
        if (
            spec.type == whole.type
            and _is_part(spec.static_shape, whole.static_shape)
            and graph.is_there(tensor, reader)
        ):
            source = tensor
    return source


def _is_part(part: Shape, whole: Shape) -> bool:
    """Return whether a tensor's shape is one repetition of ``whole``: the same rows, a divisor of their number."""
    if not 2 <= len(part) <= len(whole) or part[-1] != whole[-1]:
        return False
    alone = math.prod(part[:-2]) == math.prod(whole[:-2]) == 1
    return alone and whole[-2] % part[-2] == 0


def _origins(graph: RegionGraph, tensor: int) -> Iterator[int]:
    """Yield the tensors whose elements, once or repeated in order, are a tensor's, as numbers or as booleans."""
    while (node := graph.producer(tensor)) is not None and node.is_plain:
        before = _before(graph, node)
        if before is None:
            return
        tensor = before
        yield tensor


def _before(graph: RegionGraph, node: RegionNode) -> int | None:
    """Return the tensor that a node only reshapes, repeats or casts; None if it does anything else."""
    first, op = node.inputs[0], node.node.op
    if op is RESHAPE:
        return first
    if op is CONCATENATION:
        ahead = graph.specs[first].static_shape[: node.node.options.axis]
        return first if set(node.inputs) == {first} and math.prod(ahead) == 1 else None
    if op is CAST:  # booleans become 0 and 1
        return first if graph.specs[first].type == TensorType.BOOL else None
    if op is NOT_EQUAL:
        zero = graph.value(node.inputs[1])
        return first if zero is not None and zero.size == 1 and not np.any(zero) else None
    return None
