"""Families of nodes that take many elements together: pools, resizing, reductions, along a dimension, softmax."""

from typing import Any

import numpy as np

from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops import reduce
from litecl.interpreter.ops.arg_max import ARG_MAX, ARG_MIN, ArgMaxOptions, ArgMinOptions
from litecl.interpreter.ops.cumsum import CUMSUM, CumsumOptions
from litecl.interpreter.ops.hadamard import HADAMARD_ROTATION, HadamardRotationOptions
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION, L2NormOptions
from litecl.interpreter.ops.log_softmax import LOG_SOFTMAX
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, L2_POOL_2D, MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.resize import (
    RESIZE_BILINEAR,
    RESIZE_NEAREST_NEIGHBOR,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
)
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.topk_v2 import TOPK_V2
from litecl.interpreter.schema import Padding
from litecl.random_graphs.elementwise import NUMBERS, QUANTIZED, fused, is_quantized
from litecl.random_graphs.moves import any_axis
from litecl.random_graphs.sketch import Sketch, T
from litecl.random_graphs.weighted import image, padded

_SOFTMAX = {T.INT8: (1 / 256, -128), T.UINT8: (1 / 256, 0), T.INT16: (1 / 32768, 0)}


def _as(s: Sketch, x: int, type_: Any = None) -> list[TensorSpec]:
    """Return the spec of an output like ``x``."""
    spec = s.spec(x)
    return [TensorSpec(spec.type if type_ is None else type_, None, quantization=spec.quantization)]


def pool(s: Sketch) -> None:
    """AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D."""
    op: Op = s.one_of(AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D)
    x = padded(s, image(s, T.FLOAT32) if op is L2_POOL_2D else image(s))
    size = s.one_of((2, 2), (3, 3), (1, 1), (2, 3), (5, 5), (9, 17))
    stride = s.one_of((1, 1), (2, 2), (2, 1), (3, 3), (4, 19))
    activation = fused(s, s.spec(x).type)
    s.op(op, [x], Pool2DOptions(s.one_of(*Padding), stride[1], stride[0], size[1], size[0], activation), _as(s, x))


def hadamard(s: Sketch) -> None:
    """aeq.hadamard_rotation of rows, in one block or several."""
    x = s.pick(T.FLOAT32, rank=range(2, 4))
    width = s.shape_of(x)[-1]
    sizes = [1 << i for i in range(11) if width % (1 << i) == 0]
    s.op(HADAMARD_ROTATION, [x], HadamardRotationOptions(s.one_of(*sizes), (1, -1)))


def resize(s: Sketch) -> None:
    """RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""
    bilinear = s.chance(0.6)
    x = image(s)
    size = s.ints(s.size(17), s.size(17))
    # LiteRT's reference kernels interpolate to a constant size with one of both options.
    both = [] if bilinear else [(True, True)]
    corners, centers = s.one_of((False, False), (True, False), (False, True), *both)
    options = (ResizeBilinearOptions if bilinear else ResizeNearestNeighborOptions)(corners, centers)
    s.op(RESIZE_BILINEAR if bilinear else RESIZE_NEAREST_NEIGHBOR, [x, size], options, _as(s, x))


def reduction(s: Sketch) -> None:
    """SUM, MEAN, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, REDUCE_ANY and REDUCE_ALL."""
    x = s.pick(*NUMBERS, *QUANTIZED, T.BOOL, rank=range(1, 9), where=_sound)
    spec = s.spec(x)
    rank = len(spec.static_shape)
    axes = [axis - rank if s.chance(0.3) else axis for axis in range(rank) if s.chance(0.5)] or [rank - 1]
    options, inputs = reduce.ReducerOptions(s.chance(0.6)), [x, s.ints(*axes)]
    if spec.type == T.BOOL:
        s.op(s.one_of(reduce.REDUCE_ANY, reduce.REDUCE_ALL), inputs, options)
    elif spec.quantization is None:
        ops = (reduce.SUM, reduce.MEAN, reduce.MEAN, reduce.REDUCE_MAX, reduce.REDUCE_MIN, reduce.REDUCE_PROD)
        s.op(s.one_of(*ops), inputs, options)
    elif s.chance(0.5):
        s.op(s.one_of(reduce.REDUCE_MAX, reduce.REDUCE_MIN), inputs, options, _as(s, x))
    else:
        s.scaled(s.one_of(reduce.SUM, reduce.MEAN), inputs, options, spec.type)


def _sound(spec: TensorSpec) -> bool:
    return is_quantized(spec) == (spec.type in QUANTIZED)


def along(s: Sketch) -> None:
    """ARG_MAX, ARG_MIN, CUMSUM and TOPK_V2."""
    kind = s.one_of("max", "min", "cumsum", "topk")
    if kind == "cumsum":
        x = s.pick(*NUMBERS, rank=range(1, 9))
        axis = s.const(np.array(any_axis(s, len(s.shape_of(x))), np.int32))
        s.op(CUMSUM, [x, axis], CumsumOptions(s.chance(0.4), s.chance(0.4)))
    elif kind == "topk":
        x = s.pick(*NUMBERS, T.INT8, T.UINT8, rank=range(1, 9))
        k = int(s.rng.integers(1, s.shape_of(x)[-1] + 1))
        s.node(TOPK_V2, [x, s.const(np.array(k, np.int32))], None, [*_as(s, x), TensorSpec(T.INT32, None)])
    else:
        x = s.pick(*NUMBERS, *QUANTIZED, T.BOOL, rank=range(1, 9))
        axis, type_ = s.const(np.array(any_axis(s, len(s.shape_of(x))), np.int32)), s.one_of(T.INT32, T.INT64)
        op, options = (ARG_MAX, ArgMaxOptions(type_)) if kind == "max" else (ARG_MIN, ArgMinOptions(type_))
        s.op(op, [x, axis], options)


def softmax(s: Sketch) -> None:
    """SOFTMAX, LOG_SOFTMAX and L2_NORMALIZATION."""
    x = s.pick(T.FLOAT32, *QUANTIZED, rank=range(1, 9), where=_sound)
    type_ = s.spec(x).type
    if type_ == T.FLOAT32:
        op: Op = s.one_of(SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION)
        options = {SOFTMAX: SoftmaxOptions(float(s.one_of(1.0, 0.5))), L2_NORMALIZATION: L2NormOptions(fused(s))}
        s.op(op, [x], options.get(op))
    else:
        scale, zero = _SOFTMAX[type_]
        by = s.affine(type_, scale, zero)
        s.op(SOFTMAX, [x], SoftmaxOptions(1.0), [TensorSpec(type_, None, quantization=by)])


FAMILIES = {
    "windows": (pool, pool, resize),
    "reductions": (reduction, reduction, along, softmax, hadamard),
}
