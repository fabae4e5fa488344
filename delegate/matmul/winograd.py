"""3x3 convolutions of stride 1 on CPU devices by Winograd's F(4x4, 3x3) (kernels_cl/winograd.cl)."""

from math import sqrt

import numpy as np

from litecl.delegate.cl_op import Arg, Call, Const, Launch, Operand, Scratch, Target
from litecl.delegate.matmul.packing import packed_bias, panels
from litecl.delegate.matmul.tile import Tile, flops, tile_for
from litecl.interpreter.graph import Array

_POINTS = (0.0, 1 / sqrt(2), -1 / sqrt(2), sqrt(2), -sqrt(2))
_LEAST_PATCHES = 16  # fewer do not make up for weights that are four times as large
_LARGE_WEIGHTS_BYTES = 1 << 20  # weights that leave no room in the second-level cache are read once for every block
_SCRATCH_BYTES, _MOST_SCRATCH_BYTES = 1 << 19, 1 << 20  # of a work-item, beside small weights and large ones
_ITEMS_PER_UNIT = 4


def suits(target: Target, filter_: Operand, out: Operand) -> bool:
    """Return whether a 3x3 convolution of stride 1 is faster this way."""
    patches = out.shape[0] * -(-out.shape[1] // 4) * -(-out.shape[2] // 4)
    channels = min(filter_.shape[0], filter_.shape[3])
    least = max(target.tuning.winograd_channels, target.vector_width)
    return target.kind == "cpu" and filter_.data is not None and channels >= least and patches >= _LEAST_PATCHES


def winograd(call: Call, pads: tuple[int, int]) -> list[Launch]:
    """A CONV_2D with constant weights [columns, 3, 3, channels], its pads before rows and columns of the input."""
    x, filter_, out = call.input(0), call.input(1), call.outputs[0]
    assert filter_.data is not None
    columns, channels = filter_.shape[0], filter_.shape[3]
    tiles = (-(-out.shape[1] // 4), -(-out.shape[2] // 4))
    patches = out.shape[0] * tiles[0] * tiles[1]
    tile = tile_for(call.target, patches, columns)
    weights = panels(transformed(filter_.data), tile.panel)
    bias, packing = packed_bias(call.inputs[2] if len(call.inputs) > 2 else None, columns, 1, tile.panel, call.target)
    slot_bytes = 4 * 36 * (channels + -(-columns // tile.panel) * tile.panel)
    block, item_patches = _share(patches, slot_bytes, weights.nbytes, tile, call.target)
    items = -(-patches // item_patches)
    # The struct Geometry of the kernel, field by field.
    geometry = np.array([*x.shape[1:], *pads, *out.shape[1:], out.step, patches, *tiles, item_patches, block], np.int32)
    scratch = Scratch(slot_bytes * block * items)
    operands: tuple[Arg, ...] = (x, Const(weights), bias, call.residual or bias, out, scratch)
    launch = Launch(
        "winograd",
        "winograd",
        (*operands, Const(geometry), np.int32(call.residual is not None), *call.activation.bounds),
        (items,),
        (1,),
        tile.defines | call.activation.defines,
        flops(out.spec.size, 9 * channels),
    )
    return [*packing, launch]


def transformed(weights: Array) -> Array:
    """G w G^T of filters [columns, 3, 3, channels], as [36, columns, channels]."""
    g = np.zeros((6, 3))
    for i, point in enumerate(_POINTS):
        g[i] = np.power(point, range(3)) / np.prod([point - other for other in _POINTS if other != point])
    g[5, 2] = 1
    columns, _, _, channels = weights.shape
    points: Array = np.einsum("ia,jb,nabc->ijnc", g, g, weights).astype(np.float32)
    return points.reshape(36, columns, channels)


def _share(patches: int, slot_bytes: int, weights_bytes: int, tile: Tile, target: Target) -> tuple[int, int]:
    """Patches that a work-item takes at once, and in all."""
    large = weights_bytes > _LARGE_WEIGHTS_BYTES
    scratch_bytes = _MOST_SCRATCH_BYTES if large else _SCRATCH_BYTES
    items = target.compute_units * (1 if large or target.compute_units == 1 else _ITEMS_PER_UNIT)
    bands = -(-patches // (tile.rows * items))
    block = min(bands, max(1, scratch_bytes // (slot_bytes * tile.rows))) * tile.rows
    return block, -(-bands * tile.rows // block) * block
