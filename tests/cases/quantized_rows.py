"""Cases of quantized inputs whose elements are taken together: SOFTMAX, reductions, resizing, and the like."""

from typing import Any

import numpy as np

from litecl.cases import Case, rng
from litecl.cases.integers import unfit
from litecl.cases.quantize import affine
from litecl.cases.quantized_unary import ELEMENTS
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import reduce, resize
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION, L2NormOptions
from litecl.interpreter.ops.log_softmax import LOG_SOFTMAX, LogSoftmaxOptions
from litecl.interpreter.ops.quantize import QUANTIZE
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.schema import TensorType as T

_rng = rng(59)
_PAIR, _ALL = (T.INT8, T.UINT8), (T.INT8, T.UINT8, T.INT16)
_REDUCED = (reduce.SUM, reduce.MEAN, reduce.REDUCE_PROD, reduce.REDUCE_MAX, reduce.REDUCE_MIN)


def _random(type_: T, *shape: int) -> Array:
    if type_ == T.INT32:
        return _rng.integers(-(2**20), 2**20, shape).astype(np.int32)
    return _rng.choice(ELEMENTS[type_], shape)


def _case(
    name: str, op: Op, options: Any, x: Array, given: tuple[float, int], to: T, wanted: tuple[float, int], **more: Any
) -> Case:
    outputs = (TensorSpec(to, None, quantization=affine(*wanted)),)
    chosen = {"device": unfit(op, T.of(x.dtype), to)} | more
    return Case(name, op, options, [x], quantization={0: affine(*given)}, outputs=outputs, **chosen)


def _softmax(type_: T, to: T, scale: float, beta: float, *shape: int) -> Case:
    wanted = (2**-15, 0) if to == T.INT16 else (1 / 256, -128 if to == T.INT8 else 0)
    name = f"{type_.name} to {to.name} {scale} {beta} {shape}"
    zero = 0 if type_ == T.INT16 else 3
    return _case(
        name,
        SOFTMAX,
        SoftmaxOptions(beta),
        _random(type_, *shape),
        (scale, zero),
        to,
        wanted,
        device=unfit(SOFTMAX, type_),
    )


def _sums_below_a_power() -> Array:
    """Words whose 16 exponentials of 1 and a small one add up to just under 2**19, or just over it."""
    rows = np.zeros((64, 17), np.int16)
    rows[:, 5] = np.linspace(-6000, -5700, len(rows))
    return rows


def _log_softmax(type_: T, scale: float, *shape: int) -> Case:
    wanted = (1 / 16, 127 if type_ == T.INT8 else 255)
    name = f"{type_.name} {scale} {shape}"
    return _case(name, LOG_SOFTMAX, LogSoftmaxOptions(), _random(type_, *shape), (scale, 3), type_, wanted)


def _reduction(op: Op, type_: T, axes: tuple[int, ...], keep: bool) -> Case:
    given = (0.05, 0 if type_ == T.INT16 else 7)
    wanted = given if op in _REDUCED[3:] else (0.11, 0 if type_ == T.INT16 else 20)
    # LiteRT's reference kernel of SUM leaves signed outputs unwritten.
    kernels = "optimised" if op is reduce.SUM and type_ != T.UINT8 else "reference"
    return Case(
        f"{type_.name} axes {axes}",
        op,
        reduce.ReducerOptions(keep),
        [_random(type_, 3, 4, 5), np.array(axes, np.int32)],
        frozenset({1}),
        {},
        {0: affine(*given)},
        (TensorSpec(type_, None, quantization=affine(*wanted)),),
        device=unfit(op, type_),
        kernels=kernels,
    )


def _resize(type_: T, align: bool, half: bool, size: Shape, channels: int = 3) -> Case:
    inputs = [_random(type_, 2, 5, 6, channels), np.array(size, np.int32)]
    options = resize.ResizeBilinearOptions(align, half)
    name = f"{type_.name} {align:d}{half:d} {size} {channels}"
    return Case(name, resize.RESIZE_BILINEAR, options, inputs, frozenset({1}))


