"""Families of nodes that only move elements: shapes, orders, borders, cuts and joins, rows by index."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.graph import Shape, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.broadcast_to import BROADCAST_TO
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.dilate import DILATE
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.fill import FILL, ZEROS_LIKE
from litecl.interpreter.ops.gather import GATHER, GATHER_ND, GatherOptions
from litecl.interpreter.ops.one_hot import ONE_HOT, OneHotOptions
from litecl.interpreter.ops.pack import PACK, UNPACK, PackOptions, UnpackOptions
from litecl.interpreter.ops.pad import MIRROR_PAD, PAD, PADV2, MirrorPadOptions
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE, SQUEEZE, ReshapeOptions, SqueezeOptions
from litecl.interpreter.ops.reverse import REVERSE_V2
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.space_to_batch_nd import BATCH_TO_SPACE_ND, SPACE_TO_BATCH_ND
from litecl.interpreter.ops.space_to_depth import (
    DEPTH_TO_SPACE,
    SPACE_TO_DEPTH,
    DepthToSpaceOptions,
    SpaceToDepthOptions,
)
from litecl.interpreter.ops.split import SPLIT, SPLIT_V, SplitOptions, SplitVOptions
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.ops.tile import TILE
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.schema import MirrorPadMode
from litecl.perf.compare.graph_fuzz.sketch import MOST_ELEMENTS, Sketch, T, Unfit


def _moved(s: Sketch, op: Op, x: int, others: Sequence[int] = (), options: object = None, before: int = 0) -> int:
    """A node whose output has the type and the scale of ``x``, the operand at position ``before``."""
    inputs = [*others[:before], x, *others[before:]]
    spec = s.spec(x)
    return s.op(op, inputs, options, [TensorSpec(spec.type, None, quantization=spec.quantization)])


def _ranked(s: Sketch, least: int = 1, most: int = 6) -> tuple[int, Shape]:
    x = s.pick(rank=range(least, most + 1))
    return x, s.shape_of(x)


def _axis(s: Sketch, rank: int) -> int:
    axis = int(s.rng.integers(rank))
    return axis - rank if s.chance(0.3) else axis


def _factors(s: Sketch, count: int, rank: int) -> list[int]:
    """A shape of so many elements."""
    shape = [1] * rank
    divisor = 2
    while count > 1:
        while count % divisor:
            divisor += 1
        shape[int(s.rng.integers(rank))] *= divisor
        count //= divisor
    return shape


def reshape(s: Sketch) -> None:
    """RESHAPE, by an operand or by its options, SQUEEZE and EXPAND_DIMS."""
    x = s.pick()
    shape = s.shape_of(x)
    kind = s.one_of("reshape", "reshape", "squeeze", "expand")
    if kind == "squeeze":
        ones = [i for i, size in enumerate(shape) if size == 1]
        chosen = tuple(i for i in ones if s.chance(0.6))
        _moved(s, SQUEEZE, x, options=SqueezeOptions(chosen))
    elif kind == "expand":
        _moved(s, EXPAND_DIMS, x, [s.const(np.array(_axis(s, len(shape) + 1), np.int32))])
    else:
        new = _factors(s, int(np.prod(shape)), int(s.one_of(1, 2, 3, 4, 4, 4, 5)))
        if s.chance(0.3) and np.prod(shape):
            new[int(s.rng.integers(len(new)))] = -1
        _moved(s, RESHAPE, x, [s.ints(*new)], ReshapeOptions())


def order(s: Sketch) -> None:
    """TRANSPOSE, REVERSE_V2, TILE and BROADCAST_TO."""
    op = s.one_of(TRANSPOSE, REVERSE_V2, TILE, BROADCAST_TO)
    x, shape = _ranked(s)
    if op is TRANSPOSE:
        parameter = s.ints(*s.rng.permutation(len(shape)))
    elif op is REVERSE_V2:
        parameter = s.ints(_axis(s, len(shape)))
    elif op is TILE:
        parameter = s.ints(*(int(s.one_of(1, 1, 2, 3)) for _ in shape))
    else:
        wider = [s.size(7) if size == 1 else size for size in shape]
        parameter = s.ints(*(s.one_of((), (2,)) if len(shape) < 5 else ()), *wider)
    _moved(s, op, x, [parameter])


def border(s: Sketch) -> None:
    """PAD, PADV2, MIRROR_PAD and DILATE."""
    op = s.one_of(PAD, PADV2, MIRROR_PAD, DILATE)
    x, shape = _ranked(s, most=4)
    spec = s.spec(x)
    if op is DILATE:
        value = s.const(s.random(spec.type, ()), spec.type, spec.quantization)
        _moved(s, op, x, [s.ints(*(int(s.one_of(1, 2, 3)) for _ in shape)), value])
        return
    borders = s.rng.integers(0, 4, (len(shape), 2)) * (s.rng.random((len(shape), 1)) < 0.6)
    if op is MIRROR_PAD:
        mode = s.one_of(*MirrorPadMode)
        borders = np.minimum(borders, np.array(shape)[:, None] - (mode == MirrorPadMode.REFLECT))
        _moved(s, op, x, [s.const(borders.astype(np.int32))], MirrorPadOptions(mode))
        return
    value_ = [s.const(s.random(spec.type, ()), spec.type, spec.quantization)] if op is PADV2 else []
    _moved(s, op, x, [s.const(borders.astype(np.int32)), *value_])


def blocks(s: Sketch) -> None:
    """SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""
    x = s.pick(rank=4)
    n, height, width, channels = s.shape_of(x)
    kind = s.one_of("depth", "space", "batch", "unbatch")
    if kind == "depth":
        block = int(s.one_of(*(b for b in (1, 2, 3) if height % b == width % b == 0)))
        _moved(s, SPACE_TO_DEPTH, x, options=SpaceToDepthOptions(block))
    elif kind == "space":
        block = int(s.one_of(*(b for b in (1, 2, 3) if channels % (b * b) == 0)))
        _moved(s, DEPTH_TO_SPACE, x, options=DepthToSpaceOptions(block))
    elif kind == "batch":
        block_h, block_w = int(s.rng.integers(1, 4)), int(s.rng.integers(1, 4))
        pads = [[p := int(s.rng.integers(0, 3)), -(p + size) % b] for size, b in ((height, block_h), (width, block_w))]
        _moved(s, SPACE_TO_BATCH_ND, x, [s.ints(block_h, block_w), s.const(np.array(pads, np.int32))])
    else:
        fits = [(a, b) for a in (1, 2, 3) for b in (1, 2, 3) if n % (a * b) == 0]
        block_h, block_w = s.one_of(*fits)
        crops = [[int(s.rng.integers(0, min(2, size * b))), 0] for size, b in ((height, block_h), (width, block_w))]
        _moved(s, BATCH_TO_SPACE_ND, x, [s.ints(block_h, block_w), s.const(np.array(crops, np.int32))])


