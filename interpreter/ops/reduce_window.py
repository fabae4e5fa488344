"""REDUCE_WINDOW and STABLEHLO_REDUCE_WINDOW: windows over every dimension of a tensor."""

from collections.abc import Callable, Sequence

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError, UnsupportedOp
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.kit.spread import spread
from litecl.interpreter.op import Context, ControlOp, Inputs, Op, Shapes, Specs
from litecl.interpreter.ops import control

Combine = Callable[[Array, Array], Array]

_FUNCTIONS: dict[int, Combine] = {
    1: np.add,
    2: np.multiply,
    3: np.minimum,
    4: np.maximum,
    5: np.logical_and,
    6: np.logical_or,
}
"""The ufuncs of ReduceWindowFunction."""


@dataclass(frozen=True)
class ReduceWindowOptions:
    reduce_function: int = 0


@dataclass(frozen=True)
class StablehloReduceWindowOptions:
    window_dimensions: tuple[int, ...] = ()
    window_strides: tuple[int, ...] = ()
    base_dilations: tuple[int, ...] = ()
    window_dilations: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    body_subgraph_index: int = 0


def _outputs(shape: Shape, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> tuple[int, ...]:
    """Return the number of windows along each dimension."""
    if min((*sizes, *strides, *dilations), default=1) < 1:
        raise ShapeError("expected windows, strides and dilations of at least 1")
    extents = [(size - 1) * dilation + 1 for size, dilation in zip(sizes, dilations, strict=True)]
    return tuple(
        max(0, (length - extent) // stride + 1) for length, extent, stride in zip(shape, extents, strides, strict=True)
    )


def _reduce(
    x: Array,
    start: Array,
    combine: Combine,
    windows: tuple[Sequence[int], Sequence[int], Sequence[int]],
    shape: tuple[int, ...],
) -> Array:
    """Combine the elements of every window, tap by tap."""
    sizes, strides, dilations = windows
    result = np.full(shape, start.reshape(()), x.dtype)
    for tap in np.ndindex(*sizes):
        limits.tick()
        at = [p * d for p, d in zip(tap, dilations, strict=True)]
        view = tuple(slice(a, a + n * s, s) for a, n, s in zip(at, shape, strides, strict=True))
        result = np.asarray(combine(result, x[view]), x.dtype)
    return result


def _infer(options: ReduceWindowOptions, inputs: Specs) -> list[TensorSpec]:
    x, start, *windows = require.present(inputs, 5)
    require.same_type(x, start)
    if options.reduce_function not in _FUNCTIONS:
        raise UnsupportedOp(f"expected a reduce_function of 1 to 6, got {options.reduce_function}")
    if start.size != 1:
        raise ShapeError(f"expected one initial value, got shape {list(start.static_shape)}")
    rank = require.rank(x)
    for spec in windows:
        if spec.static_shape != (rank,):
            raise ShapeError(f"expected {rank} window sizes, strides and dilations, got {spec.static_shape}")
    values = [require.integers(spec) for spec in windows]
    sizes, strides, dilations = values
    if sizes is None or strides is None or dilations is None:
        return [TensorSpec(x.type, None)]
    return [TensorSpec(x.type, _outputs(x.static_shape, sizes, strides, dilations))]


def _run(options: ReduceWindowOptions, inputs: Inputs) -> list[Array]:
    x, start, *windows = require.arrays(inputs, 5)
    sizes, strides, dilations = (values.tolist() for values in windows)
    shape = _outputs(x.shape, sizes, strides, dilations)
    if 0 in shape:
        return [np.zeros(shape, x.dtype)]
    return [_reduce(x, start, _FUNCTIONS[options.reduce_function], (sizes, strides, dilations), shape)]


def _stablehlo_padded(options: StablehloReduceWindowOptions, shape: Shape) -> tuple[int, ...]:
    rank = len(shape)
    for values, count in ((options.window_dimensions, rank), (options.padding, 2 * rank)):
        if len(values) != count:
            raise ShapeError(f"expected {count} numbers for rank {rank}, got {list(values)}")
    low, high = options.padding[::2], options.padding[1::2]
    dilated = spread_sizes(shape, _ones(options.base_dilations, rank))
    return tuple(max(0, a + size + b) for a, size, b in zip(low, dilated, high, strict=True))


def spread_sizes(shape: Shape, dilations: Sequence[int]) -> tuple[int, ...]:
    """Return the shape with ``dilation - 1`` elements between neighbours."""
    return tuple(max(0, (size - 1) * d + 1) if size else 0 for size, d in zip(shape, dilations, strict=True))


def _ones(values: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return values or (1,) * rank


def _windows(options: StablehloReduceWindowOptions, rank: int) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    strides, dilations = _ones(options.window_strides, rank), _ones(options.window_dilations, rank)
    if not len(strides) == len(dilations) == len(_ones(options.base_dilations, rank)) == rank:
        raise ShapeError(f"expected strides and dilations of rank {rank}")
    if min(_ones(options.base_dilations, rank), default=1) < 1:
        raise ShapeError("expected base dilations of at least 1")
    return options.window_dimensions, strides, dilations


def _infer_stablehlo(options: StablehloReduceWindowOptions, inputs: Specs) -> list[TensorSpec]:
    x, start = require.present(inputs, 2)
    require.same_type(x, start)
    windows = _windows(options, require.rank(x))
    padded = _stablehlo_padded(options, x.static_shape)
    return [TensorSpec(x.type, _outputs(padded, *windows))]


def _propagate_stablehlo(options: StablehloReduceWindowOptions, inputs: Specs, shapes: Shapes) -> list[TensorSpec]:
    x, start = require.present(inputs, 2)
    control.propagate_body(options.body_subgraph_index, x.type, shapes)
    if x.shape is None or start.shape is None:
        return [TensorSpec(x.type, None)]
    (output,) = _infer_stablehlo(options, inputs)
    limits.check(output)
    return [output]


def _run_stablehlo(options: StablehloReduceWindowOptions, inputs: Inputs, context: Context) -> list[Array]:
    x, start = require.arrays(inputs, 2)
    windows = _windows(options, x.ndim)
    shape = _outputs(_stablehlo_padded(options, x.shape), *windows)
    padded = spread(x, start, options.padding[::2], options.padding[1::2], _ones(options.base_dilations, x.ndim))

    def combine(a: Array, b: Array) -> Array:
        (result,) = context.call(options.body_subgraph_index, [a, b])
        return result

    return [_reduce(padded, start, combine, windows, shape)]


REDUCE_WINDOW = Op("REDUCE_WINDOW", options=ReduceWindowOptions, infer=_infer, run=_run)
STABLEHLO_REDUCE_WINDOW = ControlOp(
    "STABLEHLO_REDUCE_WINDOW",
    options=StablehloReduceWindowOptions,
    infer=_infer_stablehlo,
    run=_run_stablehlo,
    propagate=_propagate_stablehlo,
    callees=lambda options: (options.body_subgraph_index,),
)
