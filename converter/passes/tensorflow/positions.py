"""Turns a model that reads a text from its beginning into one that reads tokens at given positions.

The model derives positions from its number of tokens: as the range 0, 1, 2, ..., or as the first rows of a table.
"""

from collections.abc import Iterator

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.passes.counts import Size
from litecl.converter.passes.sizes import Sizes, known_sizes
from litecl.converter.strided import MASKS, axis_bounds


def use_positions(function: Function, positions: Value) -> None:
    """Make a function whose only unknown dimension is the number of tokens read tokens at ``positions`` [tokens].

    Ranges from 0 to that number become the positions; first rows of tables become the rows at the positions.
    """
    sizes = known_sizes(function)
    for node in list(function.nodes):
        if node.op == "Range" and _counts_tokens(node, sizes):
            cast = function.emit(
                "Cast", [positions], node.output, node.name, SrcT=positions.type, DstT=node.output.type
            )
            function.replace_node(node, [cast])
        elif node.op in _CUTS and node.input(0).shape is not None:
            for axis in _CUTS[node.op_name](node, sizes):
                _gather(function, node, axis, positions)
    function.tidy()


def _counts_tokens(node: Node, sizes: Sizes) -> bool:
    """Return whether a range is 0, 1, 2, ... up to the number of tokens."""
    start, limit, delta = (node.input(i) for i in range(3))
    while limit.producer is not None and limit.producer.op == "Cast":
        limit = limit.producer.input(0)
    size = sizes.of(limit)
    return start.data == 0 and delta.data == 1 and size is not None and _is_dimension(size.item())


def _slice(node: Node, sizes: Sizes) -> Iterator[int]:
    """Yield the axes along which a Slice takes the first elements, one per token."""
    begin, size = sizes.of(node.input(1)), sizes.of(node.input(2))
    if begin is None or size is None:
        return
    for axis in range(len(begin)):
        if begin[axis] == 0 and _cuts(node, axis, size[axis]):
            yield axis


def _strided_slice(node: Node, sizes: Sizes) -> Iterator[int]:
    """Yield the same axes for ``x[:n]``, with any indices along other axes."""
    begin, end, steps = sizes.of(node.input(1)), sizes.of(node.input(2)), sizes.of(node.input(3))
    if begin is None or end is None or steps is None:
        return
    masks = {name: node.attrs.get(name, 0) for name in MASKS}
    for axis, i in enumerate(axis_bounds(len(begin), node.input(0).rank or 0, masks)):
        if i is None:
            continue
        from_first = masks["begin_mask"] >> i & 1 or begin[i] == 0
        to_end = (masks["end_mask"] | masks["shrink_axis_mask"]) >> i & 1
        if from_first and not to_end and steps[i] == 1 and _cuts(node, axis, end[i]):
            yield axis


_CUTS = {"Slice": _slice, "StridedSlice": _strided_slice}


def _cuts(node: Node, axis: int, size: object) -> bool:
    """Return whether a slice of ``size`` cuts a known axis to the number of tokens."""
    shape = node.input(0).shape
    return shape is not None and shape[axis] is not None and _is_dimension(size)


def _is_dimension(size: object) -> bool:
    """Return whether a size is an unknown dimension itself, not computed from others."""
    return isinstance(size, Size) and size.is_dimension


def _gather(function: Function, node: Node, axis: int, positions: Value) -> None:
    table = node.input(0)
    shape = (*(table.shape or ())[:axis], None, *(table.shape or ())[axis + 1 :])
    operands = [table, positions, constant(np.array(axis, np.int32), f"{node.name}/axis")]
    rows = function.emit("GatherV2", operands, (table.type, shape), node.name, batch_dims=0)
    node.rewire([rows, *node.inputs[1:]])
