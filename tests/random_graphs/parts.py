"""Operators that cut tensors, join them, and gather parts of them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.gather import GATHER, GATHER_ND, GatherOptions
from litecl.interpreter.ops.pack import PACK, UNPACK, PackOptions, UnpackOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.split import SPLIT, SPLIT_V, SplitOptions, SplitVOptions
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.random_graphs.moves import (
    any_axis,
    blocks,
    border,
    made,
    moved,
    order,
    positions_in,
    ranked,
    reshape,
)
from litecl.random_graphs.sketch import MOST_ELEMENTS, Sketch, T, Unfit


def cut(s: Sketch) -> None:
    """SPLIT, SPLIT_V and UNPACK; of the pieces some are joined again."""
    x, shape = ranked(s)
    spec, axis = s.spec(x), any_axis(s, len(shape))
    size = shape[axis]
    kind = s.one_of("split", "split_v", "unpack")
    if kind == "unpack":
        if size > 8:
            raise Unfit("pieces")
        out = [TensorSpec(spec.type, None, quantization=spec.quantization)] * size
        parts = s.node(UNPACK, [x], UnpackOptions(size, axis), out)
    elif kind == "split":
        count = int(s.one_of(*(c for c in (1, 2, 3, 4, 7) if size % c == 0)))
        out = [TensorSpec(spec.type, None, quantization=spec.quantization)] * count
        parts = s.node(SPLIT, [s.const(np.array(axis, np.int32)), x], SplitOptions(count), out)
    else:
        ends = sorted({0, size, *s.rng.integers(0, size + 1, 2).tolist()})
        sizes = np.diff(ends).tolist()
        out = [TensorSpec(spec.type, None, quantization=spec.quantization)] * len(sizes)
        inputs = [x, s.ints(*sizes), s.const(np.array(axis, np.int32))]
        parts = s.node(SPLIT_V, inputs, SplitVOptions(len(sizes)), out)
    if s.chance(0.3) and len(parts) > 1 and kind != "split_v":
        _joined(s, parts[::-1], axis if kind == "split" else None)


def _joined(s: Sketch, parts: Sequence[int], axis: int | None) -> None:
    spec = s.spec(parts[0])
    out = [TensorSpec(spec.type, None, quantization=spec.quantization)]
    if axis is None:
        s.op(PACK, parts, PackOptions(len(parts), any_axis(s, len(spec.static_shape) + 1)), out)
    else:
        s.op(CONCATENATION, parts, ConcatenationOptions(axis), out)


def join(s: Sketch) -> None:
    """CONCATENATION, mostly of the last dimension, and PACK, of tensors of one type and scale."""
    x, shape = ranked(s)
    spec = s.spec(x)
    if s.chance(0.25):
        _joined(s, [x, *(s.like(x) for _ in range(int(s.rng.integers(0, 4))))], None)
        return
    axis = -1 if s.chance(0.6) else any_axis(s, len(shape))
    at = axis % len(shape)
    others = []
    for _ in range(int(s.rng.integers(1, 5))):
        fits = [
            t
            for t in s.pool
            if s.spec(t).type == spec.type
            and len(s.shape_of(t)) == len(shape)
            and s.shape_of(t)[:at] == shape[:at]
            and s.shape_of(t)[at + 1 :] == shape[at + 1 :]
            and (s.spec(t).quantization is spec.quantization or s.spec(t).type == T.UINT8)
            and (s.spec(t).quantization is None) == (spec.quantization is None)
        ]
        if fits and s.chance(0.8):
            others.append(int(s.one_of(*fits)))
        else:
            piece = (*shape[:at], s.size(17), *shape[at + 1 :])
            others.append(s.const(s.random(spec.type, piece), spec.type, spec.quantization))
    parts = [x, *others]
    s.rng.shuffle(parts)
    if np.sum([s.spec(t).size for t in parts]) > 2 * MOST_ELEMENTS:
        raise Unfit("large")
    _joined(s, [int(t) for t in parts], axis)


def box(s: Sketch) -> None:
    """SLICE, by constants or by a tensor, and DYNAMIC_UPDATE_SLICE."""
    x, shape = ranked(s)
    spec = s.spec(x)
    begin = [int(s.rng.integers(0, size)) if s.chance(0.7) else 0 for size in shape]
    sizes = [
        int(s.rng.integers(1, size - b + 1)) if s.chance(0.6) else size - b
        for b, size in zip(begin, shape, strict=True)
    ]
    at = s.positions(np.array(begin, np.int32)) if s.chance(0.3) else s.ints(*begin)
    if s.chance(0.7):
        rest = [-1 if b + n == size and s.chance(0.3) else n for b, n, size in zip(begin, sizes, shape, strict=True)]
        moved(s, SLICE, x, [at, s.ints(*rest)])
        return
    update = s.const(s.random(spec.type, tuple(sizes)), spec.type, spec.quantization)
    same = [
        t
        for t in s.pool
        if s.spec(t).type == spec.type
        and s.shape_of(t) == tuple(sizes)
        and t != x
        and s.spec(t).quantization is spec.quantization
    ]
    moved(s, DYNAMIC_UPDATE_SLICE, x, [int(s.one_of(*same)) if same and s.chance(0.7) else update, at])


def strided_slice(s: Sketch) -> None:
    """STRIDED_SLICE with steps, backwards, masks, and elements taken out."""
    x, shape = ranked(s)
    begin, end, step, masks = [], [], [], [0, 0, 0]
    for axis, size in enumerate(shape):
        by = int(s.one_of(1, 1, 1, 2, 3, -1, -2))
        first, last = sorted(s.rng.integers(0, size + 1, 2).tolist())
        first, last = (first, max(first + 1, last)) if first < size else (size - 1, size)
        begin.append(first if by > 0 else last - 1)
        end.append(last if by > 0 else first - 1 if first else -size - 1)
        step.append(by)
        if s.chance(0.12):
            begin[-1], end[-1], step[-1] = first, first + 1, 1
            masks[2] |= 1 << axis
        else:
            masks[0] |= s.chance(0.3) << axis
            masks[1] |= s.chance(0.3) << axis
            begin[-1], end[-1] = (_beyond(s, at, size) for at in (begin[-1], end[-1]))
    options = StridedSliceOptions(begin_mask=masks[0], end_mask=masks[1], shrink_axis_mask=masks[2])
    if s.chance(0.25):  # an ellipsis for one dimension, or a new one before it
        bit = 1 << int(s.rng.integers(len(shape)))
        ellipsis = s.chance(0.5)
        options = replace(options, ellipsis_mask=bit * ellipsis, new_axis_mask=bit * (not ellipsis))
    entries = len(shape) if s.chance(0.8) else int(s.rng.integers(1, len(shape) + 1))
    moved(s, STRIDED_SLICE, x, [s.ints(*each[:entries]) for each in (begin, end, step)], options)


def _beyond(s: Sketch, at: int, size: int) -> int:
    """Return a bound, now and then one past the ends of the dimension, or the same one counted from its end."""
    if s.chance(0.1):
        return int(at + s.one_of(-1, 1) * s.one_of(size + 1, 2**31 - 1 - size))
    return at - size if 0 <= at < size and s.chance(0.1) else at


def rows(s: Sketch) -> None:
    """GATHER, GATHER_ND and EMBEDDING_LOOKUP."""
    x, shape = ranked(s)
    kind = s.one_of("gather", "gather", "nd", "embedding")
    if kind == "gather":
        axis = int(s.rng.integers(len(shape)))
        batch = int(s.rng.integers(0, axis + 1)) if s.chance(0.3) else 0
        outer = (*shape[:batch], *s.shape(int(s.rng.integers(0, 3)), 40))
        options = GatherOptions(axis - s.one_of(0, 0, len(shape)), batch - s.one_of(0, 0, len(outer)) * (batch > 0))
        moved(s, GATHER, x, [positions_in(s, shape[axis], outer)], options)
    elif kind == "nd":
        depth = int(s.rng.integers(1, len(shape) + 1))
        outer = s.shape(int(s.rng.integers(1, 3)), 30)
        indices = np.stack([s.rng.integers(0, size, outer) for size in shape[:depth]], -1).astype(np.int32)
        moved(s, GATHER_ND, x, [s.const(indices)])
    else:
        if len(shape) < 2:
            raise Unfit("rank")
        lookup = s.positions(s.rng.integers(0, shape[0], s.size(17)).astype(np.int32))
        moved(s, EMBEDDING_LOOKUP, x, [lookup], None, before=1)


FAMILIES = {
    "shapes": (reshape, reshape, order, border, blocks),
    "joins": (cut, join, join, box, strided_slice),
    "rows": (rows, rows, made, strided_slice),
}
