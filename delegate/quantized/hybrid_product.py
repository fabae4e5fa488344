"""The launches of products of floats and integer weights: quantized rows, and kernels_cl/hybrid_conv_2d.cl."""

from enum import IntEnum

import numpy as np

from litecl.delegate.cl_op import Activation, Arg, Const, Launch, Operand, Record, Scratch, Target
from litecl.delegate.matmul.geometry import Geometry
from litecl.delegate.matmul.patches import Gather, patches
from litecl.delegate.quantized.hybrid import integers, quantized_rows
from litecl.delegate.quantized.integers import in_rows, packed, stored_bits
from litecl.interpreter.arithmetic.hybrid import scales_of
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec


@dataclass(frozen=True)
class HybridConvolution(Record):
    """Arguments of hybrid_conv_2d.cl.

    image_pixels: pixels in a row that was quantized as a whole. blocks, block_bytes: of a row; each block
    has its own scale.
    """

    gather: Gather
    image_pixels: int
    blocks: int
    block_bytes: int


class HybridRow(IntEnum):
    """Rows of a stage: the sum of a column's weights, their scale and the bias."""

    SUM = 0
    SCALE = 1
    BIAS = 2


@dataclass(frozen=True, eq=False)
class HybridWeights:
    """Signed bytes [columns, depth] that fit in ``bits``, scales, [columns] or [columns, blocks], and a bias."""

    values: Array
    scales: Array
    bias: Array
    bits: int = 8

    @property
    def blocks(self) -> int:
        """Return how many blocks of the depth have their own scales; 0 without such scales."""
        return self.scales.shape[1] if self.scales.ndim > 1 else 0

    def packed(self, groups: int, panel: int, runs: int) -> Array:
        """Return the values as kernels read them."""
        values = self.values.reshape(groups, -1, self.values.shape[1])
        return packed(values, panel, self.blocks or runs, self.bits)

    def block_scales(self, panel: int) -> Array:
        """Return the blocks' scales as [columns / panel, blocks, panel]; fp16 scales stay fp16."""
        columns = len(self.values)
        padded = np.zeros((-(-columns // panel) * panel, self.blocks), self.scales.dtype)
        padded[:columns] = self.scales
        return np.ascontiguousarray(padded.reshape(-1, panel, self.blocks).swapaxes(1, 2))

    def stage(self, groups: int, panel: int, width: int) -> Array:
        """Return the stage [groups, columns / width, HybridRow, width], columns past the last as zeros."""
        columns = len(self.values) // groups
        table = np.zeros((len(HybridRow), groups, -(-columns // panel) * panel), np.int32)
        sums, scales = self.values.sum(axis=1, dtype=np.int32), self.scales
        if self.blocks:
            parts = self.values.reshape(columns, self.blocks, -1).sum(axis=2, dtype=np.int64)
            sums, scales = _bits((parts * self.scales.astype(np.float64)).sum(axis=1)), np.ones(columns)
        for row, field in zip(HybridRow, (sums, _bits(scales), _bits(self.bias)), strict=True):
            table[row, :, :columns] = field.reshape(groups, columns)
        return np.ascontiguousarray(table.reshape(len(HybridRow), groups, -1, width).transpose(1, 2, 0, 3))


def _bits(values: Array) -> Array:
    """Return the bits of floats as integers."""
    return np.ascontiguousarray(values, np.float32).view(np.int32)


def is_blockwise(weights: TensorSpec) -> bool:
    """Return whether weights have a scale for every block."""
    return weights.quantization is not None and bool(weights.quantization.block_size)


def weights_of(weights: Operand, bias: Array) -> HybridWeights:
    """Return the weights [columns, ..] of an operator."""
    columns = weights.shape[0]
    values, quantization = integers(weights).reshape(columns, -1), weights.spec.quantization
    bits = stored_bits(weights.spec.type, values.shape[1])
    if quantization is not None and quantization.block_size:
        return HybridWeights(values, quantization.scale.reshape(columns, -1), bias, bits)
    return HybridWeights(values, np.broadcast_to(scales_of(weights.spec), columns), bias, bits)


def hybrid_product(
    x: Operand,
    g: Geometry,
    rows: int,
    weights: HybridWeights,
    out: Operand | Scratch,
    target: Target,
    activation: Activation,
    residual: Operand | Scratch | None = None,
    *,
    kind: int,
) -> list[Launch]:
    """Return the launches for an input quantized as ``rows`` rows. kind: a ``RowKind``."""
    quantized, launches = quantized_rows(x, rows, target, kind)
    blocks = weights.blocks
    work = patches("hybrid_conv_2d", g, target, across=weights.bits == 8 and not blocks)
    panel, width = work.tile.panel, target.vector_width
    across, stage = work.tile.across, Const(weights.stage(g.groups, panel, width))
    values = in_rows(weights.values[np.newaxis], width) if across else weights.packed(g.groups, panel, work.runs)
    scales = Const(weights.block_scales(panel)) if blocks else stage
    defines = work.defines | work.signed_row(weights.values, weights.bits, target) | activation.defines | {"T": "uchar"}
    if weights.bits < 8:
        defines["WEIGHT_BITS"] = weights.bits
    if blocks:
        defines["BLOCK_SCALES"] = 8 * weights.scales.dtype.itemsize
    operands: tuple[Arg, ...] = (
        *(quantized.values, quantized.zeros, quantized.scales),
        *(Const(values), stage, scales, work.scratch),
        stage if residual is None else residual,
        out,
        HybridConvolution(work.gather(x.spec.size), g.pixels // rows, blocks, g.depth // max(1, blocks)),
    )
    product = work.grid.launch(
        "hybrid_conv_2d",
        (*operands, np.int32(residual is not None), *activation.bounds),
        defines,
        g.flops,
    )
    return [*launches, product]
