"""Operators that select or place elements: slices, gathers, scatters."""

from collections.abc import Mapping, Sequence

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.expression import Expression
from litecl.converter.strided import MASKS, axis_bounds, new_axes
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.gather import GATHER, GATHER_ND, GatherOptions
from litecl.interpreter.ops.reverse import REVERSE_SEQUENCE, ReverseSequenceOptions
from litecl.interpreter.ops.scatter_nd import SCATTER_ND
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.ops.topk_v2 import TOPK_V2


def _slice(b: Builder) -> Value:
    return b.op(SLICE, [b.node.input(0), b.int32(b.node.input(1)), b.int32(b.node.input(2))])


def _strided_slice(b: Builder) -> Value:
    """Lower ellipsis and new axes, which not every kernel supports, to full ranges and a reshape."""
    x, *bounds = (b.int32(b.node.input(i)) if i else b.node.input(0) for i in range(4))
    masks = {name: int(b.node.attrs[name]) for name in MASKS}
    # Where a dimension is indexed, TensorFlow ignores the masks, but TFLite's kernels don't.
    masks |= {name: masks[name] & ~masks["shrink_axis_mask"] for name in ("begin_mask", "end_mask")}
    if masks["ellipsis_mask"] or masks["new_axis_mask"]:
        return _expanded(b, x, masks)
    options = StridedSliceOptions(masks["begin_mask"], masks["end_mask"], shrink_axis_mask=masks["shrink_axis_mask"])
    return b.op(STRIDED_SLICE, [x, *bounds], options)


def _expanded(b: Builder, x: Value, masks: Mapping[str, int]) -> Value:
    (count,) = b.shape(b.node.input(3), "strides")
    if count is None:
        raise b.error("the number of its strides is not known, next to ... or a new axis")
    spec = axis_bounds(count, len(b.shape(x)), masks)
    sliced = StridedSliceOptions(
        begin_mask=_mask(spec, masks["begin_mask"], when_full=True),
        end_mask=_mask(spec, masks["end_mask"], when_full=True),
        shrink_axis_mask=_mask(spec, masks["shrink_axis_mask"], when_full=False),
    )
    operands = [_entries(b, 1, spec), _entries(b, 2, spec), _entries(b, 3, spec, covered=1)]
    if not masks["new_axis_mask"]:
        return b.op(STRIDED_SLICE, [x, *operands], sliced)
    axes = new_axes(count, len(b.shape(x)), masks)
    target = b.node.output.shape
    if target is None:  # TensorFlow doesn't infer it if strides are computed
        target = (None,) * (len(b.shape(x)) - sliced.shrink_axis_mask.bit_count() + len(axes))
    shape = tuple(d for i, d in enumerate(target) if i not in axes)
    part = b.op(STRIDED_SLICE, [x, *operands], sliced, shape=shape)
    if target.count(None) <= 1:
        return b.reshape(part, [-1 if d is None else d for d in target])
    expanded = Expression(b, part)
    for axis in axes:
        expanded = expanded.expand(axis)
    return expanded.value


def _entries(b: Builder, position: int, spec: Sequence[int | None], covered: int | None = None) -> Value:
    """Return a bound or the stride for every dimension of the operand.

    covered: the value for dimensions under an ellipsis; None for bounds, which are ignored there.
    """
    given = b.int32(b.node.input(position))
    if given.data is not None:
        return b.const([covered or 0 if i is None else given.data[i] for i in spec], np.int32)
    places = [0 if i is None else i for i in spec]
    if covered is not None and None in spec:
        (count,) = b.shape(given)
        assert count is not None
        operands, places = [given, b.const([covered], np.int32)], [count if i is None else i for i in spec]
        given = b.op(CONCATENATION, operands, ConcatenationOptions(0), type=given.type, shape=(count + 1,))
    return b.op(GATHER, [given, b.const(places, np.int32)], GatherOptions(), type=given.type, shape=(len(spec),))


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
