"""CONV_2D and FULLY_CONNECTED of floats with integer weights: quantized rows, and a product of bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Record, Refusal, Step
from litecl.delegate.kit import claims
from litecl.delegate.matmul.geometry import Geometry, geometry, matrix
from litecl.delegate.matmul.patches import Gather, patches
from litecl.delegate.quantized import hybrid
from litecl.delegate.quantized.integers import packed
from litecl.interpreter.arithmetic.hybrid import scales_of
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import FullyConnectedOptionsWeightsFormat


@dataclass(frozen=True)
class HybridConvolution(Record):
    """Arguments of hybrid_conv_2d.cl. image_pixels: pixels in a row that was quantized as a whole."""

    gather: Gather
    image_pixels: int


class HybridRow(IntEnum):
    """Rows of a stage: the sum of a column's weights, their scale and the bias."""

    SUM = 0
    SCALE = 1
    BIAS = 2


def _claim(
    options: Conv2DOptions | FullyConnectedOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]
) -> Refusal | None:
    x, bias = inputs[0], inputs[2] if len(inputs) > 2 else None
    return (
        claims.typed((x, bias), claims.FLOAT)
        or (Refusal("a bias that is not a constant") if bias is not None and bias.data is None else None)
        or hybrid.claim(inputs)
        or claims.activated(options, outputs[0].type)
    )


def _claim_dense(options: FullyConnectedOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    if options.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return Refusal(f"weights are stored as {options.weights_format.name}")
    return _claim(options, inputs, outputs)


def _lower_conv(call: Call) -> list[Step]:
    x, filter_, _ = call.weighted
    g = geometry(call.options, x.shape, filter_.shape[1:3], filter_.shape[3], call.outputs[0].shape, call.pads)
    scales = scales_of(filter_.spec)
    # Images have their own zero point only if the filters' scales differ.
    return _product(call, g, x.shape[0], asymmetric=bool((scales != scales[0]).any()))


def _lower_dense(call: Call) -> list[Step]:
    columns, depth = call.input(1).shape
    rows = call.input(0).spec.size // depth
    return _product(call, matrix(rows, depth, columns), rows, asymmetric=call.options.asymmetric_quantize_inputs)


def _product(call: Call, g: Geometry, rows: int, *, asymmetric: bool) -> list[Step]:
    """Return the launches for an input that is quantized as ``rows`` rows."""
    x, out = call.input(0), call.outputs[0]
    quantized, launches = hybrid.quantized_rows(x, rows, call.target, asymmetric=asymmetric)
    work = patches("hybrid_conv_2d", g, call.target)
    panel, width = work.tile.panel, call.target.vector_width
    values = hybrid.integers(call.input(1)).reshape(g.groups, g.group_columns, -1)
    stage = Const(_stage(call, values, panel, width))
    operands: tuple[Arg, ...] = (
        *(quantized.values, quantized.zeros, quantized.scales),
        *(Const(packed(values, panel, work.runs)), stage, work.scratch),
        stage if call.residual is None else call.residual,
        out,
        HybridConvolution(work.gather(x.spec.size), g.pixels // rows),
    )
    product = work.grid.launch(
        "hybrid_conv_2d",
        (*operands, np.int32(call.residual is not None), *call.activation.bounds),
        work.tile.defines | call.activation.defines | {"T": "uchar"},
        g.flops,
    )
    return [*launches, product]


def _stage(call: Call, values: Array, panel: int, width: int) -> Array:
    """Return [groups, columns / width, HybridRow, width]."""
    groups, columns, _ = values.shape
    _, weights, bias = call.weighted
    scales = np.broadcast_to(scales_of(weights.spec), groups * columns)
    biases = np.zeros(groups * columns, np.float32) if bias is None else np.ravel(bias.value)
    table = np.zeros((len(HybridRow), groups, -(-columns // panel) * panel), np.int32)
    table[HybridRow.SUM, :, :columns] = values.sum(axis=2, dtype=np.int32)
    for row, floats in ((HybridRow.SCALE, scales), (HybridRow.BIAS, biases)):
        table[row, :, :columns] = np.ascontiguousarray(floats, np.float32).view(np.int32).reshape(groups, columns)
    return np.ascontiguousarray(table.reshape(len(HybridRow), groups, -1, width).transpose(1, 2, 0, 3))


CL_OPS = (
    # The range of a quantized image always has zero in it, so pads change no scale.
    ClOp(
        CONV_2D,
        claim=_claim,
        lower=_lower_conv,
        fuses_activation=True,
        fuses_residual=True,
        fuses_pads=True,
    ),
    ClOp(
        FULLY_CONNECTED,
        claim=_claim_dense,
        lower=_lower_dense,
        fuses_activation=True,
        fuses_residual=True,
    ),
)
