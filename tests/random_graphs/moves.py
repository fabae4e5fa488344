"""Families of nodes that only move elements: shapes, orders, borders, cuts and joins, rows by index."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.graph import Shape, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.broadcast_to import BROADCAST_TO
from litecl.interpreter.ops.dilate import DILATE
from litecl.interpreter.ops.fill import FILL, ZEROS_LIKE
from litecl.interpreter.ops.one_hot import ONE_HOT, OneHotOptions
from litecl.interpreter.ops.pad import MIRROR_PAD, PAD, PADV2, MirrorPadOptions
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE, SQUEEZE, ReshapeOptions, SqueezeOptions
from litecl.interpreter.ops.reverse import REVERSE_V2
from litecl.interpreter.ops.space_to_batch_nd import BATCH_TO_SPACE_ND, SPACE_TO_BATCH_ND
from litecl.interpreter.ops.space_to_depth import (
    DEPTH_TO_SPACE,
    SPACE_TO_DEPTH,
    DepthToSpaceOptions,
    SpaceToDepthOptions,
)
from litecl.interpreter.ops.tile import TILE
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.schema import MirrorPadMode
from litecl.random_graphs.sketch import Sketch, T


def moved(s: Sketch, op: Op, x: int, others: Sequence[int] = (), options: object = None, before: int = 0) -> int:
    """Return a node whose output has the type and the scale of ``x``, the operand at position ``before``."""
    inputs = [*others[:before], x, *others[before:]]
    spec = s.spec(x)
    return s.op(op, inputs, options, [TensorSpec(spec.type, None, quantization=spec.quantization)])


def ranked(s: Sketch, least: int = 1, most: int = 8) -> tuple[int, Shape]:
    x = s.pick(rank=range(least, most + 1))
    return x, s.shape_of(x)


def any_axis(s: Sketch, rank: int) -> int:
    axis = int(s.rng.integers(rank))
    return axis - rank if s.chance(0.3) else axis


def positions_in(s: Sketch, size: int, shape: Shape) -> int:
    """Indices below a size: a constant, an input, or what a node computes if it fits."""
    type_ = s.one_of(T.INT32, T.INT32, T.INT64)
    return s.positions(s.rng.integers(0, size, shape).astype(type_.dtype))


def _factors(s: Sketch, count: int, rank: int) -> list[int]:
    """Return a shape of so many elements."""
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
        moved(s, SQUEEZE, x, options=SqueezeOptions(chosen))
    elif kind == "expand":
        moved(s, EXPAND_DIMS, x, [s.const(np.array(any_axis(s, len(shape) + 1), np.int32))])
    else:
        new = _factors(s, int(np.prod(shape)), int(s.one_of(1, 2, 3, 4, 4, 4, 5, 8)))
        if s.chance(0.3) and np.prod(shape):
            new[int(s.rng.integers(len(new)))] = -1
        moved(s, RESHAPE, x, [s.ints(*new)], ReshapeOptions())


def order(s: Sketch) -> None:
    """TRANSPOSE, REVERSE_V2, TILE and BROADCAST_TO."""
    op = s.one_of(TRANSPOSE, REVERSE_V2, TILE, BROADCAST_TO)
    x, shape = ranked(s)
    if op is TRANSPOSE:
        parameter = s.ints(*(s.rng.permutation(len(shape)) - s.one_of(0, 0, 0, len(shape))))
    elif op is REVERSE_V2:
        parameter = s.ints(any_axis(s, len(shape)))
    elif op is TILE:
        parameter = s.ints(*(int(s.one_of(1, 1, 2, 3)) for _ in shape))
    else:
        wider = [s.size(7) if size == 1 else size for size in shape]
        parameter = s.ints(*(s.one_of((), (2,)) if len(shape) < 5 else ()), *wider)
    moved(s, op, x, [parameter])


def border(s: Sketch) -> None:
    """PAD, PADV2, MIRROR_PAD and DILATE."""
    op = s.one_of(PAD, PADV2, MIRROR_PAD, DILATE)
    x, shape = ranked(s)
    spec = s.spec(x)
    if op is DILATE:
        value = s.const(s.random(spec.type, ()), spec.type, spec.quantization)
        moved(s, op, x, [s.ints(*(int(s.one_of(1, 2, 3)) for _ in shape)), value])
        return
    borders = s.rng.integers(0, 4, (len(shape), 2)) * (s.rng.random((len(shape), 1)) < 0.6)
    if op is MIRROR_PAD:
        mode = s.one_of(*MirrorPadMode)
        borders = np.minimum(borders, np.array(shape)[:, None] - (mode == MirrorPadMode.REFLECT))
        moved(s, op, x, [s.const(borders.astype(np.int32))], MirrorPadOptions(mode))
        return
    value_ = [s.const(s.random(spec.type, ()), spec.type, spec.quantization)] if op is PADV2 else []
    moved(s, op, x, [s.const(borders.astype(np.int32)), *value_])


def blocks(s: Sketch) -> None:
    """SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""
    x = s.pick(rank=4)
    n, height, width, channels = s.shape_of(x)
    kind = s.one_of("depth", "space", "batch", "unbatch")
    if kind == "depth":
        block = int(s.one_of(*(b for b in (1, 2, 3) if height % b == width % b == 0)))
        moved(s, SPACE_TO_DEPTH, x, options=SpaceToDepthOptions(block))
    elif kind == "space":
        block = int(s.one_of(*(b for b in (1, 2, 3) if channels % (b * b) == 0)))
        moved(s, DEPTH_TO_SPACE, x, options=DepthToSpaceOptions(block))
    elif kind == "batch":
        block_h, block_w = int(s.rng.integers(1, 4)), int(s.rng.integers(1, 4))
        pads = [[p := int(s.rng.integers(0, 3)), -(p + size) % b] for size, b in ((height, block_h), (width, block_w))]
        moved(s, SPACE_TO_BATCH_ND, x, [s.ints(block_h, block_w), s.const(np.array(pads, np.int32))])
    else:
        fits = [(a, b) for a in (1, 2, 3) for b in (1, 2, 3) if n % (a * b) == 0]
        block_h, block_w = s.one_of(*fits)
        crops = [[int(s.rng.integers(0, min(2, size * b))), 0] for size, b in ((height, block_h), (width, block_w))]
        moved(s, BATCH_TO_SPACE_ND, x, [s.ints(block_h, block_w), s.const(np.array(crops, np.int32))])


def made(s: Sketch) -> None:
    """ONE_HOT, FILL and ZEROS_LIKE."""
    kind = s.one_of("one_hot", "fill", "zeros")
    if kind == "zeros":
        moved(s, ZEROS_LIKE, s.pick(where=lambda spec: spec.quantization is None))
        return
    type_ = s.one_of(*s.types)
    if kind == "fill":
        shape = s.shape(int(s.rng.integers(1, 4)), 2000)
        value = s.pick(rank=0) if s.chance(0.4) or s.depth else s.input(type_, ())
        moved(s, FILL, value, [s.ints(*shape)], None, before=1)
        return
    depth = s.size(33)
    indices = (
        s.pick(T.INT32, T.INT64, where=lambda p: p.size < 300)
        if s.chance(0.6)
        else positions_in(s, depth, s.shape(int(s.rng.integers(1, 3)), 60))
    )
    rank = len(s.shape_of(indices)) + 1
    on, off = (s.const(s.random(type_, ()), type_) for _ in range(2))
    axis = int(s.one_of(-1, *range(rank)))
    s.op(ONE_HOT, [indices, s.const(np.array(depth, np.int32)), on, off], OneHotOptions(axis))
