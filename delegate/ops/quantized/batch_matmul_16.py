"""BATCH_MATMUL on 16-bit elements: sums of 64 bits, which float64 represents exactly."""

import math

import numpy as np

from litecl.delegate.cl_op import Arg, Call, Const, Launch, Record, Refusal, Scratch
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import chunks, elements, flops
from litecl.delegate.kit.strided import Memory
from litecl.delegate.quantized.integers import WORDS, Bounds, Weights, zero_point
from litecl.delegate.quantized.matrices import count, matrices
from litecl.interpreter.arithmetic import fixed_point
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.kit.types import limits
from litecl.interpreter.ops.batch_matmul import BatchMatMulOptions
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class WordProducts(Record):
    """Arguments of quantized_batch_matmul_16.cl. x_step, y_step: elements from one product to the next, 0 if shared."""

    rows: int
    depth: int
    columns: int
    x_step: int
    y_step: int
    bounds: Bounds


def claim(
    options: BatchMatMulOptions, x: TensorSpec, y: TensorSpec, out: TensorSpec, weights: Weights | None
) -> Refusal | None:
    """Refuse zero points, and sums that float64 cannot multiply exactly by a 15-bit factor.

    weights: the second factor, if it is packed ahead.
    """
    if any(zero_point(spec) for spec in (x, y, out)):
        return Refusal("16-bit elements with zero points")
    depth = x.static_shape[-2 if options.adj_x else -1]
    fits = (weights or _largest(x, y, out, depth)).fits_float64
    return None if fits else Refusal("sums of more than 38 bits")


def lower(call: Call) -> list[Launch]:
    """Return the launches: operands whose last two dimensions are swapped, and bytes, are copied first."""
    options: BatchMatMulOptions = call.options
    x, y, out = call.input(0), call.input(1), call.outputs[0]
    rows, columns = out.shape[-2:]
    depth = x.shape[-2 if options.adj_x else -1]
    products = math.prod(out.shape[:-2])
    left, before = matrices(call, x, swapped=options.adj_x)
    right, between = matrices(call, y, swapped=options.adj_y)
    if y.spec.type != TensorType.INT16:
        right, widening = _widened(call, right)
        between = [*between, widening]
    x_step, y_step = (0 if count(o.shape) == 1 else size for o, size in ((x, rows * depth), (y, depth * columns)))
    width = call.target.vector_width
    stage = _largest(x.spec, y.spec, out.spec, depth, width).wide_stage(width, width, real=False)
    share = chunks("quantized_batch_matmul_16", products * rows, call.target, work=columns * depth)
    shape = WordProducts(rows, depth, columns, x_step, y_step, WORDS)
    args: tuple[Arg, ...] = (left, right, Const(stage.fields), out, shape, *share.args)
    defines: dict[str, str | int | float] = {**stage.defines, "T": claims.C_TYPES[out.spec.type], "WORDS": 1}
    work = flops(products, rows, columns, depth)
    return [*before, *between, share.launch("quantized_batch_matmul_16", args, defines, work)]


def _widened(call: Call, of_bytes: Memory) -> tuple[Scratch, Launch]:
    """Return bytes as 16-bit elements."""
    words = Scratch(2 * of_bytes.size_bytes)
    share = elements("cast", of_bytes.size_bytes, call.target)
    args: tuple[Arg, ...] = (of_bytes, words, *share.args, np.float32(0), np.int16(0), np.int16(0))
    return words, share.launch("cast", args, {"T": "char", "R": "short", "OP": "CONVERT_TO"})


def _largest(x: TensorSpec, y: TensorSpec, out: TensorSpec, depth: int, columns: int = 1) -> Weights:
    """Return columns of weights of the largest magnitude, and so with the largest sums, and the factor of all."""
    product = np.float32(fixed_point.scale_of(x)) * np.float32(fixed_point.scale_of(y))  # in float32, as in TFLite
    factor = float(product) / float(fixed_point.scale_of(out))
    values, bias = np.full((1, columns, depth), limits(y.dtype)[0], np.int16), np.zeros((1, columns), np.int64)
    return Weights(values, 0, bias, np.full((1, columns), factor))
