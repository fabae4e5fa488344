"""Masks of attention whose rows come again and again: heads that share keys are rows of one product, and so exporters
repeat the mask of a head for all of them, booleans by way of floats.
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
    """Return the tensor that a mask consists of, again and again; the mask itself where there is none.

    reader: what reads the mask, and could read the tensor.
    """
    whole, found = graph.specs[mask], mask
    for tensor in _origins(graph, mask):
        spec = graph.specs[tensor]
        if (
            spec.type == whole.type
            and _is_part(spec.static_shape, whole.static_shape)
            and graph.is_there(tensor, reader)
        ):
            found = tensor
    return found


def _is_part(part: Shape, whole: Shape) -> bool:
    """Return whether the rows of a tensor may be those of another, all of them once or more."""
    if not 2 <= len(part) <= len(whole) or part[-1] != whole[-1]:
        return False
    alone = math.prod(part[:-2]) == math.prod(whole[:-2]) == 1
    return alone and whole[-2] % part[-2] == 0


def _origins(graph: RegionGraph, tensor: int) -> Iterator[int]:
    """Yield the tensors whose elements in order, once or more, are those of a tensor, as numbers or as booleans."""
    while (node := graph.producer(tensor)) is not None and node.is_plain:
        before = _before(graph, node)
        if before is None:
            return
        tensor = before
        yield tensor


def _before(graph: RegionGraph, node: RegionNode) -> int | None:
    """Return the tensor whose elements a node only repeats, or gives another type; None if it does something else."""
    first, op = node.inputs[0], node.node.op
    if op is RESHAPE:
        return first
    if op is CONCATENATION:
        ahead = graph.specs[first].static_shape[: node.node.options.axis]
        return first if set(node.inputs) == {first} and math.prod(ahead) == 1 else None
    if op is CAST:  # of booleans, which are 0 and 1 as floats
        return first if graph.specs[first].type == TensorType.BOOL else None
    if op is NOT_EQUAL:
        zero = graph.value(node.inputs[1])
        return first if zero is not None and zero.size == 1 and not np.any(zero) else None
    return None
