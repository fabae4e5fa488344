"""BATCH_MATMUL: products of the last two dimensions, the others broadcast."""

from dataclasses import dataclass

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.ops import hybrid, require, types


@dataclass(frozen=True)
class BatchMatMulOptions:
    adj_x: bool = False
    adj_y: bool = False
    asymmetric_quantize_inputs: bool = False


def output_shape(options: BatchMatMulOptions, x: Shape, y: Shape) -> Shape:
    """The shape of the product."""
    rows, depth = _last_two(x, options.adj_x)
    depth_y, columns = _last_two(y, options.adj_y)
    if depth != depth_y:
        raise ShapeError(f"BATCH_MATMUL: expected equal inner dimensions, got {list(x)} and {list(y)}")
    try:
        batch = np.broadcast_shapes(x[:-2], y[:-2])
    except ValueError as error:
        raise ShapeError(f"BATCH_MATMUL: expected batches that broadcast, got {list(x)} and {list(y)}") from error
    return (*batch, rows, columns)


def _last_two(shape: Shape, adjoint: bool) -> tuple[int, int]:
    return (shape[-1], shape[-2]) if adjoint else (shape[-2], shape[-1])


def _infer(options: BatchMatMulOptions, inputs: Specs) -> list[TensorSpec]:
    x, y = require.present("BATCH_MATMUL", inputs, 2)
    require.types("BATCH_MATMUL", x, types.FLOAT)
    require.types("BATCH_MATMUL", y, hybrid.WEIGHTS)
    for spec in (x, y):
        require.rank("BATCH_MATMUL", spec, at_least=2, at_most=5)
    return [TensorSpec(x.type, output_shape(options, x.static_shape, y.static_shape))]


def _run(options: BatchMatMulOptions, inputs: Inputs) -> list[Array]:
    x, y = operands(options, inputs)
    return [np.matmul(x, y)]


def operands(options: BatchMatMulOptions, inputs: Inputs) -> tuple[Array, Array]:
    """The two factors, [..., rows, depth] and [..., depth, columns]."""
    x, y = require.arrays(inputs, 2)
    return x.swapaxes(-1, -2) if options.adj_x else x, y.swapaxes(-1, -2) if options.adj_y else y


def _run_scaled(options: BatchMatMulOptions, inputs: Inputs, scales: hybrid.Scales) -> list[Array]:
    x, y = operands(options, inputs)
    rows, scale = hybrid.quantize(x.reshape(-1, x.shape[-1]), options.asymmetric_quantize_inputs)
    products = np.matmul(rows.reshape(x.shape), hybrid.integers(y)).astype(np.float32)
    return [products * scale.reshape(*x.shape[:-1], 1) * scales[1]]


BATCH_MATMUL = Op(
    "BATCH_MATMUL",
    versions=range(1, 5),
    options=BatchMatMulOptions,
    infer=_infer,
    run=_run,
    bind=hybrid.bind("BATCH_MATMUL", _run_scaled),
)
