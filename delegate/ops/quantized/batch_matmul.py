"""BATCH_MATMUL of quantized bytes, a product of bytes whose weights are packed first; and of 16-bit elements."""

import math
from collections.abc import Sequence

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Launch, Operand, Refusal, Scratch, Step
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import chunks, flops
from litecl.delegate.kit.strided import Memory, copy, view
from litecl.delegate.matmul.geometry import matrix
from litecl.delegate.matmul.patches import Groups, Patches, patches
from litecl.delegate.ops.quantized import batch_matmul_16
from litecl.delegate.quantized.integer_product import QuantizedConvolution
from litecl.delegate.quantized.integers import StageRow, bounds_of, per_tensor, scale, unsigned_zero, zero_point
from litecl.interpreter.arithmetic import fixed_point
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.schema import TensorType

_BYTES, _WORDS = (TensorType.INT8,), (TensorType.INT16,)
_MOST_DEPTH = 1 << 15  # products of two differences of bytes whose sum fits an int


def _claim(options: BatchMatMulOptions, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    x, y, out = claims.given(inputs, 0), claims.given(inputs, 1), outputs[0]
    types = _WORDS if x.type == TensorType.INT16 else _BYTES
    if refusal := claims.typed((x, y, out), types, quantized=True) or per_tensor(x, y, out):
        return refusal
    batches = [math.prod(spec.static_shape[:-2]) for spec in (x, y)]
    if x.static_shape[:-2] != y.static_shape[:-2] and 1 not in batches:
        return Refusal("batches that broadcast against each other")
    if types is _WORDS:
        return batch_matmul_16.claim(options, x, y, out)
    deep = x.static_shape[-2 if options.adj_x else -1] >= _MOST_DEPTH
    return Refusal(f"sums of {_MOST_DEPTH} products or more") if deep else None


def _lower(call: Call) -> list[Step]:
    if call.outputs[0].spec.type == TensorType.INT16:
        return [*batch_matmul_16.lower(call)]
    options: BatchMatMulOptions = call.options
    x, y, out = call.input(0), call.input(1), call.outputs[0]
    rows, columns = out.shape[-2:]
    depth = x.shape[-2 if options.adj_x else -1]
    products, alone = math.prod(y.shape[:-2]), math.prod(x.shape[:-2]) == 1
    if products == 1:  # all products share y: their rows are rows of one product
        rows = out.spec.size // columns
    groups = Groups(products, 0 if alone else rows * depth, rows * columns)
    left, steps = _rows_first(call)
    work = patches("quantized_conv_2d", matrix(rows, depth, columns), call.target, groups)
    x_zero, row_factor = unsigned_zero(x.spec), -zero_point(y.spec)
    packed, stage, packing = _packed(call, work, x_zero)
    shape = QuantizedConvolution(work.gather(x.spec.size), x_zero, bounds_of(options, out.spec), row_factor)
    operands: tuple[Arg, ...] = (left, packed, stage, work.scratch, out, shape)
    launch = work.grid.launch(
        "quantized_conv_2d",
        operands,
        work.tile.defines | {"T": claims.C_TYPES[out.spec.type]} | ({"ROW_SUMS": 1} if row_factor else {}),
        flops(products, rows, columns, depth),
    )
    return [*steps, packing, launch]


def _rows_first(call: Call) -> tuple[Memory, list[Launch]]:
    """Return ``x`` with its depth innermost."""
    x: Operand = call.input(0)
    if not call.options.adj_x:
        return x, []
    transposed = Scratch(x.spec.size)
    at = np.swapaxes(view(x.shape), -1, -2)
    return transposed, [copy(x, at, transposed, view(at.shape), claims.bits(x.spec), call.target)]


def _packed(call: Call, work: Patches, x_zero: int) -> tuple[Scratch, Scratch, Launch]:
    """Return ``y`` as weights, their stage, and the launch that computes both."""
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
    args: tuple[Arg, ...] = (y, packed, stage, factor, *share.args, *(np.int32(size) for size in sizes))
    return packed, stage, share.launch("pack_columns", args, {"T": claims.C_TYPES[y.spec.type]})


def _scale(spec: TensorSpec) -> float:
    return float(fixed_point.scale_of(spec))


CL_OPS = (ClOp(BATCH_MATMUL, claim=_claim, lower=_lower),)
