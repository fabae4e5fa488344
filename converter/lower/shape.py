"""Operators that move elements without computing, or return shapes."""

from collections.abc import Mapping, Sequence

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.expression import Expression
from litecl.converter.records import Dims
from litecl.interpreter.op import Op
from litecl.interpreter.ops.broadcast_to import BROADCAST_ARGS, BROADCAST_TO
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.fill import FILL, RANGE, ZEROS_LIKE
from litecl.interpreter.ops.one_hot import ONE_HOT, OneHotOptions
from litecl.interpreter.ops.pack import PACK, UNPACK, PackOptions, UnpackOptions
from litecl.interpreter.ops.pad import MIRROR_PAD, PAD, PADV2, MirrorPadOptions
from litecl.interpreter.ops.reduce import REDUCE_PROD, ReducerOptions
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE, SQUEEZE, ReshapeOptions, SqueezeOptions
from litecl.interpreter.ops.reverse import REVERSE_V2
from litecl.interpreter.ops.shape import RANK, SHAPE, ShapeOptions
from litecl.interpreter.ops.space_to_depth import (
    DEPTH_TO_SPACE,
    SPACE_TO_DEPTH,
    DepthToSpaceOptions,
    SpaceToDepthOptions,
)
from litecl.interpreter.ops.split import SPLIT, SPLIT_V, SplitOptions, SplitVOptions
from litecl.interpreter.ops.tile import TILE
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.schema import MirrorPadMode, TensorType


def _with_int32(op: Op, *positions: int) -> Lowering:
    """Return the lowering to an operator with the same operands, those at ``positions`` as int32."""

    def lower(b: Builder) -> Value:
        inputs = [b.int32(b.node.input(i)) if i in positions else b.node.input(i) for i in range(len(b.node.inputs))]
        return b.op(op, inputs)

    return lower


def _reshape(b: Builder) -> Value:
    target = b.int32(b.node.input(1))
    known = b.node.output.shape
    if target.data is not None:
        target = b.const(target.data.reshape(-1))
    elif known is not None and known.count(None) == 0:
        target = b.const([d for d in known if d is not None], np.int32)
    options = ReshapeOptions(tuple(target.data.tolist()) if target.data is not None else ())
    return b.op(RESHAPE, [b.node.input(0), target], options)


def _squeeze(b: Builder) -> Value:
    x = b.node.input(0)
    axes = b.node.attrs["squeeze_dims"]
    target = _one_unknown(b.node.output.shape)
    if target is not None:
        return b.reshape(x, target)
    rank = len(b.shape(x))
    return b.op(SQUEEZE, [x], SqueezeOptions(tuple(a % rank for a in axes)))


def _expand_dims(b: Builder) -> Value:
    target = _one_unknown(b.node.output.shape)
    if target is not None:
        return b.reshape(b.node.input(0), target)
    return b.op(EXPAND_DIMS, [b.node.input(0), b.int32(b.node.input(1))])


def _one_unknown(shape: Dims | None) -> list[int] | None:
    """Return the RESHAPE target for a shape with at most one unknown dimension, else None."""
    if shape is None or shape.count(None) > 1:
        return None
    return [-1 if d is None else d for d in shape]


def _transpose(b: Builder) -> Value:
    return b.op(TRANSPOSE, [b.node.input(0), b.int32(b.node.input(1))])


def _concat(b: Builder) -> Value:
    *parts, axis = (b.node.input(i) for i in range(len(b.node.inputs)))
    if axis.data is None:
        raise b.error("its axis must be constant at conversion")
    # Empty parts add nothing; in shape arithmetic they may occur as constants.
    kept = [part for part in parts if part.static_shape is None or 0 not in part.static_shape]
    if len(kept) == 1:
        return kept[0]
    return b.op(CONCATENATION, kept or parts, ConcatenationOptions(int(axis.data)))


def _pack(b: Builder) -> Value:
    if len(b.node.inputs) == 1:  # works for every type, without a copy
        return Expression(b, b.node.input(0)).expand(b.node.attrs["axis"]).value
    return b.op(PACK, b.node.inputs, PackOptions(len(b.node.inputs), b.node.attrs["axis"]))


def _unpack(b: Builder) -> Sequence[Value]:
    if b.node.output.type == TensorType.INT64:  # which LiteRT's kernel lacks
        x = b.node.input(0)
        shape = b.shape(x)
        axis = int(b.node.attrs["axis"]) % len(shape)
        kept = [b.value(shape=(*shape[:axis], 1, *shape[axis + 1 :])) for _ in b.node.outputs]
        parts = b.ops(SPLIT, [b.const(axis, np.int32), x], SplitOptions(len(kept)), kept)
        return [b.squeeze(part, axis) for part in parts]
    return b.ops(UNPACK, b.node.inputs, UnpackOptions(len(b.node.outputs), b.node.attrs["axis"]), b.like())


