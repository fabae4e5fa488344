"""CONV_2D, FULLY_CONNECTED and BATCH_MATMUL on a GPU: tiles in local memory, and groups that share a row's depth."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from litecl.delegate.cl_op import Arg, Call, Const, Local, Operand, Record, Scratch, Step
from litecl.delegate.kit.groups import LocalShare, groups, has_room, items_for, local_share
from litecl.delegate.matmul.geometry import Geometry, geometry, matrix
from litecl.delegate.matmul.product import Packed, in_halves, panels
from litecl.interpreter.graph import Array

_VECTOR = 4  # elements that are loaded at once, from where they are aligned
_FEW_ROWS, _LEAST_DEPTH = 4, 64  # of a product whose groups take columns, not tiles
_LEAST_COLUMNS = 16  # of a group of channels, so that a tile is not empty for the most part
_DOTS = 4  # columns of such a group


@dataclass(frozen=True)
class Slice(Record):
    """Where the operands of one of several products begin, in elements."""

    x: int
    weights: int
    bias: int
    out: int


@dataclass(frozen=True)
class LocalProduct(Record):
    """What product_local.cl is told of products. aligned: whether four columns of a result are stored at once."""

    window: Geometry
    rows: int
    columns: int
    depth: int
    panel_depth: int
    parts: int
    part_depth: int
    out_step: int
    has_residual: int
    aligned: int


def convolution(call: Call) -> list[Step] | None:
    """Lower CONV_2D with constant weights, of channels that are loaded four at a time."""
    x, filter_, bias = call.input(0), call.input(1), _bias(call)
    if filter_.data is None or filter_.shape[3] % _VECTOR or not _is_constant(bias):
        return None
    g = geometry(call.options, x.shape, filter_.shape[1:3], filter_.shape[3], call.outputs[0].shape, call.pads)
    share = local_share(call.target, g.groups, g.pixels, g.group_columns, g.depth)
    if share is None or (g.groups > 1 and g.group_columns < _LEAST_COLUMNS):
        return None
    weights = _packed(call, filter_.data.reshape(g.groups, g.group_columns, g.depth), share)
    panel = share.padded_columns * share.padded_depth
    slices = [
        Slice(i * g.group_channels, i * panel, i * share.padded_columns, i * g.group_columns) for i in range(g.groups)
    ]
    gather: dict[str, str | int | float] = {} if g.is_matrix else {"GATHER": 1}
    return _product(call, share, g, weights, _padded_bias(bias, share), slices, gather)


def dense(call: Call) -> list[Step] | None:
    """Lower FULLY_CONNECTED: dots along the depth for a few rows, else tiles."""
    x, weights, bias = call.input(0), call.input(1), _bias(call)
    columns, depth = weights.shape
    rows = x.spec.size // depth
    if depth % _VECTOR:
        return None
    if rows <= _FEW_ROWS and depth >= _LEAST_DEPTH:
        return _dots(call, rows, columns, depth)
    share = local_share(call.target, 1, rows, columns, depth)
    if share is None or not _is_constant(bias):
        return None
    right: dict[str, str | int | float] = {} if weights.data is not None else {"RIGHT_COLUMNS": 1}
    values = weights if weights.data is None else _packed(call, weights.data[np.newaxis], share)
    window = matrix(rows, depth, columns)
    return _product(call, share, window, values, _padded_bias(bias, share), [Slice(0, 0, 0, 0)], right)


def batch_matmul(call: Call) -> list[Step] | None:
    """Lower BATCH_MATMUL, of which either operand may be broadcast, and the second one transposed."""
    x, y, out = call.input(0), call.input(1), call.outputs[0]
    options = call.options
    batch, (rows, columns), depth = out.shape[:-2], out.shape[-2:], x.shape[-1]
    constant = y.data is not None
    if options.adj_x or depth % _VECTOR or not (constant or options.adj_y or columns % _VECTOR == 0):
        return None
    x_batch, y_batch = x.shape[:-2], y.shape[:-2]
    if np.prod(y_batch) == 1:  # one y for all: the rows of all products are rows of one
        batch, x_batch, y_batch, rows = (), (), (), out.spec.size // columns
    count = int(np.prod(batch))
    share = local_share(call.target, count, rows, columns, depth)
    if share is None:
        return None
    values: Arg = y
    right: dict[str, str | int | float] = {"RIGHT_COLUMNS" if options.adj_y else "RIGHT_ROWS": 1}
    matrix_size = depth * columns
    if y.data is not None:
        matrices = y.data if options.adj_y else y.data.swapaxes(-1, -2)
        values, right = _packed(call, matrices.reshape(-1, columns, depth), share), {}
        matrix_size = share.padded_depth * share.padded_columns
    begins = zip(_begins(x_batch, batch, rows * depth), _begins(y_batch, batch, matrix_size), strict=True)
    slices = [Slice(a, b, 0, i * rows * columns) for i, (a, b) in enumerate(begins)]
    return _product(call, share, matrix(rows, depth, columns), values, _padded_bias(None, share), slices, right)


def _product(
    call: Call,
    share: LocalShare,
    window: Geometry,
    weights: Arg,
    bias: Const,
    slices: Sequence[Slice],
    layout: dict[str, str | int | float],
) -> list[Step]:
    """The launch of product_local.cl, and the one that adds up the parts of the depth, if there are some."""
    out, residual = call.outputs[0], call.residual
    aligned = all(n % _VECTOR == 0 for n in (out.step, *(one.out for one in slices)))
    sizes = (share.rows, share.columns, share.depth, share.padded_depth, share.parts, share.part_depth)
    shape = LocalProduct(window, *sizes, out.step, int(residual is not None), int(aligned))
    defines = share.defines | layout | _halves(weights) | call.activation.defines
    begins, added = tuple(slices), bias if residual is None else residual
    flops = 2 * len(slices) * share.rows * share.columns * share.depth
    local, bounds = share.tile.local, call.activation.bounds
    if share.parts == 1:
        args: tuple[Arg, ...] = (call.input(0), weights, bias, added, out, begins, shape, local, *bounds)
        return [share.product(args, defines, flops)]
    parts = Scratch(4 * share.parts * len(slices) * share.rows * share.padded_columns)
    product = share.product((call.input(0), weights, bias, bias, parts, begins, shape, local, *bounds), defines, flops)
    counts = (np.int32(len(slices)), np.int32(share.padded_columns))
    return [product, share.sums((parts, bias, added, out, begins, shape, *counts, *bounds), defines)]


def _dots(call: Call, rows: int, columns: int, depth: int) -> list[Step] | None:
    """The launch of matvec.cl."""
    weights, bias, out = call.input(1), _bias(call), call.outputs[0]
    items = items_for(call.target, depth, _VECTOR)
    local = Local(4 * rows * _DOTS * items)
    if not has_room(call.target, items, local):
        return None
    nothing = Const(np.zeros(1, np.float32))
    halved = weights.data is not None and call.target.half_weights
    values: Arg = Const(in_halves(weights.value)) if halved else weights
    flags = (np.int32(bias is not None), np.int32(call.residual is not None))
    operands: tuple[Arg, ...] = (call.input(0), values, bias or nothing, call.residual or nothing, out, local)
    sizes = (np.int32(depth), np.int32(columns), np.int32(out.step), *flags)
    defines = {"ROWS": rows, "COLUMNS": _DOTS} | _halves(values) | call.activation.defines
    args = (*operands, *sizes, *call.activation.bounds)
    return [groups("matvec", "matvec", -(-columns // _DOTS), items, args, defines, 2 * rows * columns * depth)]


def _packed(call: Call, matrices: Array, share: LocalShare) -> Const:
    """Matrices [.., columns, depth] in panels as wide as a tile, the depth in whole steps."""
    more = share.padded_depth - share.depth
    padded = np.pad(matrices, ((0, 0), (0, 0), (0, more)))
    return Const(panels(padded, share.tile.columns, halves=call.target.half_weights))


def _halves(weights: Arg) -> dict[str, str | int | float]:
    """Return the macro for weights that are halves."""
    return Packed(weights).defines


def _padded_bias(bias: Operand | None, share: LocalShare) -> Const:
    values = np.zeros((share.slices, share.columns), np.float32) if bias is None else bias.value
    split = np.reshape(values, (-1, share.columns)).astype(np.float32)
    return Const(np.pad(split, ((0, 0), (0, share.padded_columns - share.columns))))


def _is_constant(bias: Operand | None) -> bool:
    return bias is None or bias.data is not None


def _bias(call: Call) -> Operand | None:
    return call.inputs[2] if len(call.inputs) > 2 else None


def _begins(own: Sequence[int], batch: Sequence[int], size: int) -> list[int]:
    """Return where the matrix of an operand begins for every product, the operand's batch broadcast to ``batch``."""
    indices = np.arange(np.prod(own, dtype=np.int64)).reshape(own) * size
    return [int(i) for i in np.broadcast_to(indices, batch).reshape(-1)]
