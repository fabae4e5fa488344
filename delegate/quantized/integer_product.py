"""The launch of kernels_cl/quantized_conv_2d.cl: quantized activations times constant weights of 8 bits or fewer."""

from dataclasses import replace

import numpy as np

from litecl.delegate.cl_op import Const, Launch, Operand, Record, Scratch, Target
from litecl.delegate.kit.claims import C_TYPES
from litecl.delegate.kit.strided import Memory
from litecl.delegate.matmul.geometry import Geometry
from litecl.delegate.matmul.patches import Gather, Groups, patches
from litecl.delegate.quantized.integers import Bounds, Weights, in_rows
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class QuantizedConvolution(Record):
    """Arguments of quantized_conv_2d.cl.

    x_zero: represents zero in unsigned activations. row_factor: multiplies the sum of a patch.
    """

    gather: Gather
    x_zero: int
    bounds: Bounds
    row_factor: int


def integer_product(
    x: Operand,
    g: Geometry,
    weights: Weights,
    out: Operand | Scratch,
    type_: TensorType,
    x_zero: int,
    bounds: Bounds,
    target: Target,
    *,
    real: bool = False,
    wide: bool = False,
    source: Memory | None = None,
    groups: Groups | None = None,
) -> Launch:
    """Return the launch whose results, of ``type_``, are the sums rescaled and clamped to ``bounds``.

    x_zero: the zero point of activations made unsigned. real: factors are applied in float64. wide: sums have 64 bits.
    source: memory with the elements of ``x`` as rows, if not ``x`` itself. groups: products other than groups of
    channels, each with this geometry.
    """
    operations = g.flops * (groups.count if groups else 1)
    read = source or x
    words = x.spec.type == TensorType.INT16
    if words:
        g, weights = g.words, weights.words
    work = patches("quantized_conv_2d", g, target, groups, words=words, across=weights.bits == 8 and not wide)
    signed = {} if words else work.signed_row(weights.values, weights.bits, target)
    if signed:  # sums then lack 128 times the weights
        weights = replace(weights, bias=weights.bias + 128 * weights.values.sum(axis=2, dtype=np.int64))
    shape = QuantizedConvolution(work.gather(read.size_bytes), x_zero, bounds, weights.factor)
    panel, width = work.tile.panel, target.vector_width
    if wide:
        stage = weights.wide_stage(panel, width, real=real)
    else:
        stage = weights.stage(panel, width, x_zero, bounds, real=real)
    defines = work.defines | signed | stage.defines | {"T": C_TYPES[x.spec.type]}
    packed = in_rows(weights.values, width) if work.tile.across else weights.packed(panel, work.runs)
    if target.byte_pairs and work.tile.rows > 1 and not work.tile.across and weights.bits == 8 and not words:
        defines["PAIRED"] = 1
        packed = np.ascontiguousarray(packed.reshape(*packed.shape[:-1], 2, 2).swapaxes(-2, -3))
    defines |= {} if wide else bounds.defines(type_)
    if type_ != x.spec.type:
        defines["OUT"] = C_TYPES[type_]
    if weights.bits < 8:
        defines["WEIGHT_BITS"] = weights.bits
    if words:
        defines["WORDS"] = 1
    if weights.factor:
        defines["ROW_SUMS"] = 1
    operands = (read, Const(packed), Const(stage.fields), work.scratch, out, shape)
    return work.grid.launch("quantized_conv_2d", operands, defines, operations)