def _split(b: Builder) -> Sequence[Value]:
    inputs = [b.int32(b.node.input(0)), b.node.input(1)]
    return b.ops(SPLIT, inputs, SplitOptions(len(b.node.outputs)), b.like())


def _split_v(b: Builder) -> Sequence[Value]:
    inputs = [b.node.input(0), b.int32(b.node.input(1)), b.int32(b.node.input(2))]
    return b.ops(SPLIT_V, inputs, SplitVOptions(len(b.node.outputs)), b.like())


def _shape(b: Builder) -> Value:
    return b.op(SHAPE, b.node.inputs, ShapeOptions(b.node.output.type))


def _shape_n(b: Builder) -> Sequence[Value]:
    return [
        b.op(SHAPE, [value], ShapeOptions(output.type), shape=output.shape)
        for value, output in zip(b.node.inputs, b.node.outputs, strict=True)
    ]


def _size(b: Builder) -> Value:
    rank = len(b.shape(b.node.input(0)))
    shape = b.op(SHAPE, b.node.inputs, ShapeOptions(b.node.output.type), shape=(rank,))
    return b.op(REDUCE_PROD, [shape, b.const([0], np.int32)], ReducerOptions(False))


def _ones_like(b: Builder) -> Value:
    x = b.node.input(0)
    shape = b.op(SHAPE, [x], ShapeOptions(b.const(0, np.int32).type), type=b.const(0, np.int32).type, shape=(x.rank,))
    return b.op(FILL, [shape, b.scalar(1)])


def _mirror_pad(b: Builder) -> Value:
    mode = MirrorPadMode[b.node.attrs["mode"]]
    return b.op(MIRROR_PAD, [b.node.input(0), b.int32(b.node.input(1))], MirrorPadOptions(mode))


def _reverse(b: Builder) -> Value:
    """Reverse each run of neighbouring axes by itself: LiteRT's kernel refuses axes with others between them."""
    x, axes = b.node.input(0), b.node.input(1)
    if axes.data is None:
        return b.op(REVERSE_V2, [x, b.int32(axes)])
    ordered = np.sort(axes.data % max(1, len(b.shape(x))))
    for run in np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1) if len(ordered) else ():
        x = b.op(REVERSE_V2, [x, b.const(run, np.int32)])
    return x


def _one_hot(b: Builder) -> Value:
    indices = b.node.input(0)
    if indices.type != TensorType.INT64:  # TFLite takes int32 and int64
        indices = b.int32(indices)
    return b.op(ONE_HOT, [indices, b.int32(b.node.input(1)), *b.node.inputs[2:]], OneHotOptions(b.node.attrs["axis"]))


def _nhwc_block(b: Builder) -> int:
    if b.node.attrs["data_format"] != "NHWC":
        raise b.error(f"its data_format is {b.node.attrs['data_format']}; build the model with channels last")
    return int(b.node.attrs["block_size"])


_SAME: Mapping[str, Lowering] = {
    "Fill": _with_int32(FILL, 0),
    "ZerosLike": _with_int32(ZEROS_LIKE),
    "Rank": _with_int32(RANK),
    "Range": _with_int32(RANGE),
    "Tile": _with_int32(TILE, 1),
    "BroadcastTo": _with_int32(BROADCAST_TO, 1),
    "BroadcastArgs": _with_int32(BROADCAST_ARGS),
    "Pad": _with_int32(PAD, 1),
    "PadV2": _with_int32(PADV2, 1),
}

LOWERINGS: dict[str, Lowering] = {
    **_SAME,
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "ExpandDims": _expand_dims,
    "Transpose": _transpose,
    "ConcatV2": _concat,
    "Pack": _pack,
    "Unpack": _unpack,
    "Split": _split,
    "SplitV": _split_v,
    "Shape": _shape,
    "ShapeN": _shape_n,
    "Size": _size,
    "OnesLike": _ones_like,
    "MirrorPad": _mirror_pad,
    "ReverseV2": _reverse,
    "OneHot": _one_hot,
    "SpaceToDepth": lambda b: b.op(SPACE_TO_DEPTH, b.node.inputs, SpaceToDepthOptions(_nhwc_block(b))),
    "DepthToSpace": lambda b: b.op(DEPTH_TO_SPACE, b.node.inputs, DepthToSpaceOptions(_nhwc_block(b))),
}
