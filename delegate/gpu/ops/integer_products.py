"""CONV_2D and FULLY_CONNECTED of quantized bytes on a GPU: tiles in local memory, four bytes multiplied at a time."""

from dataclasses import replace

import numpy as np

from litecl.delegate.cl_op import Arg, Const, Record, Step
from litecl.delegate.gpu.groups import LocalShare
from litecl.delegate.gpu.local_product import VECTOR, LocalProduct, Slice, left_for_others
from litecl.delegate.gpu.target import GpuCall
from litecl.delegate.gpu.tiles import local_share
from litecl.delegate.kit.claims import BYTES, C_TYPES
from litecl.delegate.matmul.geometry import Geometry
from litecl.delegate.ops.quantized import conv_2d
from litecl.delegate.ops.quantized.conv_2d import conv, is_wide
from litecl.delegate.quantized.integers import Bounds, Weights, bounds_of, packed, unsigned_zero
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array

_INT = 4  # bytes of a row that are multiplied at a time
_LEAST_COLUMNS = 16  # of a group of channels; with fewer, a tile would be mostly empty
_SIGNED = 128  # the offset of unsigned bytes from signed ones


@dataclass(frozen=True)
class LocalBytes(Record):
    """Arguments of quantized_local.cl. product: its lengths are in ints. outside: four elements of x that represent
    zero. factor: added to a value, gives the weight minus its zero point.
    """

    product: LocalProduct
    bounds: Bounds
    outside: int
    factor: int


def convolution(call: GpuCall) -> list[Step] | None:
    """Lower CONV_2D, unless sums have 64 bits."""
    return None if is_wide(call.specs, call.options) else _product(call, *conv(call))


def dense(call: GpuCall) -> list[Step] | None:
    """Lower FULLY_CONNECTED, unless sums have 64 bits."""
    return None if is_wide(call.specs, call.options) else _product(call, *conv_2d.dense(call), real=True)


def _product(call: GpuCall, g: Geometry, weights: Weights, *, real: bool = False) -> list[Step] | None:
    """Lower a product of bytes whose rows are whole ints, and whose weights have 8 bits.

    real: whether factors are applied in float64.
    """
    x, out = call.input(0), call.outputs[0]
    words = (g.channels % _INT, g.group_channels % _INT) == (0, 0)
    if x.spec.type not in BYTES or not words or weights.bits < 8:
        return None
    by_ints = replace(g, channels=g.channels // _INT, group_channels=g.group_channels // _INT)
    sizes = (g.groups, g.pixels, g.group_columns, by_ints.depth)
    share = local_share(call.target, *sizes, reads="rows" if g.is_matrix else "patches", arithmetic="int8")
    if share is None or (g.groups > 1 and g.group_columns < _LEAST_COLUMNS):
        return None
    bounds, zero = bounds_of(call.options, out.spec), unsigned_zero(x.spec) - _SIGNED
    # Past the depth, elements of a row represent zero: weights of 0 ignore them, but the row's sum includes them.
    beyond = (share.padded_depth - share.depth) * _INT * zero * weights.factor
    corrected = replace(weights, bias=weights.bias - beyond)
    stage = corrected.stage(share.tile.columns, call.target.vector_width, zero, bounds, real=real)
    slices = tuple(_slice(by_ints, share, i) for i in range(g.groups))
    aligned = all(n % VECTOR == 0 for n in (g.columns, *(one.out for one in slices)))
    lengths = (share.rows, share.columns, share.depth, share.padded_depth, share.parts, share.part_depth)
    shape = LocalProduct(by_ints, *lengths, g.columns, 0, int(aligned))
    record = LocalBytes(shape, bounds, _four(unsigned_zero(x.spec), flipped=x.spec.dtype == np.int8), weights.factor)
    loaded = () if by_ints.group_channels % VECTOR == by_ints.channels % VECTOR == 0 else ("SINGLE",)
    macros = (*loaded, *(() if g.is_matrix else ("GATHER",)), *(("ROW_SUMS",) if weights.factor else ()))
    defines = {**stage.defines, **dict.fromkeys(macros, 1), "T": C_TYPES[x.spec.type]}
    fields = Const(stage.fields)
    args: tuple[Arg, ...] = (x, Const(_packed(weights.values, share)), fields, out, slices, record, share.tile.local)
    return [share.launch("quantized_local", "quantized_local", (*args, *left_for_others(share)), defines, g.flops)]


def _slice(by_ints: Geometry, share: LocalShare, i: int) -> Slice:
    """Return where the operands of a group of channels begin: in ints, and in elements of the output."""
    panel = share.padded_columns * share.padded_depth
    return Slice(i * by_ints.group_channels, i * panel, i * share.padded_columns, i * by_ints.group_columns)


def _four(byte: int, *, flipped: bool) -> int:
    """Return an int of four equal bytes. flipped: whether to flip their highest bits."""
    value = byte ^ 0x80 if flipped else byte
    return int(np.array([value] * _INT, np.uint8).view(np.int32)[0])


def _packed(values: Array, share: LocalShare) -> Array:
    """Pack weights [groups, columns, depth] in panels as wide as a tile, the depth padded to whole steps."""
    more = share.padded_depth * _INT - values.shape[2]
    return packed(np.pad(values, ((0, 0), (0, 0), (0, more))), share.tile.columns)
