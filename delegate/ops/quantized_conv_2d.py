"""CONV_2D and FULLY_CONNECTED of quantized tensors: patches gathered row by row, and a product of bytes."""

from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np

from litecl.delegate import claims
from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Launch, Refusal, Step
from litecl.delegate.patches import Geometry, geometry, matrix, patches
from litecl.delegate.quantized import (
    Weights,
    bounded,
    bounds_of,
    per_tensor,
    unsigned_zero,
    weights_of,
)
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.conv_2d import CONV_2D, windows
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import FullyConnectedOptionsWeightsFormat, TensorType


def claim_product(inputs: claims.Specs, outputs: Sequence[TensorSpec], options: Any) -> Refusal | None:
    """A product of activations and constant weights of 8 bits."""
    x, weights = claims.given(inputs, 0), claims.given(inputs, 1)
    bias = inputs[2] if len(inputs) > 2 else None
    return (
        claims.constant(inputs, weights=1)
        or claims.typed((x, weights, outputs[0]), claims.BYTES, quantized=True)
        or (Refusal("a bias that is not a constant") if bias is not None and bias.data is None else None)
        or per_tensor(x, outputs[0])
        or (per_tensor(weights) if weights.type == TensorType.UINT8 else None)
        or bounded(options)
    )


def _claim_conv(options: Any, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claim_product(inputs, outputs, options)


def _claim_dense(
    options: FullyConnectedOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]
) -> Refusal | None:
    if options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return Refusal(f"weights are stored as {options.weights_format.name}")
    return claim_product(inputs, outputs, options)


def _lower_conv(call: Call) -> list[Step]:
    x, filter_, out = call.input(0), call.input(1), call.outputs[0]
    g = geometry(windows(call.options, x.shape, filter_.shape), x.shape, filter_.shape, out.shape)
    return [convolution(call, g, weights_of(call, filter_.value, g.columns // g.group_columns))]


def _lower_dense(call: Call) -> list[Step]:
    columns, depth = call.input(1).shape
    rows = call.input(0).spec.size // depth
    return [convolution(call, matrix(rows, depth, columns), weights_of(call, call.input(1).value, 1), real=True)]


def convolution(call: Call, g: Geometry, weights: Weights, *, real: bool = False) -> Launch:
    """The launch of quantized_conv_2d.cl on the first input of a call; ``real`` if factors are applied in float64."""
    x, out = call.input(0), call.outputs[0]
    work = patches(g, call.target)
    x_zero, bounds = unsigned_zero(x.spec), bounds_of(call.options, out.spec)
    sizes = (*work.sizes(x.spec.size), x_zero, *astuple(bounds), weights.factor, 0)
    stage = weights.stage(work.tile.panel, call.target.vector_width, x_zero, bounds, real=real)
    operands: tuple[Arg, ...] = (
        x,
        Const(weights.packed(work.tile.panel)),
        Const(stage.fields),
        work.scratch,
        out,
        Const(np.array(sizes, np.int32)),
    )
    defines = work.tile.defines | stage.defines | {"T": claims.C_TYPES[out.spec.type]}
    if weights.factor:
        defines["ROW_SUMS"] = 1
    return Launch(
        "quantized_conv_2d",
        "quantized_conv_2d",
        operands,
        work.grid.global_size,
        work.grid.local_size,
        defines,
        work.operations,
    )


CL_OPS = (
    ClOp(CONV_2D, claim=_claim_conv, lower=_lower_conv),
    ClOp(FULLY_CONNECTED, claim=_claim_dense, lower=_lower_dense),
)
