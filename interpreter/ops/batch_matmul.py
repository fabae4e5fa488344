"""BATCH_MATMUL: products of the last two dimensions, the others broadcast."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from litecl.interpreter.arithmetic import exact, halves, hybrid, rescale, weighted
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError, UnsupportedOp
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.integers import PLAIN
from litecl.interpreter.kit import lowest, require
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.schema import ActivationFunctionType, TensorType


@dataclass(frozen=True)
class BatchMatMulOptions:
    adj_x: bool = False
    adj_y: bool = False
    asymmetric_quantize_inputs: bool = False


def output_shape(options: BatchMatMulOptions, x: Shape, y: Shape) -> Shape:
    """Return the shape of the product."""
    rows, depth = _last_two(x, options.adj_x)
    depth_y, columns = _last_two(y, options.adj_y)
    if depth != depth_y:
        raise ShapeError(f"expected equal inner dimensions, got {list(x)} and {list(y)}")
    try:
        batch = np.broadcast_shapes(x[:-2], y[:-2])
    except ValueError as error:
        raise ShapeError(f"expected batches that broadcast, got {list(x)} and {list(y)}") from error
    return (*batch, rows, columns)


def _last_two(shape: Shape, adjoint: bool) -> tuple[int, int]:
    return (shape[-1], shape[-2]) if adjoint else (shape[-2], shape[-1])


def _infer(options: BatchMatMulOptions, inputs: Specs) -> list[TensorSpec]:
    x, y = require.present(inputs, 2)
    require.types(x, (TensorType.FLOAT32, TensorType.INT8, TensorType.INT16))
    require.factors(x, y, (*hybrid.WEIGHTS, TensorType.INT16))
    for spec in (x, y):
        require.rank(spec, at_least=2, at_most=5)
    return [TensorSpec(x.type, output_shape(options, x.static_shape, y.static_shape))]


def _run(options: BatchMatMulOptions, inputs: Inputs) -> list[Array]:
    x, y = operands(options, inputs)
    return [np.matmul(x, y)]


def operands(options: BatchMatMulOptions, inputs: Inputs) -> tuple[Array, Array]:
    """Return the two factors, [..., rows, depth] and [..., depth, columns]."""
    x, y = require.arrays(inputs, 2)
    return x.swapaxes(-1, -2) if options.adj_x else x, y.swapaxes(-1, -2) if options.adj_y else y


def _run_scaled(options: BatchMatMulOptions, inputs: Inputs, scales: hybrid.Scales) -> list[Array]:
    x, y = operands(options, inputs)
    rows, scale = hybrid.quantize(x.reshape(-1, x.shape[-1]), options.asymmetric_quantize_inputs)
    products = exact.matmul(rows.reshape(x.shape), hybrid.integers(y), 255 * 128).astype(np.float32)
    return [products * (scale.reshape(*x.shape[:-1], 1) * scales[1].scales)]


_bind_hybrid = hybrid.bind(_run_scaled)


def _bind(options: BatchMatMulOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    (x,) = require.present(inputs, 1)
    if x.type == TensorType.FLOAT32:
        return _bind_hybrid(options, inputs, outputs)
    return integer(options, inputs, outputs[0], coarse=True)


def _sums(options: BatchMatMulOptions, inputs: Inputs) -> list[Array]:
    """Return the unscaled sums of products of plain integers."""
    x, y = operands(options, inputs)
    return [exact.matmul(x, y, exact.reach(x.dtype) * exact.reach(y.dtype)).astype(np.int32)]


def integer(options: BatchMatMulOptions, inputs: Specs, output: TensorSpec, *, coarse: bool) -> Run:
    """Return the kernel of integers. coarse: see ``weighted.scaling``."""
    if output.type == TensorType.INT32:
        return _sums
    x, y = require.present(inputs, 2)
    columns = len(y.static_shape) - (2 if options.adj_y else 1)
    if y.quantization is not None and y.quantization.scale.size > 1 and y.quantization.quantized_dimension != columns:
        raise UnsupportedOp(f"scales along dimension {y.quantization.quantized_dimension}, expected {columns}")
    factor_of = rescale.wide if x.type == TensorType.INT16 else rescale.twice_rounded
    scaling = weighted.scaling(ActivationFunctionType.NONE, x, y, output, factor_of, coarse=coarse)
    largest = scaling.reach * exact.reach(y.dtype, scaling.weights_zero_point)
    last = cache(lambda depth: scaling.rescale(np.array([-largest * depth]), np.array([largest * depth])))

    def run(options: BatchMatMulOptions, inputs: Inputs) -> list[Array]:
        x, y = operands(options, inputs)
        dtype = exact.float_type(largest * x.shape[-1])
        sums = np.matmul(x.astype(dtype) - scaling.zero_point, y.astype(dtype) - scaling.weights_zero_point)
        return [last(x.shape[-1])(sums)]

    return run


BATCH_MATMUL = halves.also(
    Op(
        "BATCH_MATMUL",
        versions=range(1, 5),
        options=BatchMatMulOptions,
        infer=_infer,
        run=_run,
        bind=_bind,
        declared_types=True,
        integers=PLAIN,
        lowest=lowest.integers(2, 3),
    )
)