def cut(s: Sketch) -> None:
    """SPLIT, SPLIT_V and UNPACK; of the pieces some are joined again."""
    x, shape = _ranked(s)
    spec, axis = s.spec(x), _axis(s, len(shape))
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
        s.op(PACK, parts, PackOptions(len(parts), _axis(s, len(spec.static_shape) + 1)), out)
    else:
        s.op(CONCATENATION, parts, ConcatenationOptions(axis), out)


def join(s: Sketch) -> None:
    """CONCATENATION, mostly of the last dimension, and PACK, of tensors of one type and scale."""
    x, shape = _ranked(s, most=5)
    spec = s.spec(x)
    if s.chance(0.25):
        _joined(s, [x, *(s.like(x) for _ in range(int(s.rng.integers(0, 4))))], None)
        return
    axis = -1 if s.chance(0.6) else _axis(s, len(shape))
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
    x, shape = _ranked(s, most=5)
    spec = s.spec(x)
    begin = [int(s.rng.integers(0, size)) if s.chance(0.7) else 0 for size in shape]
    sizes = [
        int(s.rng.integers(1, size - b + 1)) if s.chance(0.6) else size - b
        for b, size in zip(begin, shape, strict=True)
    ]
    at = s.positions(np.array(begin, np.int32)) if s.chance(0.3) else s.ints(*begin)
    if s.chance(0.7):
        _moved(s, SLICE, x, [at, s.ints(*sizes)])
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
    _moved(s, DYNAMIC_UPDATE_SLICE, x, [int(s.one_of(*same)) if same and s.chance(0.7) else update, at])


