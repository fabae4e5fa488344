"""Other products of floats with integer weights: the float operator, on rows quantized and dequantized.

Such products differ from scaled products of integers only in the last bits.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Lowering, Pads, Refusal, Step
from litecl.delegate.kit import claims
from litecl.delegate.ops import batch_matmul, depthwise_conv_2d, pad, transpose_conv
from litecl.delegate.quantized import hybrid
from litecl.interpreter.arithmetic.hybrid import RowKind
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.kit.window import fit
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV
from litecl.interpreter.schema import Padding

_FLOATS = {cl_op.op: cl_op for table in (batch_matmul, depthwise_conv_2d, transpose_conv) for cl_op in table.CL_OPS}


def _cl_op(
    of_reals: ClOp, by_reals: Lowering, x_position: int, rows: Callable[[Any, TensorSpec], tuple[int, int]]
) -> ClOp:
    """Return the float operator on quantized and dequantized inputs.

    by_reals: the lowering to use. rows: the number of rows, and their ``RowKind``.
    """

    def claim(options: Any, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
        if refusal := hybrid.claim(inputs):
            return refusal
        specs = [*inputs]
        specs[1] = TensorSpec(outputs[0].type, claims.given(inputs, 1).shape, data=claims.given(inputs, 1).data)
        return of_reals.claim(options, specs, outputs)

    def lower(call: Call) -> list[Step]:
        x = call.input(x_position)
        count, kind = rows(call.options, x.spec)
        rounded, launches = hybrid.rounded_rows(x, count, call.target, kind)
        inputs = [*call.inputs]
        inputs[1], inputs[x_position] = hybrid.dequantized(call.input(1)), rounded
        return [*launches, *by_reals(replace(call, inputs=inputs))]

    # Only dense rows can be quantized.
    return replace(of_reals, claim=claim, lower=lower, reads_rows=False)


def _images(options: Any, x: TensorSpec) -> tuple[int, int]:
    return x.static_shape[0], RowKind.ASYMMETRIC


def _lines(options: BatchMatMulOptions, x: TensorSpec) -> tuple[int, int]:
    return x.size // x.static_shape[-1], options.asymmetric_quantize_inputs


def _matmul() -> ClOp:
    cl_op = _cl_op(_FLOATS[BATCH_MATMUL], batch_matmul.lower, 0, _lines)

    def claim(options: BatchMatMulOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
        if options.adj_x:
            return Refusal("the rows that are quantized are columns of the input")
        return cl_op.claim(options, inputs, outputs)

    return replace(cl_op, claim=claim)


def _depthwise() -> ClOp:
    cl_op = _cl_op(_FLOATS[DEPTHWISE_CONV_2D], _FLOATS[DEPTHWISE_CONV_2D].steps, 0, _images)

    def lower(call: Call) -> list[Step]:
        """Make borders part of the image if a window sees nothing else: a NaN in an image must make all of it NaN."""
        borders = _borders(call)
        if not borders:
            return cl_op.steps(call)
        wider, steps = pad.padded(call, borders)
        valid = replace(call.options, padding=Padding.VALID)
        inputs = [wider, *call.inputs[1:]]
        return [*steps, *cl_op.steps(replace(call, options=valid, inputs=inputs, pads=Pads()))]

    return replace(cl_op, lower=lower)


def _borders(call: Call) -> list[tuple[int, int]]:
    """Return the zeros before and after rows and columns; nothing if every window sees more than zeros."""
    options, pads, lengths = call.options, call.pads, call.input(0).shape[1:3]
    steps = (options.stride_h, options.dilation_h_factor), (options.stride_w, options.dilation_w_factor)
    borders, alone = [], False
    for length, size, step, own in zip(
        lengths, call.input(1).shape[1:3], steps, ((pads.top, pads.bottom), (pads.left, pads.right)), strict=True
    ):
        window = fit(options.padding, length + sum(own), size, *step)
        before = own[0] + window.before
        taps = np.arange(window.output)[:, None] * window.stride + np.arange(size) * window.dilation - before
        alone |= bool(((taps < 0) | (taps >= length)).all(axis=1).any())
        borders.append((before, own[1] + window.after))
    return borders if alone else []


CL_OPS = (
    _matmul(),
    _depthwise(),
    _cl_op(_FLOATS[TRANSPOSE_CONV], _FLOATS[TRANSPOSE_CONV].steps, 2, _images),
)
