"""CONV_3D and CONV_3D_TRANSPOSE on the device: tiles of positions and columns, tap by tap.

A transposed convolution gathers too: each tap of an output position reads one element of the input, or none. Taps that
no position of a tile uses are skipped, so strides along depth and height cost nothing.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Const, Operand, Record, Refusal, Step, Target, Weights
from litecl.delegate.kit import claims
from litecl.delegate.matmul.product import Packed, Strided, pack, packed, panels
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.ops.conv_3d import CONV_3D, Conv3DOptions, windows
from litecl.interpreter.ops.conv_3d_transpose import CONV_3D_TRANSPOSE, dilations, offset, strides


@dataclass(frozen=True)
class Slide(Record):
    """A window along a dimension of ``size``: ``steps`` positions of ``taps`` taps; ``pad`` zeros before the first.

    Transposed: ``pad`` positions are cut off before the first.
    """

    size: int
    steps: int
    taps: int
    stride: int
    dilation: int
    pad: int


@dataclass(frozen=True)
class Volume(Record):
    """Arguments of conv_3d.cl: ``volumes`` of ``channels``, and the ``columns`` computed from them."""

    volumes: int
    depth: Slide
    height: Slide
    width: Slide
    channels: int
    columns: int


def _claim(options: Conv3DOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claims.typed(inputs, claims.FLOAT) or claims.activated(options, outputs[0].type)


def _claim_transposed(options: Conv3DOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claims.constant(inputs, weights=1) or _claim(options, inputs[1:], outputs)


def _convolved(call: Call) -> list[Step]:
    x, filter_, bias = call.weighted
    fitted = zip(x.shape[1:4], windows(call.options, x.shape, filter_.shape), strict=True)
    slides = [Slide(n, w.output, w.size, w.stride, w.dilation, w.before) for n, w in fitted]
    return _lower(call, x, bias, slides, partial(_packed, filter_, call.target))


def _transposed(call: Call) -> list[Step]:
    filter_, x, y = call.input(1), call.input(2), call.outputs[0]
    cut = offset(call.options, y.shape, filter_.shape)
    window = zip(filter_.shape, strides(call.options), dilations(call.options), cut, strict=False)
    slides = [Slide(*each[:2], *each[2]) for each in zip(x.shape[1:4], y.shape[1:4], window, strict=True)]
    weights = filter_.value.swapaxes(3, 4).reshape(-1, y.shape[4])
    bias = call.inputs[3] if len(call.inputs) > 3 else None
    return _lower(call, x, bias, slides, partial(_constant, weights), transposed=True)


def _lower(
    call: Call,
    x: Operand,
    bias: Operand | None,
    slides: Sequence[Slide],
    pack_weights: Callable[[int], Packed],
    *,
    transposed: bool = False,
) -> list[Step]:
    """Return the steps of either convolution. pack_weights: packs them in panels of a given width."""
    (y,), target, channels = call.outputs, call.target, x.shape[4]
    columns, rows = y.shape[4], math.prod(y.shape[:-1])
    depth = channels * math.prod(slide.taps for slide in slides)
    tile = target.tile_for("conv_3d", rows, columns)
    weights = pack_weights(tile.panel)
    added = packed(bias, 1, columns, tile.panel, target)
    depth_slide, height_slide, width_slide = slides
    volume = Volume(x.shape[0], depth_slide, height_slide, width_slide, channels, columns)
    grid = target.product("conv_3d", tile, (rows, columns, depth))
    zeros = Const(np.zeros(max(1, channels), np.float32))
    operands = (x, weights.values, added.values, zeros, call.residual or added.values, y, volume)
    numbers = (np.int32(n) for n in (rows, *grid.shares[:2], call.residual is not None))
    work = 2 * math.prod(x.shape[:-1] if transposed else y.shape[:-1]) * columns * depth
    defines = tile.defines | call.activation.defines | ({"TRANSPOSED": 1} if transposed else {})
    launch = grid.launch("conv_3d", (*operands, *numbers, *call.activation.bounds), defines, work)
    return [*weights.steps, *added.steps, launch]


def _packed(filter_: Operand, target: Target, panel: int) -> Packed:
    """Return a filter [taps, channels, columns] in panels."""
    columns = filter_.shape[4]
    depth = filter_.spec.size // columns
    if filter_.data is None:
        scratch, launch = pack(filter_, Strided(1, depth, columns, 0, columns, 1), panel, target)
        return Packed(scratch, (launch,))
    return _constant(filter_.value.reshape(depth, columns), panel)


def _constant(matrix: Array, panel: int) -> Packed:
    return Packed(Weights(Const(panels(matrix.T, panel))))


CL_OPS = (
    ClOp(CONV_3D, claim=_claim, lower=_convolved, fuses_activation=True, fuses_residual=True),
    ClOp(CONV_3D_TRANSPOSE, claim=_claim_transposed, lower=_transposed, fuses_activation=True, fuses_residual=True),
)