def strided_slice(s: Sketch) -> None:
    """STRIDED_SLICE with steps, backwards, masks, and elements taken out."""
    x, shape = _ranked(s, most=5)
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
    options = StridedSliceOptions(begin_mask=masks[0], end_mask=masks[1], shrink_axis_mask=masks[2])
    _moved(s, STRIDED_SLICE, x, [s.ints(*begin), s.ints(*end), s.ints(*step)], options)


def _positions(s: Sketch, size: int, shape: Shape) -> int:
    """Indices below a size: a constant, an input, or what a node computes if it fits."""
    type_ = s.one_of(T.INT32, T.INT32, T.INT64)
    return s.positions(s.rng.integers(0, size, shape).astype(type_.dtype))


def rows(s: Sketch) -> None:
    """GATHER, GATHER_ND and EMBEDDING_LOOKUP."""
    x, shape = _ranked(s, most=4)
    kind = s.one_of("gather", "gather", "nd", "embedding")
    if kind == "gather":
        axis = int(s.rng.integers(len(shape)))
        batch = int(s.rng.integers(0, axis + 1)) if s.chance(0.3) else 0
        outer = (*shape[:batch], *s.shape(int(s.rng.integers(0, 3)), 40))
        _moved(s, GATHER, x, [_positions(s, shape[axis], outer)], GatherOptions(axis, batch))
    elif kind == "nd":
        depth = int(s.rng.integers(1, len(shape) + 1))
        outer = s.shape(int(s.rng.integers(1, 3)), 30)
        indices = np.stack([s.rng.integers(0, size, outer) for size in shape[:depth]], -1).astype(np.int32)
        _moved(s, GATHER_ND, x, [s.const(indices)])
    else:
        if len(shape) < 2:
            raise Unfit("rank")
        lookup = s.positions(s.rng.integers(0, shape[0], s.size(17)).astype(np.int32))
        _moved(s, EMBEDDING_LOOKUP, x, [lookup], None, before=1)


def made(s: Sketch) -> None:
    """ONE_HOT, FILL and ZEROS_LIKE."""
    kind = s.one_of("one_hot", "fill", "zeros")
    if kind == "zeros":
        _moved(s, ZEROS_LIKE, s.pick(where=lambda spec: spec.quantization is None))
        return
    type_ = s.one_of(*s.types)
    if kind == "fill":
        shape = s.shape(int(s.rng.integers(1, 4)), 2000)
        value = s.pick(rank=0) if s.chance(0.4) or s.depth else s.input(type_, ())
        _moved(s, FILL, value, [s.ints(*shape)], None, before=1)
        return
    depth = s.size(33)
    indices = (
        s.pick(T.INT32, T.INT64, where=lambda p: p.size < 300)
        if s.chance(0.6)
        else _positions(s, depth, s.shape(int(s.rng.integers(1, 3)), 60))
    )
    rank = len(s.shape_of(indices)) + 1
    on, off = (s.const(s.random(type_, ()), type_) for _ in range(2))
    axis = int(s.one_of(-1, *range(rank)))
    s.op(ONE_HOT, [indices, s.const(np.array(depth, np.int32)), on, off], OneHotOptions(axis))


FAMILIES = {
    "shapes": (reshape, reshape, order, border, blocks),
    "joins": (cut, join, join, box, strided_slice),
    "rows": (rows, rows, made, strided_slice),
}
