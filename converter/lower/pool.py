"""Pooling over windows, reductions over axes, and what normalises along them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.conv import geometry
from litecl.interpreter.op import Op
from litecl.interpreter.ops import reduce
from litecl.interpreter.ops.arg_max import ARG_MAX, ARG_MIN, ArgMaxOptions, ArgMinOptions
from litecl.interpreter.ops.binary import ADD, MUL
from litecl.interpreter.ops.cumsum import CUMSUM, CumsumOptions
from litecl.interpreter.ops.local_response_normalization import (
    LOCAL_RESPONSE_NORMALIZATION,
    LocalResponseNormalizationOptions,
)
from litecl.interpreter.ops.log_softmax import LOG_SOFTMAX
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions

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
        g = geometry(b, b.node.input(0))
        _, height, width, _ = b.node.attrs["ksize"]
        options = Pool2DOptions(
            padding=g.padding,
            stride_h=g.strides[0],
            stride_w=g.strides[1],
            filter_height=height,
            filter_width=width,
        )
        return b.op(op, [g.x], options)

    return lower


def _reduction(op: Op) -> Lowering:
    def lower(b: Builder) -> Value:
        axes = b.int32(b.node.input(1))
        if axes.data is not None:
            axes = b.const(axes.data.reshape(-1))
        return b.op(op, [b.node.input(0), axes], reduce.ReducerOptions(bool(b.node.attrs["keep_dims"])))

    return lower


def _arg(op: Op, options: type[Any]) -> Lowering:
    return lambda b: b.op(op, [b.node.input(0), b.int32(b.node.input(1))], options(b.node.output.type))


def _cumsum(b: Builder) -> Value:
    options = CumsumOptions(bool(b.node.attrs["exclusive"]), bool(b.node.attrs["reverse"]))
    return b.op(CUMSUM, [b.node.input(0), b.int32(b.node.input(1))], options)


def _batch_norm(b: Builder) -> list[Value]:
    """x * scale + offset, from statistics that are constant when a model is not trained."""
    attrs = b.node.attrs
    if attrs["is_training"] or attrs["data_format"] != "NHWC":
        raise b.error("only inference with channels last converts; call the model with training=False")
    gamma, beta, mean, variance = (b.known(i, "statistics").astype(np.float64) for i in range(1, 5))
    scale = gamma / np.sqrt(variance + attrs["epsilon"])
    scaled = b.op(MUL, [b.node.input(0), b.const(scale, np.float32)])
    result = b.op(ADD, [scaled, b.const(beta - mean * scale, np.float32)])
    return [result, *b.like()[1:]]


def _local_response(b: Builder) -> Value:
    a = b.node.attrs
    options = LocalResponseNormalizationOptions(int(a["depth_radius"]), a["bias"], a["alpha"], a["beta"])
    return b.op(LOCAL_RESPONSE_NORMALIZATION, b.node.inputs, options)


LOWERINGS: dict[str, Lowering] = {name: _reduction(op) for name, op in _REDUCTIONS.items()} | {
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
