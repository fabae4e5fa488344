"""TRANSPOSE_CONV of quantized tensors: every phase is a convolution (transpose_conv.py), whose results are copied to
their pixels.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Operand, Refusal, Scratch, Step
from litecl.delegate.kit import claims
from litecl.delegate.kit.strided import copy, view
from litecl.delegate.ops.quantized.conv_2d import claim_product, convolution
from litecl.delegate.ops.transpose_conv import Phase, phases_of, window_of
from litecl.delegate.quantized.integers import weights_of, zero_point
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions, offset

_ORDER = (2, 1, 3)  # of input, weights and bias among the operands


def _claim(options: TransposeConvOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claim_product([inputs[i] for i in _ORDER if i < len(inputs)], outputs, options)


def _lower(call: Call) -> list[Step]:
    call = replace(call, inputs=[call.inputs[i] for i in _ORDER if i < len(call.inputs)])
    options: TransposeConvOptions = call.options
    x, filter_, out = call.input(0), call.input(1), call.outputs[0]
    cut = offset(options, out.shape, filter_.shape)
    vertical = phases_of(filter_.shape[1], options.stride_h, cut[0], out.shape[1])
    horizontal = phases_of(filter_.shape[2], options.stride_w, cut[1], out.shape[2])
    steps: list[Step] = []
    for v, h in product(vertical, horizontal):
        taps = _taps(filter_, v, h)
        shape = (out.shape[0], v.count, h.count, out.shape[3])
        part = Scratch(out.spec.dtype.itemsize * int(np.prod(shape)))
        g = replace(window_of(x.shape, v, h, out.shape[3]), kernel_height=taps.shape[1], kernel_width=taps.shape[2])
        pixels = view(out.shape)[:, v.first :: v.stride, h.first :: h.stride]
        steps += [
            convolution(call, g, weights_of(call.specs, out.spec, taps, 1), into=part),
            copy(part, view(shape), out, pixels, claims.bits(out.spec), call.target),
        ]
    return steps


def _taps(filter_: Operand, v: Phase, h: Phase) -> Array:
    """Return the taps that a phase uses; a single tap of zeros if it uses none."""
    taps = filter_.value[:, v.taps][:, :, h.taps]
    return taps if taps.size else np.full_like(filter_.value[:, :1, :1], zero_point(filter_.spec))


CL_OPS = (ClOp(TRANSPOSE_CONV, claim=_claim, lower=_lower),)
