"""Operators that pick or place elements: slices, gathers, scatters."""

from collections.abc import Mapping, Sequence

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.gather import GATHER, GATHER_ND, GatherOptions
from litecl.interpreter.ops.reverse import REVERSE_SEQUENCE, ReverseSequenceOptions
from litecl.interpreter.ops.scatter_nd import SCATTER_ND
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.ops.topk_v2 import TOPK_V2

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _slice(b: Builder) -> Value:
    return b.op(SLICE, [b.node.input(0), b.int32(b.node.input(1)), b.int32(b.node.input(2))])


def _strided_slice(b: Builder) -> Value:
    """Ellipsis and new axes, which not every kernel has, become full ranges and a reshape."""
    x, *bounds = (b.int32(b.node.input(i)) if i else b.node.input(0) for i in range(4))
    masks = {name: int(b.node.attrs[name]) for name in MASKS}
    if masks["ellipsis_mask"] or masks["new_axis_mask"]:
        return _expanded(b, x, masks)
    options = StridedSliceOptions(masks["begin_mask"], masks["end_mask"], shrink_axis_mask=masks["shrink_axis_mask"])
    return b.op(STRIDED_SLICE, [x, *bounds], options)


def _expanded(b: Builder, x: Value, masks: Mapping[str, int]) -> Value:
    begin, end, stride = (b.known(i, "bounds, next to ... or a new axis,") for i in (1, 2, 3))
    spec = positions(len(begin), len(b.shape(x)), masks)
    rows = [(begin[i], end[i], stride[i]) if i is not None else (0, 0, 1) for i in spec]
    sliced = StridedSliceOptions(
        begin_mask=_mask(spec, masks["begin_mask"], when_full=True),
        end_mask=_mask(spec, masks["end_mask"], when_full=True),
        shrink_axis_mask=_mask(spec, masks["shrink_axis_mask"], when_full=False),
    )
    operands = [b.const([row[k] for row in rows], np.int32) for k in range(3)]
    target = b.node.output.shape
    if not masks["new_axis_mask"]:
        return b.op(STRIDED_SLICE, [x, *operands], sliced)
    if target is None or target.count(None) > 1:
        raise b.error("it adds an axis to a tensor with more than one dimension of unknown size; use tf.expand_dims")
    # The shape between slice and reshape is the result's without its new axes.
    part = b.op(STRIDED_SLICE, [x, *operands], sliced, shape=None)
    return b.reshape(part, [-1 if d is None else d for d in target])


def positions(count: int, rank: int, masks: Mapping[str, int]) -> list[int | None]:
    """For every dimension of the operand the position in the bounds, None where an ellipsis covers it."""
    new_axes = [i for i in range(count) if masks["new_axis_mask"] >> i & 1 and not masks["ellipsis_mask"] >> i & 1]
    result: list[int | None] = []
    for i in range(count):
        if masks["ellipsis_mask"] >> i & 1:
            result += [None] * (rank - (count - 1 - len(new_axes)))
        elif i not in new_axes:
            result.append(i)
    return result


def _mask(spec: Sequence[int | None], mask: int, *, when_full: bool) -> int:
    bits = [when_full if i is None else bool(mask >> i & 1) for i in spec]
    return sum(1 << k for k, bit in enumerate(bits) if bit)


def _gather(b: Builder) -> Value:
    axis: Array | int = b.known(2, "axis") if len(b.node.inputs) > 2 else 0
    options = GatherOptions(int(axis), int(b.node.attrs.get("batch_dims") or 0))
    return b.op(GATHER, b.node.inputs[:2], options)


def _scatter_nd(b: Builder) -> Value:
    return b.op(SCATTER_ND, [b.int32(b.node.input(0)), b.node.input(1), b.int32(b.node.input(2))])


def _top_k(b: Builder) -> Sequence[Value]:
    return b.ops(TOPK_V2, [b.node.input(0), b.int32(b.node.input(1))], None, b.like())


def _reverse_sequence(b: Builder) -> Value:
    options = ReverseSequenceOptions(int(b.node.attrs["seq_dim"]), int(b.node.attrs["batch_dim"]))
    return b.op(REVERSE_SEQUENCE, b.node.inputs, options)


LOWERINGS: dict[str, Lowering] = {
    "Slice": _slice,
    "StridedSlice": _strided_slice,
    "Gather": _gather,
    "GatherV2": _gather,
    "GatherNd": lambda b: b.op(GATHER_ND, b.node.inputs),
    "ScatterNd": _scatter_nd,
    "TopKV2": _top_k,
    "ReverseSequence": _reverse_sequence,
}
