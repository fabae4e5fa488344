"""CONV_2D and FULLY_CONNECTED of quantized tensors: patches gathered row by row, and a product of bytes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Launch, Refusal, Scratch, Step, Target
from litecl.delegate.cpu.quantized_winograd import quantized_winograd
from litecl.delegate.kit import claims
from litecl.delegate.kit.strided import Memory
from litecl.delegate.matmul.geometry import Geometry, abreast, geometry, matrix, reached, side_by_side
from litecl.delegate.matmul.patches import Groups
from litecl.delegate.quantized.integer_product import integer_product
from litecl.delegate.quantized.integers import (
    Weights,
    bounded,
    bounds_of,
    per_tensor,
    unsigned_zero,
    weights_of,
    zero_point,
)
from litecl.interpreter.arithmetic import weighted
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import FullyConnectedOptionsWeightsFormat, TensorType

_WEIGHTS = (*claims.BYTES, TensorType.INT4, TensorType.INT2)


def claim_product(
    inputs: claims.Specs, outputs: Sequence[TensorSpec], options: Any, *, axis: int = 0, real: bool = False
) -> Refusal | None:
    """Refuse all but products of 8- or 16-bit activations and constant weights of 8 bits or fewer.

    axis: the weights' dimension of output channels. real: whether factors are applied in float64.
    """
    x, weights, out = claims.given(inputs, 0), claims.given(inputs, 1), outputs[0]
    bias = inputs[2] if len(inputs) > 2 else None
    return (
        claims.constant(inputs, weights=1)
        or claims.typed((x, out), claims.QUANTIZED, quantized=True)
        or claims.typed((weights,), _WEIGHTS, quantized=True)
        or (Refusal("sparse weights") if weights.sparsity is not None else None)
        or (Refusal("a bias that is not a constant") if bias is not None and bias.data is None else None)
        or (Refusal(f"{x.type.name} activations, {out.type.name} results") if x.type != out.type else None)
        or per_tensor(x, out)
        or (per_tensor(weights) if weights.type == TensorType.UINT8 else None)
        or bounded(options)
        or (_claim_words(inputs, out, options, axis, real) if x.type == TensorType.INT16 else None)
    )


def _claim_words(inputs: claims.Specs, out: TensorSpec, options: Any, axis: int, real: bool) -> Refusal | None:
    """Refuse 16-bit activations or weights with zero points, and sums that float64 cannot scale exactly."""
    x, filter_ = claims.given(inputs, 0), claims.given(inputs, 1)
    assert filter_.data is not None
    if filter_.type == TensorType.UINT8 or any(zero_point(spec) for spec in (x, filter_, out)):
        return Refusal("16-bit activations or their weights with zero points")
    weights = weights_of(inputs, out, np.moveaxis(filter_.data, axis, 0), 1)
    if is_wide(inputs, options) and not real and not weights.fits_float64:
        return Refusal("sums of 16-bit activations that float64 cannot scale exactly")
    return None


def is_wide(inputs: claims.Specs, options: Any) -> bool:
    """Return whether sums have 64 bits."""
    bias = inputs[2] if len(inputs) > 2 else None
    declared = getattr(options, "quantized_bias_type", TensorType.FLOAT32)
    return weighted.is_wide(claims.given(inputs, 0), bias, declared)


def _claim_conv(options: Any, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claim_product(inputs, outputs, options) or reached(options, inputs, outputs)


def _claim_dense(options: FullyConnectedOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    if options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return Refusal(f"weights are stored as {options.weights_format.name}")
    return claim_product(inputs, outputs, options, real=True)


def conv(call: Call) -> tuple[Geometry, Weights]:
    """Return the window of CONV_2D, and its weights."""
    (x, filter_, _), out = call.weighted, call.outputs[0]
    g = geometry(call.options, x.shape, filter_.shape[1:3], filter_.shape[3], out.shape, call.pads)
    return g, weights_of(call.specs, out.spec, filter_.value, g.groups)


def dense(call: Call) -> tuple[Geometry, Weights]:
    """Return FULLY_CONNECTED as a window, and its weights."""
    columns, depth = call.input(1).shape
    rows = call.input(0).spec.size // depth
    weights = weights_of(call.specs, call.outputs[0].spec, call.input(1).value, 1, real=True)
    return matrix(rows, depth, columns), weights


def _lower_conv(call: Call) -> list[Step]:
    g, weights = conv(call)
    of_bytes = g.is_3x3 and call.input(0).spec.type in claims.BYTES
    if call.target.byte_pairs and of_bytes and (launch := quantized_winograd(call, g, weights)):
        return [launch]
    return [convolution(call, g, weights)]


def _lower_dense(call: Call) -> list[Step]:
    return [convolution(call, *dense(call), real=True)]


def convolution(
    call: Call,
    g: Geometry,
    weights: Weights,
    *,
    real: bool = False,
    into: Scratch | None = None,
    source: Memory | None = None,
    groups: Groups | None = None,
) -> Launch:
    """Return the launch of quantized_conv_2d.cl on a call's first input. into: memory to use in place of its output.

    real: whether factors are applied in float64. source, groups: see ``integer_product``.
    """
    x, out = call.input(0), call.outputs[0]
    plain = into is None and groups is None
    if plain and x.spec.type in claims.BYTES and weights.factor == 0 and weights.bits == 8:
        g, weights = _abreast(g, weights, call.target)
    x_zero, bounds = unsigned_zero(x.spec), bounds_of(call.options, out.spec)
    wide = is_wide(call.specs, call.options)
    return integer_product(
        x,
        g,
        weights,
        into or out,
        out.spec.type,
        x_zero,
        bounds,
        call.target,
        real=real,
        wide=wide,
        source=source,
        groups=groups,
    )


def _abreast(g: Geometry, weights: Weights, target: Target) -> tuple[Geometry, Weights]:
    """Return a product with few columns as one with rows of several pixels (``abreast``)."""
    pixels = abreast(g, target)
    if pixels == 1:
        return g, weights
    values = np.kron(np.eye(pixels, dtype=np.int8), weights.values[0])[np.newaxis]
    bias, factors = (np.tile(a, pixels) for a in (weights.bias, weights.factors))
    return side_by_side(g, pixels), replace(weights, values=values, bias=bias, factors=factors)


CL_OPS = (
    ClOp(CONV_2D, claim=_claim_conv, lower=_lower_conv),
    ClOp(FULLY_CONNECTED, claim=_claim_dense, lower=_lower_dense),
)
