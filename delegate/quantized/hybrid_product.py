"""The launches of products of floats and integer weights: quantized rows, and kernels_cl/hybrid_conv_2d.cl."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from litecl.delegate.cl_op import Activation, Arg, Const, Launch, Operand, Scratch, Target
from litecl.delegate.kit.shared import const
from litecl.delegate.matmul.geometry import Geometry
from litecl.delegate.matmul.patches import Gather, patches
from litecl.delegate.matmul.tile import flops
from litecl.delegate.quantized.hybrid import integers, quantized_rows
from litecl.delegate.quantized.integers import packed
from litecl.interpreter.arithmetic.hybrid import scales_of
from litecl.interpreter.graph import Array


@dataclass(frozen=True)
class HybridConvolution:
    """What hybrid_conv_2d.cl is told of a product. image_pixels: pixels of a row that was quantized as a whole."""

    gather: Gather
    image_pixels: int


class HybridRow(IntEnum):
    """Rows of a stage: the sum of a column's weights, their scale and the bias."""

    SUM = 0
    SCALE = 1
    BIAS = 2


@dataclass(frozen=True, eq=False)
class HybridWeights:
    """Signed bytes [columns, depth], and a scale and a bias of each column."""

    values: Array
    scales: Array
    bias: Array

    def stage(self, groups: int, panel: int, width: int) -> Array:
        """Return [groups, columns / width, HybridRow, width], columns past the last as zeros."""
        columns = len(self.values) // groups
        table = np.zeros((len(HybridRow), groups, -(-columns // panel) * panel), np.int32)
        sums = self.values.sum(axis=1, dtype=np.int32)
        floats = (np.ascontiguousarray(row, np.float32).view(np.int32) for row in (self.scales, self.bias))
        for row, field in zip(HybridRow, (sums, *floats), strict=True):
            table[row, :, :columns] = field.reshape(groups, columns)
        return np.ascontiguousarray(table.reshape(len(HybridRow), groups, -1, width).transpose(1, 2, 0, 3))


def weights_of(weights: Operand, bias: Array) -> HybridWeights:
    """The weights [columns, ..] of an operator."""
    columns = weights.shape[0]
    scales = np.broadcast_to(scales_of(weights.spec), columns)
    return HybridWeights(integers(weights).reshape(columns, -1), scales, bias)


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
    asymmetric: bool,
) -> list[Launch]:
    """Return the launches for an input that is quantized as ``rows`` rows."""
    quantized, launches = quantized_rows(x, rows, target, asymmetric=asymmetric)
    work = patches("hybrid_conv_2d", g, target)
    panel, width = work.tile.panel, target.vector_width
    stage = Const(weights.stage(g.groups, panel, width))
    operands: tuple[Arg, ...] = (
        *(quantized.values, quantized.zeros, quantized.scales),
        *(Const(packed(weights.values.reshape(g.groups, g.group_columns, -1), panel, work.runs)), stage, work.scratch),
        stage if residual is None else residual,
        out,
        const(HybridConvolution(work.gather(x.spec.size), g.pixels // rows)),
    )
    product = work.grid.launch(
        "hybrid_conv_2d",
        (*operands, np.int32(residual is not None), *activation.bounds),
        work.tile.defines | activation.defines | {"T": "uchar"},
        flops(g.pixels, g.columns, g.depth),
    )
    return [*launches, product]
