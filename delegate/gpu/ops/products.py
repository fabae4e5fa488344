"""CONV_2D, FULLY_CONNECTED and BATCH_MATMUL on a GPU: tiles in local memory, and groups that share a row's depth."""

from collections.abc import Collection, Sequence

import numpy as np

from litecl.delegate.cl_op import Arg, Const, Local, Operand, Step, Weights
from litecl.delegate.gpu.groups import LocalShare, groups
from litecl.delegate.gpu.local_product import (
    VECTOR,
    ByWindow,
    LocalOperands,
    Slice,
    in_tiles,
    local_product,
    padded_bias,
)
from litecl.delegate.gpu.target import GpuCall
from litecl.delegate.gpu.tiles import arithmetic, local_share
from litecl.delegate.matmul.geometry import Geometry, geometry, matrix
from litecl.delegate.matmul.product import starts

_FEW_ROWS = 4  # at most, if each group computes some columns of all rows
_LEAST_DEPTH = 64  # of a product whose groups take columns, not tiles
_LEAST_COLUMNS = 16  # of a group of channels; with fewer, a tile would be mostly empty
_DOTS = 4  # columns of such a group
_READS = {"GATHER": "patches", "RIGHT_COLUMNS": "rows by computed columns", "RIGHT_ROWS": "rows by computed rows"}


def convolution(call: GpuCall, before: ByWindow | None = None) -> list[Step] | None:
    """Lower CONV_2D with constant weights, if channels can be loaded four at a time.

    before: the depthwise convolution, or the gates, that compute its input.
    """
    x, filter_, bias = call.weighted
    if filter_.data is None or filter_.shape[3] % VECTOR or not _is_constant(bias):
        return None
    g = geometry(call.options, x.shape, filter_.shape[1:3], filter_.shape[3], call.outputs[0].shape, call.pads)
    gather: dict[str, str | int | float] = {} if g.is_matrix else {"GATHER": 1}
    reads = _reads(gather, before)
    share = local_share(
        call.target, g.groups, g.pixels, g.group_columns, g.depth, reads=reads, arithmetic=arithmetic(call)
    )
    if share is None or (g.groups > 1 and g.group_columns < _LEAST_COLUMNS):
        return None
    weights = in_tiles(filter_.data.reshape(g.groups, g.group_columns, g.depth), share)
    panel = share.padded_columns * share.padded_depth
    slices = [
        Slice(i * g.group_channels, i * panel, i * share.padded_columns, i * g.group_columns) for i in range(g.groups)
    ]
    return _product(call, share, g, weights, slices, gather, before)


def dense(call: GpuCall) -> list[Step] | None:
    """Lower FULLY_CONNECTED: dots along the depth for a few rows, else tiles."""
    x, weights, bias = call.input(0), call.input(1), _bias(call)
    columns, depth = weights.shape
    rows = x.spec.size // depth
    if depth % VECTOR:
        return None
    if rows <= _FEW_ROWS and depth >= _LEAST_DEPTH:
        return _dots(call, rows, columns, depth)
    right: dict[str, str | int | float] = {} if weights.data is not None else {"RIGHT_COLUMNS": 1}
    share = local_share(call.target, 1, rows, columns, depth, reads=_reads(right), arithmetic=arithmetic(call))
    if share is None or not _is_constant(bias):
        return None
    values: Arg = weights if weights.data is None else in_tiles(weights.data[np.newaxis], share)
    window = matrix(rows, depth, columns)
    return _product(call, share, window, values, [Slice(0, 0, 0, 0)], right)


def batch_matmul(call: GpuCall) -> list[Step] | None:
    """Lower BATCH_MATMUL; either operand may broadcast, and the second may be transposed."""
    x, y, out = call.input(0), call.input(1), call.outputs[0]
    options = call.options
    batch, (rows, columns), depth = out.shape[:-2], out.shape[-2:], x.shape[-1]
    constant = y.data is not None
    if options.adj_x or depth % VECTOR or not (constant or options.adj_y or columns % VECTOR == 0):
        return None
    x_batch, y_batch = x.shape[:-2], y.shape[:-2]
    if np.prod(y_batch) == 1:  # one y for all: the rows of all products are rows of one
        batch, x_batch, y_batch, rows = (), (), (), out.spec.size // columns
    count = int(np.prod(batch))
    computed = "RIGHT_COLUMNS" if options.adj_y else "RIGHT_ROWS"
    right: dict[str, str | int | float] = {} if constant else {computed: 1}
    share = local_share(call.target, count, rows, columns, depth, reads=_reads(right), arithmetic=arithmetic(call))
    if share is None:
        return None
    values: Arg = y
    matrix_size = depth * columns
    if y.data is not None:
        matrices = y.data if options.adj_y else y.data.swapaxes(-1, -2)
        values = in_tiles(matrices.reshape(-1, columns, depth), share)
        matrix_size = share.padded_depth * share.padded_columns
    begins = starts(x_batch, rows * depth, batch), starts(y_batch, matrix_size, batch)
    pairs = zip(*(each.ravel().tolist() for each in begins), strict=True)
    slices = [Slice(a, b, 0, i * rows * columns) for i, (a, b) in enumerate(pairs)]
    return _product(call, share, matrix(rows, depth, columns), values, slices, right)


def _product(
    call: GpuCall,
    share: LocalShare,
    window: Geometry,
    weights: Arg,
    slices: Sequence[Slice],
    layout: dict[str, str | int | float],
    before: ByWindow | None = None,
) -> list[Step]:
    """Return the launch of product_local.cl for a call."""
    bias, out = _bias(call), call.outputs[0]
    padded = padded_bias(None if bias is None else bias.value, share)
    operands = LocalOperands(call.input(0), weights, padded, out, out.step, call.residual, before)
    return [local_product(operands, share, window, slices, call.activation, layout)]


def _dots(call: GpuCall, rows: int, columns: int, depth: int) -> list[Step] | None:
    """Return the launch of matvec.cl; None if the device has no room for its groups."""
    weights, bias, out = call.input(1), _bias(call), call.outputs[0]
    items = call.target.items_for(depth, VECTOR)
    local = Local(4 * rows * _DOTS * items)
    if not call.target.has_room(items, local):
        return None
    nothing = Const(np.zeros(1, np.float32))
    values: Arg = weights if weights.data is None else Weights(weights)
    flags = (np.int32(bias is not None), np.int32(call.residual is not None))
    operands: tuple[Arg, ...] = (call.input(0), values, bias or nothing, call.residual or nothing, out, local)
    sizes = (np.int32(depth), np.int32(columns), np.int32(out.step), *flags)
    defines = {"ROWS": rows, "COLUMNS": _DOTS} | call.activation.defines
    args = (*operands, *sizes, *call.activation.bounds)
    return [groups("matvec", "matvec", -(-columns // _DOTS), items, args, defines, 2 * rows * columns * depth)]


def _reads(layout: Collection[str], before: ByWindow | None = None) -> str:
    """Return the name of the operands' layout in measurements. layout: its macros."""
    if before is not None:
        return f"{before.window.kernel_height}x{before.window.kernel_width} depthwise"
    return next((_READS[macro] for macro in layout), "rows")


def _is_constant(bias: Operand | None) -> bool:
    return bias is None or bias.data is not None


def _bias(call: GpuCall) -> Operand | None:
    return call.inputs[2] if len(call.inputs) > 2 else None
