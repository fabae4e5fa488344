"""TRANSPOSE_CONV and Convolution2DTransposeBias on the device.

With stride s the output pixels of phase p, those at y = s q + p, use every s-th tap only: each phase is a convolution
of stride 1 with its taps reversed, whose results lie s pixels apart.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Operand, Refusal, Scratch, Step
from litecl.delegate.kit import claims
from litecl.delegate.kit.strided import copy, view, view_of
from litecl.delegate.matmul.geometry import Geometry, Placement
from litecl.delegate.ops.conv_2d import known, window_product
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Shape, TensorSpec
from litecl.interpreter.ops.transpose_conv import (
    CONVOLUTION_2D_TRANSPOSE_BIAS,
    TRANSPOSE_CONV,
    TransposeConvOptions,
    offset,
)
from litecl.interpreter.ops.transpose_conv import (
    geometry as transposed,
)
from litecl.interpreter.options import CustomOptions


@dataclass(frozen=True)
class Phase:
    """The output pixels ``first``, ``first + stride``, .. along one dimension: their count, taps and padding."""

    first: int
    stride: int
    count: int
    taps: tuple[int, ...]
    pad: int


def phases_of(kernel: int, stride: int, cut: int, length: int) -> list[Phase]:
    """Return the phases of ``length`` output pixels, before which ``cut`` more were cut off."""
    phases = []
    for first in range(min(stride, length)):
        start = (first + cut) % stride
        taps = tuple(reversed(range(start, kernel, stride)))
        pad = len(taps) - 1 - (first + cut) // stride
        phases.append(Phase(first, stride, -(-(length - first) // stride), taps, pad))
    return phases


def _lower(call: Call, x: Operand, bias: Operand | None, strides: tuple[int, int], cut: tuple[int, int]) -> list[Step]:
    filter_, out = call.input(1), call.outputs[0]
    assert filter_.data is not None
    columns, kernel_height, kernel_width, _ = filter_.shape
    vertical = phases_of(kernel_height, strides[0], cut[0], out.shape[1])
    horizontal = phases_of(kernel_width, strides[1], cut[1], out.shape[2])
    if (merged := _merged(call, x, bias, vertical, horizontal)) is not None:
        return merged
    launches: list[Step] = []
    for v, h in product(vertical, horizontal):
        taps = filter_.data[:, v.taps][:, :, h.taps].reshape(columns, -1)
        placement = Placement(
            height=out.shape[1],
            width=out.shape[2],
            step_y=v.stride,
            step_x=h.stride,
            first_y=v.first,
            first_x=h.first,
            pixel_step=out.step,
        )
        launches += window_product(call, window_of(x.shape, v, h, columns), x, known(taps), bias, out, placement)
    return launches


def _merged(
    call: Call, x: Operand, bias: Operand | None, vertical: Sequence[Phase], horizontal: Sequence[Phase]
) -> list[Step] | None:
    """Return all phases as the columns of one convolution, and the copy that moves them apart; None unless all have
    the same window, and so few columns that they leave a CPU's vector mostly empty.
    """
    filter_, out = call.input(1).value, call.outputs[0]
    columns, phases = len(filter_), len(vertical) * len(horizontal)
    alike = all(len({(p.count, len(p.taps), p.pad) for p in side}) == 1 for side in (vertical, horizontal))
    if not 1 < phases * columns <= call.target.lanes or not alike or not filter_.size:
        return None
    if not vertical[0].taps or not horizontal[0].taps or (bias is not None and bias.data is None):
        return None
    taps = [filter_[:, v.taps][:, :, h.taps].reshape(columns, -1) for v, h in product(vertical, horizontal)]
    g = window_of(x.shape, vertical[0], horizontal[0], phases * columns)
    added = None if bias is None else known(np.tile(np.ravel(bias.value), phases))
    part = Scratch(4 * g.pixels * g.columns)
    apart = (g.images, g.out_height, g.out_width, len(vertical), len(horizontal) * columns)
    together = (g.images, g.out_height, len(vertical), g.out_width, len(horizontal), columns)
    at, to = view(apart).swapaxes(2, 3).reshape(together), view_of(out).reshape(together)
    moved = copy(part, at, out, to, claims.bits(out.spec), call.target)
    return [*window_product(call, g, x, known(np.concatenate(taps)), added, part), moved]


def window_of(x: Shape, v: Phase, h: Phase, columns: int) -> Geometry:
    """Return the window of one phase over images of shape ``x``: without taps, one row of none."""
    images, height, width, channels = x
    return Geometry(
        images=images,
        height=height,
        width=width,
        channels=channels,
        group_channels=channels,
        kernel_height=max(1, len(v.taps)),
        kernel_width=len(h.taps) if v.taps else 0,
        pad_y=v.pad,
        pad_x=h.pad,
        out_height=v.count,
        out_width=h.count,
        columns=columns,
        group_columns=columns,
    )


def _claim(options: TransposeConvOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    wrong = claims.constant(inputs, weights=1) or claims.typed(inputs[1:], claims.FLOAT)
    return wrong or claims.activated(options, outputs[0].type)


def _claim_bias(options: CustomOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claims.constant(inputs, weights=1) or claims.typed(inputs, claims.FLOAT)


def _transpose_conv(call: Call) -> list[Step]:
    options: TransposeConvOptions = call.options
    filter_, x, out = call.input(1), call.input(2), call.outputs[0]
    bias = call.inputs[3] if len(call.inputs) > 3 else None
    cut = offset(options, out.shape, filter_.shape)
    return _lower(call, x, bias, (options.stride_h, options.stride_w), cut)


def _transpose_conv_bias(call: Call) -> list[Step]:
    x, filter_ = call.input(0), call.input(1)
    shape = transposed(call.options, x.shape, filter_.shape)
    return _lower(call, x, call.inputs[2], shape.strides, shape.offsets)


CL_OPS = (
    ClOp(TRANSPOSE_CONV, claim=_claim, lower=_transpose_conv, fuses_activation=True, writes_rows=True),
    ClOp(
        CONVOLUTION_2D_TRANSPOSE_BIAS,
        claim=_claim_bias,
        lower=_transpose_conv_bias,
        fuses_activation=True,
        writes_rows=True,
    ),
)
