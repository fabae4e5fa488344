"""CONV_3D on the device: tiles of positions and columns, tap by tap."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Const, Operand, Record, Refusal, Step, Target
from litecl.delegate.kit import claims
from litecl.delegate.matmul.product import Packed, Strided, pack, packed, panels
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.kit.window import Window
from litecl.interpreter.ops.conv_3d import CONV_3D, Conv3DOptions, windows


@dataclass(frozen=True)
class Slide(Record):
    """A window along a dimension of ``size``: ``steps`` positions of ``taps`` taps; ``pad`` zeros before the first."""

    size: int
    steps: int
    taps: int
    stride: int
    dilation: int
    pad: int


@dataclass(frozen=True)
class Volume(Record):
    """Arguments of conv_3d.cl: ``volumes`` of ``channels``, and the ``columns`` that are made of them."""

    volumes: int
    depth: Slide
    height: Slide
    width: Slide
    channels: int
    columns: int


def _claim(options: Conv3DOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claims.typed(inputs, claims.FLOAT) or claims.activated(options, outputs[0].type)


def _lower(call: Call) -> list[Step]:
    (x, filter_, bias), (y,), target = call.weighted, call.outputs, call.target
    (*_, channels, columns), rows = filter_.shape, math.prod(y.shape[:-1])
    depth = filter_.spec.size // max(1, columns)
    tile = target.tile_for("conv_3d", rows, columns)
    weights = _packed(filter_, depth, columns, tile.panel, target)
    added = packed(bias, 1, columns, tile.panel, target)
    fitted = zip(x.shape[1:4], windows(call.options, x.shape, filter_.shape), strict=True)
    by_depth, by_height, by_width = (_slide(size, window) for size, window in fitted)
    volume = Volume(x.shape[0], by_depth, by_height, by_width, channels, columns)
    grid = target.product("conv_3d", tile, (rows, columns, depth))
    zeros = Const(np.zeros(max(1, channels), np.float32))
    operands = (x, weights.values, added.values, zeros, call.residual or added.values, y, volume)
    numbers = (np.int32(n) for n in (rows, *grid.shares[:2], call.residual is not None))
    launch = grid.launch(
        "conv_3d",
        (*operands, *numbers, *call.activation.bounds),
        tile.defines | weights.defines | call.activation.defines,
        2 * rows * columns * depth,
    )
    return [*weights.steps, *added.steps, launch]


def _packed(filter_: Operand, depth: int, columns: int, panel: int, target: Target) -> Packed:
    """Return a filter [taps, channels, columns] in panels."""
    if filter_.data is None:
        scratch, launch = pack(filter_, Strided(1, depth, columns, 0, columns, 1), panel, target)
        return Packed(scratch, (launch,))
    return Packed(Const(panels(filter_.value.reshape(depth, columns).T, panel, halves=target.half_weights)))


def _slide(size: int, window: Window) -> Slide:
    return Slide(size, window.output, window.size, window.stride, window.dilation, window.before)


CL_OPS = (ClOp(CONV_3D, claim=_claim, lower=_lower, fuses_activation=True, fuses_residual=True),)
