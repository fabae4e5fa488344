"""Consecutive 1x1, depthwise and 1x1 convolutions as one GPU kernel: a group per tile of the image and part of the
hidden channels.

No model file contains this operator; the pass ``inverted`` creates it. Where a GPU is faster without it, two nodes run.
"""

from math import prod

import numpy as np

from litecl.delegate.cl_op import Activation, Arg, Call, ClOp, Const, Record, Scratch, Step, Weights
from litecl.delegate.gpu.block_groups import Block, BlockShare, block_share
from litecl.delegate.gpu.ops.separable_conv_2d import SEPARABLE, SeparableOptions, first_and_rest
from litecl.delegate.gpu.target import GpuCall
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.matmul.geometry import Geometry, geometry
from litecl.delegate.matmul.product import panels
from litecl.delegate.ops import conv_2d
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.ops.conv_2d import Conv2DOptions

(_POINTWISE,) = conv_2d.CL_OPS
_CHUNK = 32  # hidden channels, and steps of the first depth, that the kernel takes at once
_VECTOR = 4  # channels that are loaded and stored at once


@dataclass(frozen=True)
class InvertedOptions:
    """The options of the first convolution and of the two after it, and the tensor and activation between them.

    hidden: the spec of the tensor between them. Inputs: image, filter and bias of the first, then filters and biases.
    """

    expand: Conv2DOptions
    separable: SeparableOptions
    hidden: TensorSpec
    activation: Activation


@dataclass(frozen=True)
class InvertedResidual(Record):
    """Arguments of inverted_residual.cl. window: of the depthwise convolution. depth, hidden, columns: channels of the
    image, between and of the result. padded_depth, part_hidden: in whole steps. span: what a tile reads of the image.
    """

    window: Geometry
    depth: int
    padded_depth: int
    hidden: int
    columns: int
    tile_height: int
    tile_width: int
    tiles_down: int
    tiles_across: int
    span_height: int
    span_width: int
    parts: int
    part_hidden: int
    has_residual: int


def _lower(call: GpuCall) -> list[Step]:
    o = call.options
    first, rest = first_and_rest(call, o.expand, o.separable, o.hidden, o.activation)
    steps = _at_once(call)
    return [*_POINTWISE.steps(first), *SEPARABLE.steps(rest)] if steps is None else steps


def _at_once(call: GpuCall) -> list[Step] | None:
    """Return the launch of the whole, if groups have room for it and it is faster than separate convolutions."""
    options, x, out, taps = call.options.separable, call.input(0), call.outputs[0], call.input(3)
    hidden, (depth, columns) = call.options.hidden.static_shape, (x.shape[-1], out.shape[-1])
    if depth % _VECTOR or columns % _VECTOR or out.row_step is not None:
        return None
    g = geometry(options.depthwise, hidden, taps.shape[1:3], 1, options.middle.static_shape, options.pads)
    reach = ((g.kernel_height - 1) * g.dilation_y + 1, (g.kernel_width - 1) * g.dilation_x + 1)
    out_size = g.out_height, g.out_width
    block = Block(g.images, depth, g.height, g.width, hidden[-1], out_size, columns, g.strides, reach)
    share = block_share(call.target, block, halves=call.halves)
    if share is None:
        return None
    weights = _weights(call, share)
    bounds = (*call.options.activation.bounds, *options.activation.bounds, *call.activation.bounds)
    residual, record = call.residual or weights[-1], _record(call, g, share, depth)
    args: tuple[Arg, ...] = (x, *weights, residual, out, record, share.local, *bounds)
    if share.parts > 1:
        # The counters must survive between runs; other launches would overwrite scratch.
        args += (Scratch(share.parts_bytes), Const(np.zeros(share.tiles, np.int32)))
    size: dict[str, str | int | float] = {"WINDOW_HEIGHT": g.kernel_height, "WINDOW_WIDTH": g.kernel_width}
    products = prod(hidden) * depth + g.pixels * hidden[-1] * columns
    return [share.launch(args, size | call.activation.defines, g.flops + 2 * products)]


def _record(call: Call, g: Geometry, share: BlockShare, depth: int) -> InvertedResidual:
    return InvertedResidual(
        window=g,
        depth=depth,
        padded_depth=-(-depth // _CHUNK) * _CHUNK,
        hidden=share.padded_hidden,
        columns=call.outputs[0].shape[-1],
        tile_height=share.height,
        tile_width=share.width,
        tiles_down=share.down,
        tiles_across=share.across,
        span_height=share.span[0],
        span_width=share.span[1],
        parts=share.parts,
        part_hidden=share.part_hidden,
        has_residual=int(call.residual is not None),
    )


def _weights(call: Call, share: BlockShare) -> list[Const | Weights]:
    """Return filter and bias of all three convolutions as the kernel reads them."""
    filters = [call.input(i).value for i in (1, 3, 5)]
    expand, taps, project = (f.reshape(-1, f.shape[-1]) for f in filters)
    hidden = share.padded_hidden
    by_chunk = panels(_padded(expand, hidden, -(-expand.shape[1] // _CHUNK) * _CHUNK), _CHUNK)
    return [
        Weights(Const(by_chunk), "EXPAND_HALVES"),
        _bias(call, 2, hidden),
        Const(_padded(taps, len(taps), hidden)),
        _bias(call, 4, hidden),
        Weights(Const(panels(_padded(project, len(project), hidden), len(project))), "PROJECT_HALVES"),
        _bias(call, 6, len(project)),
    ]


def _bias(call: Call, position: int, columns: int) -> Const:
    bias = call.inputs[position]
    values = np.zeros((1, columns)) if bias is None else bias.value.reshape(1, -1)
    return Const(_padded(values, 1, columns))


def _padded(matrix: Array, rows: int, columns: int) -> Array:
    """Return a matrix with zeros behind its rows and columns."""
    more = (0, rows - matrix.shape[0]), (0, columns - matrix.shape[1])
    return np.ascontiguousarray(np.pad(matrix, more), np.float32)


INVERTED_RESIDUAL = ClOp(
    composed("INVERTED_RESIDUAL", InvertedOptions), claim=takes(*FLOAT), lower=_lower, writes_rows=True
)