def _nearest(type_: T, size: Shape) -> Case:
    x = np.asarray(_rng.integers(0, 2 if type_ == T.BOOL else 100, (1, 4, 5, 2)), type_.dtype)
    options = resize.ResizeNearestNeighborOptions()
    inputs = [x, np.array(size, np.int32)]
    device = None if type_ in (T.FLOAT16, T.INT32, T.BOOL, *_ALL) else "type"
    return Case(f"{type_.name}", resize.RESIZE_NEAREST_NEIGHBOR, options, inputs, frozenset({1}), device=device)


def _requantize(type_: T, to: T, scale: float, wanted: float) -> Case:
    symmetric = T.INT16 in (type_, to)
    x = _random(T.INT32, 300) if type_ == T.INT32 else ELEMENTS[type_]
    zeros = (0, 0) if symmetric else (5, 7)
    name = f"{type_.name} to {to.name} {scale} to {wanted}"
    return _case(name, QUANTIZE, NoOptions(), x, (scale, zeros[0]), to, (wanted, zeros[1]))


def _concatenation(axis: int) -> Case:
    parts = [_random(T.UINT8, 4, 6) for _ in range(3)]
    quantization = {0: affine(0.1, 5), 1: affine(0.03, 100), 2: affine(0.2, 7)}
    outputs = (TensorSpec(T.UINT8, None, quantization=affine(0.1, 5)),)
    options = ConcatenationOptions(axis)
    return Case(
        f"UINT8 scales, axis {axis}",
        CONCATENATION,
        options,
        parts,
        quantization=quantization,
        outputs=outputs,
    )


CASES = (
    *(
        _softmax(type_, to, scale / (100 if type_ == T.INT16 else 1), beta, *shape)
        for type_ in _ALL
        for to in ((T.INT16,) if type_ == T.INT16 else (type_, T.INT16))
        for scale, beta, shape in (
            (0.05, 1.0, (20, 7)),
            (1.0, 0.3, (3, 300)),
            (0.002, 1.0, (2, 3, 4)),
            (7.0, 2.5, (5, 1)),
        )
    ),
    _case(
        "INT16, sums of 31 bits that are rounded up",
        SOFTMAX,
        SoftmaxOptions(1.0),
        _sums_below_a_power(),
        (0.001, 0),
        T.INT16,
        (2**-15, 0),
    ),
    *(_log_softmax(type_, scale, *shape) for type_ in _PAIR for scale in (0.05, 1.0) for shape in ((20, 7), (3, 300))),
    *(
        _reduction(op, type_, axes, keep)
        for op in _REDUCED
        for type_ in _ALL
        if not (op is reduce.REDUCE_PROD and type_ == T.UINT8)
        for axes, keep in (((0,), False), ((1, 2), True), ((0, 1, -1), False))
    ),
    *(
        _case(
            f"{type_.name} {shape}",
            L2_NORMALIZATION,
            L2NormOptions(),
            _random(type_, *shape),
            (0.1, 5),
            type_,
            (1 / 128, 128 if type_ == T.UINT8 else 0),
        )
        for type_ in _PAIR
        for shape in ((30, 7), (2, 3, 2, 50), (4, 1))
    ),
    *(
        _resize(type_, align, half, size)
        for type_ in _ALL
        for align, half in ((False, False), (True, False), (False, True))
        for size in ((7, 9), (3, 2), (1, 1), (5, 20))
    ),
    *(_resize(type_, False, True, (9, 11), channels) for type_ in _ALL for channels in (1, 16, 37)),
    *(_nearest(type_, (7, 3)) for type_ in (T.FLOAT16, T.INT32, T.UINT32, T.UINT16, T.BOOL, *_ALL)),
    *(
        _requantize(type_, to, scale, wanted)
        for type_, to in (
            (T.INT8, T.INT8),
            (T.INT8, T.UINT8),
            (T.UINT8, T.INT8),
            (T.UINT8, T.UINT8),
            (T.INT16, T.INT8),
            (T.INT16, T.INT16),
            (T.INT16, T.INT32),
            (T.INT32, T.INT8),
            (T.INT32, T.INT16),
        )
        for scale, wanted in ((0.1, 0.1), (0.2, 0.1), (0.003, 0.9))
    ),
    _concatenation(0),
    _concatenation(-1),
    *(_log_softmax(type_, scale, 20, 7) for type_ in _PAIR for scale in (3e-6, 20.0)),
    _softmax(T.INT16, T.INT16, 0.0003, 0.7, 120, 100),
)
