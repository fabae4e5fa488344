"""Pooling over windows, reductions over axes, and normalisation along them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.conv import geometry, lowest
from litecl.converter.lower.expression import Expression
from litecl.interpreter.op import Op
from litecl.interpreter.ops import reduce
from litecl.interpreter.ops.arg_max import ARG_MAX, ARG_MIN, ArgMaxOptions, ArgMinOptions
from litecl.interpreter.ops.binary import ADD, MUL, SQUARED_DIFFERENCE, SUB
from litecl.interpreter.ops.cumsum import CUMSUM, CumsumOptions
from litecl.interpreter.ops.local_response_normalization import (
    LOCAL_RESPONSE_NORMALIZATION,
    LocalResponseNormalizationOptions,
)
from litecl.interpreter.ops.log_softmax import LOG_SOFTMAX
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.unary import RSQRT, SQRT

_REDUCTIONS: Mapping[str, Op] = {
    "Mean": reduce.MEAN,
    "Sum": reduce.SUM,
    "Max": reduce.REDUCE_MAX,
    "Min": reduce.REDUCE_MIN,
    "Prod": reduce.REDUCE_PROD,
    "Any": reduce.REDUCE_ANY,
    "All": reduce.REDUCE_ALL,
}


def _pool(op: Op) -> Lowering:
    def lower(b: Builder) -> Value:
        # A maximum must never pick padding, so pad with the lowest number.
        g = geometry(b, b.node.input(0), padded_with=lowest(b) if op is MAX_POOL_2D else 0)
        _, height, width, channels = b.node.attrs["ksize"]
        if channels != 1:
            return _pool_channels(b, op, channels)
        options = Pool2DOptions(
            padding=g.padding,
            stride_h=g.strides[0],
            stride_w=g.strides[1],
            filter_height=height,
            filter_width=width,
        )
        return b.op(op, [g.x], options)

    return lower


def _pool_channels(b: Builder, op: Op, window: int) -> Value:
    """Return the maximum of every ``window`` channels, TensorFlow's only form of pooling over channels."""
    x = b.node.input(0)
    shape = b.shape(x)
    if op is not MAX_POOL_2D or shape[-1] is None or shape[:-1].count(None) > 1:
        raise b.error("it pools over channels, which TFLite cannot; reduce over a reshaped tensor")
    groups = (*shape[:-1], shape[-1] // window, window)
    parts = b.reshape(x, [-1 if d is None else d for d in groups], groups)
    return b.op(reduce.REDUCE_MAX, [parts, b.const([len(shape)], np.int32)], reduce.ReducerOptions(False))


def _reduction(op: Op) -> Lowering:
    def lower(b: Builder) -> Value:
        axes = b.int32(b.node.input(1))
        if axes.data is not None:
            axes = b.const(axes.data.reshape(-1))
        return b.op(op, [b.node.input(0), axes], reduce.ReducerOptions(bool(b.node.attrs["keep_dims"])))

    return lower


def _euclidean_norm(b: Builder) -> Value:
    x = b.node.input(0)
    squares = b.op(MUL, [x, x], type=x.type, shape=x.shape)
    options = reduce.ReducerOptions(bool(b.node.attrs["keep_dims"]))
    return b.op(SQRT, [b.op(reduce.SUM, [squares, b.int32(b.node.input(1))], options)])


def _arg(op: Op, options: type[Any]) -> Lowering:
    return lambda b: b.op(op, [b.node.input(0), b.int32(b.node.input(1))], options(b.node.output.type))


def _cumsum(b: Builder) -> Value:
    options = CumsumOptions(bool(b.node.attrs["exclusive"]), bool(b.node.attrs["reverse"]))
    return b.op(CUMSUM, [b.node.input(0), b.int32(b.node.input(1))], options)


def _batch_norm(b: Builder) -> list[Value]:
    """Return (x - mean) / sqrt(variance + epsilon) * gamma + beta, with given statistics, or those of x in training."""
    if b.node.attrs["is_training"]:
        return [_normalised(b, *_moments(b)), *_statistics(b)]
    x, *statistics = (b.node.input(i) for i in range(5))
    if any(value.data is None for value in statistics):
        result = _normalised(b, *(_by_channel(b, value) for value in statistics[2:]))
    else:
        gamma, beta, mean, variance = (b.known(i, "statistics").astype(np.float64) for i in range(1, 5))
        scale = gamma / np.sqrt(variance + b.node.attrs["epsilon"])
        scaled = b.op(MUL, [x, _by_channel(b, b.const(scale, np.float32))])
        result = b.op(ADD, [scaled, _by_channel(b, b.const(beta - mean * scale, np.float32))])
    return [result, *statistics[2:], *statistics[2:], *_nothing(b, 5)]


def _normalised(b: Builder, mean: Value, variance: Value) -> Value:
    epsilon = b.const(b.node.attrs["epsilon"], np.float32)
    scale = b.op(RSQRT, [b.op(ADD, [variance, epsilon], shape=variance.shape)], shape=variance.shape)
    gamma, beta = b.node.input(1), b.node.input(2)
    if not _is_filled_with(gamma, 1):
        scale = b.op(MUL, [scale, _by_channel(b, gamma)], shape=variance.shape)
    result = b.op(MUL, [b.op(SUB, [b.node.input(0), mean]), scale])
    return result if _is_filled_with(beta, 0) else b.op(ADD, [result, _by_channel(b, beta)])


def _moments(b: Builder, *, keep: bool = True) -> tuple[Value, Value]:
    """Return mean and variance per channel; they broadcast to x if ``keep``, else they are vectors."""
    x = b.node.input(0)
    rank = len(b.shape(x))
    channel = _channel_axis(b, rank)
    axes = b.const([axis for axis in range(rank) if axis != channel], np.int32)
    shapes = {k: tuple(d if i == channel else 1 for i, d in enumerate(b.shape(x)) if k or i == channel) for k in (0, 1)}
    mean = b.op(reduce.MEAN, [x, axes], reduce.ReducerOptions(True), shape=shapes[True])
    squares = b.op(SQUARED_DIFFERENCE, [x, mean], shape=x.shape)
    variance = b.op(reduce.MEAN, [squares, axes], reduce.ReducerOptions(keep), shape=shapes[keep])
    return (mean if keep else b.op(reduce.MEAN, [x, axes], reduce.ReducerOptions(False), shape=shapes[False])), variance


def _statistics(b: Builder) -> list[Value]:
    """Return the other results of training; unread ones are dropped later."""
    x = Expression(b, b.node.input(0))
    mean, variance = (Expression(b, value) for value in _moments(b, keep=False))
    rank = len(b.shape(x.value))
    count = x.count([axis for axis in range(rank) if axis != _channel_axis(b, rank)])
    unbiased = variance * (count / (count - 1).maximum(1))
    return [mean.value, unbiased.value, mean.value, variance.value, *_nothing(b, 5)]


def _nothing(b: Builder, first: int) -> list[Value]:
    """Return empty results for outputs from ``first`` on, which TensorFlow's kernels only pass to gradients."""
    return [b.const(np.zeros(0, np.float32)) for _ in b.node.outputs[first:]]


def _channel_axis(b: Builder, rank: int) -> int:
    return 1 if b.node.attrs["data_format"].startswith("NC") else rank - 1


def _by_channel(b: Builder, vector: Value) -> Value:
    """Return a vector with one number per channel so that it broadcasts to the images."""
    rank = len(b.shape(b.node.input(0)))
    after = rank - 1 - _channel_axis(b, rank)
    shape = (*b.shape(vector), *[1] * after)
    if vector.data is not None:
        return b.const(vector.data.reshape(vector.data.shape + (1,) * after))
    return vector if not after else b.reshape(vector, [-1, *[1] * after], shape)


def _is_filled_with(value: Value, number: float) -> bool:
    fill = value.producer
    data = fill.input(1).data if fill is not None and fill.op_name in ("Fill", "FILL") else value.data
    return data is not None and bool(np.all(data == number))


def _local_response(b: Builder) -> Value:
    a = b.node.attrs
    beta = np.float32(a["beta"])
    if min(a["alpha"], a["bias"]) < 0 and beta != 1 and beta == np.rint(beta):
        # For negative sums, TensorFlow's exp(-beta * log(sum)) is NaN, but an integer power would be a number.
        beta = np.nextafter(beta, np.float32(0)) if beta else np.finfo(np.float32).tiny
        if beta == np.rint(beta):  # true for every number from 2**23 on
            raise b.error(f"its sums may be negative, which TFLite raises to the power of {-a['beta']:g}; TF makes NaN")
    options = LocalResponseNormalizationOptions(int(a["depth_radius"]), a["bias"], a["alpha"], float(beta))
    return b.op(LOCAL_RESPONSE_NORMALIZATION, b.node.inputs, options)


LOWERINGS: dict[str, Lowering] = {name: _reduction(op) for name, op in _REDUCTIONS.items()} | {
    "EuclideanNorm": _euclidean_norm,
    "MaxPool": _pool(MAX_POOL_2D),
    "AvgPool": _pool(AVERAGE_POOL_2D),
    "ArgMax": _arg(ARG_MAX, ArgMaxOptions),
    "ArgMin": _arg(ARG_MIN, ArgMinOptions),
    "Cumsum": _cumsum,
    "Softmax": lambda b: b.op(SOFTMAX, b.node.inputs, SoftmaxOptions(1.0)),
    "LogSoftmax": lambda b: b.op(LOG_SOFTMAX, b.node.inputs),
    "FusedBatchNorm": _batch_norm,
    "FusedBatchNormV2": _batch_norm,
    "FusedBatchNormV3": _batch_norm,
    "LRN": _local_response,
}
