"""CONV_2D and FULLY_CONNECTED of floats with integer weights: quantized rows, and a product of bytes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Pads, Refusal, Step
from litecl.delegate.kit import claims
from litecl.delegate.matmul.geometry import Geometry, geometry, matrix, reached
from litecl.delegate.ops.pad import padded
from litecl.delegate.quantized import hybrid
from litecl.delegate.quantized.hybrid_product import hybrid_product, is_blockwise, weights_of
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions, image_rows, is_by_pixel
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import FullyConnectedOptionsWeightsFormat


def _claim(
    options: Conv2DOptions | FullyConnectedOptions,
    inputs: claims.Specs,
    outputs: Sequence[TensorSpec],
    blocks: bool = False,
) -> Refusal | None:
    x, bias = inputs[0], inputs[2] if len(inputs) > 2 else None
    return (
        claims.typed((x, bias), claims.FLOAT)
        or (Refusal("a bias that is not a constant") if bias is not None and bias.data is None else None)
        or hybrid.claim_weights(claims.given(inputs, 1), blocks=blocks)
        or claims.activated(options, outputs[0].type)
    )


def _claim_conv(options: Conv2DOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return _claim(options, inputs, outputs) or reached(options, inputs, outputs)


def _claim_dense(options: FullyConnectedOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    if options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return Refusal(f"weights are stored as {options.weights_format.name}")
    return _claim(options, inputs, outputs, blocks=True)


def _lower_conv(call: Call) -> list[Step]:
    x, filter_, _ = call.weighted
    g = geometry(call.options, x.shape, filter_.shape[1:3], filter_.shape[3], call.outputs[0].shape, call.pads)
    kind = image_rows(call.options, filter_.spec)
    if is_by_pixel(call.options, x.shape, filter_.spec):
        return _lower_pixels(call, kind)
    return _product(call, g, x.shape[0], kind=kind)


def _lower_pixels(call: Call, kind: int) -> list[Step]:
    """Multiply the pixels of images, each a row with its own zero point, after padding the images with zeros."""
    filter_ = call.input(1)
    wider, steps = padded(call, ((call.pads.top, call.pads.bottom), (call.pads.left, call.pads.right)))
    inner = replace(call, inputs=[wider, *call.inputs[1:]], pads=Pads())
    rows = wider.spec.size // wider.shape[3]
    return [*steps, *_product(inner, matrix(rows, wider.shape[3], filter_.shape[0]), rows, kind=kind)]


def _lower_dense(call: Call) -> list[Step]:
    columns, depth = call.input(1).shape
    rows = call.input(0).spec.size // depth
    # With a scale for every block of the weights, rows always have zero points.
    kind = call.options.asymmetric_quantize_inputs or is_blockwise(call.input(1).spec)
    return _product(call, matrix(rows, depth, columns), rows, kind=kind)


def _product(call: Call, g: Geometry, rows: int, *, kind: int) -> list[Step]:
    """Return the launches for an input quantized as ``rows`` rows."""
    x, filter_, bias = call.weighted
    weights = weights_of(filter_, np.zeros(g.columns, np.float32) if bias is None else np.ravel(bias.value))
    out = call.outputs[0]
    return [*hybrid_product(x, g, rows, weights, out, call.target, call.activation, call.residual, kind=kind)]


CL_OPS = (
    # The range of a quantized image always includes zero, so pads change no scale.
    ClOp(
        CONV_2D,
        claim=_claim_conv,
        lower=_lower_conv,
        fuses_activation=True,
        fuses_residual=True,
        fuses_pads=True,
    ),
    ClOp(
        FULLY_CONNECTED,
        claim=_claim_dense,
        lower=_lower_dense,
        fuses_activation=True,
        fuses_residual=True,
    ),
)
