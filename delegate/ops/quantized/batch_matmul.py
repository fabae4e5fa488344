"""BATCH_MATMUL of quantized tensors: by constant bytes, by bytes that are packed first, and by 16-bit elements."""

import math
from collections.abc import Sequence

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Launch, Refusal, Scratch, Step
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import chunks, flops
from litecl.delegate.kit.strided import Memory
from litecl.delegate.matmul.geometry import matrix
from litecl.delegate.matmul.patches import Groups, Patches, patches
from litecl.delegate.ops.quantized import batch_matmul_16
from litecl.delegate.ops.quantized.conv_2d import convolution
from litecl.delegate.quantized.integer_product import QuantizedConvolution
from litecl.delegate.quantized.integers import (
    StageRow,
    Weights,
    bounds_of,
    per_tensor,
    scale,
    unsigned_zero,
    zero_point,
)
from litecl.delegate.quantized.matrices import count, matrices
from litecl.interpreter.arithmetic import fixed_point
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.schema import TensorType

_INT8, _INT16 = TensorType.INT8, TensorType.INT16
_MOST_DEPTH = 1 << 15  # products of two differences of bytes whose sum fits an int
_MOST_REPEATED = 1 << 26  # bytes of a constant whose matrices are repeated for the products


def _claim(options: BatchMatMulOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    x, y, out = claims.given(inputs, 0), claims.given(inputs, 1), outputs[0]
    factors = (_INT8,) if x.type == _INT8 else (_INT8, _INT16)
    refusal = (
        claims.typed((x,), (_INT8, _INT16), quantized=True)
        or claims.typed((out,), (x.type,), quantized=True)
        or claims.typed((y,), factors, quantized=True)
        or per_tensor(x, out)
    )
    if refusal:
        return refusal
    if refusal := _claim_constant(options, y, out) if _is_constant(y) else per_tensor(y):
        return refusal
    if x.type == _INT16:
        return batch_matmul_16.claim(options, x, y, out, _weights(options, x, y, out) if _is_constant(y) else None)
    deep = x.static_shape[-2 if options.adj_x else -1] >= _MOST_DEPTH
    return Refusal(f"sums of {_MOST_DEPTH} products or more") if deep else None


def _is_constant(y: TensorSpec) -> bool:
    """Return whether a factor is packed ahead."""
    return y.data is not None and y.type == _INT8


def _claim_constant(options: BatchMatMulOptions, y: TensorSpec, out: TensorSpec) -> Refusal | None:
    """Refuse scales other than per tensor or column, and matrices that would be repeated too often."""
    columns = len(y.static_shape) - (2 if options.adj_y else 1)
    how = y.quantization
    if how is None or (how.scale.size > 1 and (how.quantized_dimension, how.block_size) != (columns, 0)):
        return Refusal("scales along another axis than that of columns")
    repeated = count(y.static_shape) > 1 and count(out.static_shape) * y.size // count(y.static_shape) > _MOST_REPEATED
    return Refusal("a constant that is repeated for many products") if repeated else None


def _lower(call: Call) -> list[Step]:
    if _is_constant(call.input(1).spec):
        return _by_constant(call)
    return [*batch_matmul_16.lower(call)] if call.outputs[0].spec.type == _INT16 else _by_bytes(call)


def _by_constant(call: Call) -> list[Step]:
    x, y, out = call.input(0), call.input(1), call.outputs[0]
    weights = _weights(call.options, x.spec, y.spec, out.spec)
    products, columns, depth = weights.values.shape
    left, before = matrices(call, x, swapped=call.options.adj_x)
    if products == 1:  # all products share y: their rows are rows of one product
        g, groups = matrix(out.spec.size // columns, depth, columns), None
    else:
        rows = out.shape[-2]
        step = 0 if count(x.shape) == 1 else rows * depth * x.spec.dtype.itemsize
        g, groups = matrix(rows, depth, columns), Groups(products, step, rows * columns)
    return [*before, convolution(call, g, weights, source=left, groups=groups)]


def _weights(options: BatchMatMulOptions, x: TensorSpec, y: TensorSpec, out: TensorSpec) -> Weights:
    """Return a constant as the weights of one product, if all share it, or of each."""
    assert y.data is not None
    columns_first = y.data if options.adj_y else y.data.swapaxes(-1, -2)
    if count(y.static_shape) > 1:
        columns_first = np.broadcast_to(columns_first, (*out.static_shape[:-2], *columns_first.shape[-2:]))
    values = np.ascontiguousarray(columns_first.reshape(-1, *columns_first.shape[-2:]))
    scales = fixed_point.scales_of(y)
    products = (fixed_point.scale_of(x) * scales).astype(np.float32).astype(np.float64)  # as in TFLite
    bias = np.zeros(values.shape[:2], np.int64)
    factors = np.broadcast_to(products / fixed_point.scale_of(out), bias.shape)
    return Weights(values, -zero_point(y) if scales.size == 1 else 0, bias, factors)


def _by_bytes(call: Call) -> list[Step]:
    options: BatchMatMulOptions = call.options
    x, y, out = call.input(0), call.input(1), call.outputs[0]
    rows, columns = out.shape[-2:]
    depth = x.shape[-2 if options.adj_x else -1]
    left, before = matrices(call, x, swapped=options.adj_x)
    right, between = matrices(call, y, swapped=False)
    products = 1 if count(y.shape) == 1 else math.prod(out.shape[:-2])
    if products == 1:  # all products share y: their rows are rows of one product
        rows = out.spec.size // columns
    groups = Groups(products, 0 if count(x.shape) == 1 else rows * depth, rows * columns)
    work = patches("quantized_conv_2d", matrix(rows, depth, columns), call.target, groups)
    x_zero, row_factor = unsigned_zero(x.spec), -zero_point(y.spec)
    packed, stage, packing = _packed(call, right, work, x_zero)
    shape = QuantizedConvolution(work.gather(left.size_bytes), x_zero, bounds_of(options, out.spec), row_factor)
    operands: tuple[Arg, ...] = (left, packed, stage, work.scratch, out, shape)
    launch = work.grid.launch(
        "quantized_conv_2d",
        operands,
        work.tile.defines | {"T": claims.C_TYPES[out.spec.type]} | ({"ROW_SUMS": 1} if row_factor else {}),
        flops(products, rows, columns, depth),
    )
    return [*before, *between, packing, launch]


def _packed(call: Call, right: Memory, work: Patches, x_zero: int) -> tuple[Scratch, Scratch, Launch]:
    """Return the matrices ``right`` as weights, their stage, and the launch that computes both."""
    x, y, out, g = call.input(0).spec, call.input(1), call.outputs[0].spec, work.geometry
    width, depth, columns = call.target.vector_width, g.channels, g.columns
    panel = work.tile.panel // width
    vectors, row_bytes = -(-columns // work.tile.panel) * panel, -(-depth // 4) * 4
    packed, stage = (Scratch(work.groups.count * vectors * width * size) for size in (row_bytes, 4 * len(StageRow)))
    products = np.float32(_scale(x)) * np.float32(_scale(y.spec))  # in float32, as in TFLite
    factor = scale(float(products) / _scale(out))
    row_step, column_step = (1, depth) if call.options.adj_y else (columns, 1)
    added = depth * x_zero * zero_point(y.spec)
    share = chunks("pack_columns", work.groups.count * vectors, call.target, work=width * depth)
    sizes = (depth, columns, row_step, column_step, row_bytes, vectors, panel, x_zero, added)
    args: tuple[Arg, ...] = (right, packed, stage, factor, *share.args, *(np.int32(size) for size in sizes))
    return packed, stage, share.launch("pack_columns", args, {"T": claims.C_TYPES[y.spec.type]})


def _scale(spec: TensorSpec) -> float:
    return float(fixed_point.scale_of(spec))


CL_OPS = (ClOp(BATCH_MATMUL, claim=_claim, lower=_lower),)
