"""The operators of StableHLO that TFLite runs: arithmetic, padding, gathering, scattering and branches.

Semantics: https://openxla.org/stablehlo/spec. Both inputs of arithmetic have one shape.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import require, types
from litecl.interpreter.kit.spread import spread
from litecl.interpreter.op import Context, ControlOp, Inputs, NoOptions, Op, Shapes, Specs
from litecl.interpreter.ops import control
from litecl.interpreter.schema import TensorType

_NUMBERS = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.FLOAT64,
    *types.BITS,
    TensorType.INT64,
    TensorType.UINT64,
    TensorType.BOOL,
)


@dataclass(frozen=True)
class StablehloPadOptions:
    edge_padding_low: tuple[int, ...] = ()
    edge_padding_high: tuple[int, ...] = ()
    interior_padding: tuple[int, ...] = ()


@dataclass(frozen=True)
class StablehloGatherOptions:
    offset_dims: tuple[int, ...] = ()
    collapsed_slice_dims: tuple[int, ...] = ()
    start_index_map: tuple[int, ...] = ()
    index_vector_dim: int = 0
    slice_sizes: tuple[int, ...] = ()
    indices_are_sorted: bool = False


@dataclass(frozen=True)
class StablehloScatterOptions:
    indices_are_sorted: bool = False
    update_window_dims: tuple[int, ...] = ()
    inserted_window_dims: tuple[int, ...] = ()
    scatter_dims_to_operand_dims: tuple[int, ...] = ()
    index_vector_dim: int = 0
    unique_indices: bool = False
    update_computation_subgraph_index: int = 0


@dataclass(frozen=True)
class StablehloCaseOptions:
    branch_subgraph_indices: tuple[int, ...] = ()


def _arithmetic(name: str, function: Callable[[Array, Array], Any], allowed: Sequence[TensorType] = _NUMBERS) -> Op:
    def infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
        a, b = require.present(inputs, 2)
        require.types(a, allowed)
        require.same_type(a, b)
        if a.shape != b.shape:
            raise ShapeError(f"shapes differ: {list(a.static_shape)} and {list(b.static_shape)}")
        return [TensorSpec(a.type, a.shape)]

    def run(options: NoOptions, inputs: Inputs) -> list[Array]:
        a, b = require.arrays(inputs, 2)
        with np.errstate(all="ignore"):
            return [np.asarray(function(a, b), a.dtype)]

    return Op(name, options=NoOptions, infer=infer, run=run)


def _shift_left(a: Array, b: Array) -> Array:
    """Shift to the left; return zero where all bits are shifted out."""
    width = a.dtype.itemsize * 8
    b = b.astype(np.int64)
    inside = (b >= 0) & (b < width)
    return np.where(inside, np.left_shift(a, np.where(inside, b, 0)), 0)


def _infer_pad(options: StablehloPadOptions, inputs: Specs) -> list[TensorSpec]:
    x, value = require.present(inputs, 2)
    require.same_type(x, value)
    rank = require.rank(x)
    for numbers in (options.edge_padding_low, options.edge_padding_high, options.interior_padding):
        if len(numbers) != rank:
            raise ShapeError(f"expected {rank} paddings, got {list(numbers)}")
    if min(options.interior_padding, default=0) < 0:
        raise ShapeError(f"interior padding must not be negative, got {options.interior_padding}")
    if value.size != 1:
        raise ShapeError(f"expected one padding value, got shape {list(value.static_shape)}")
    spans = [size + max(0, size - 1) * p for size, p in zip(x.static_shape, options.interior_padding, strict=True)]
    edges = zip(options.edge_padding_low, spans, options.edge_padding_high, strict=True)
    return [TensorSpec(x.type, tuple(max(0, low + span + high) for low, span, high in edges))]


def _run_pad(options: StablehloPadOptions, inputs: Inputs) -> list[Array]:
    x, value = require.arrays(inputs, 2)
    steps = [padding + 1 for padding in options.interior_padding]
    return [spread(x, value, options.edge_padding_low, options.edge_padding_high, steps)]


def _index_vectors(indices: Array, dimension: int, count: int) -> Array:
    """Return index vectors in the last dimension: [*batches, count]."""
    if dimension == indices.ndim:
        indices = indices[..., None]
    elif not 0 <= dimension < indices.ndim:
        raise ShapeError(f"index_vector_dim {dimension} out of range for rank {indices.ndim}")
    vectors = np.moveaxis(indices, dimension, -1).astype(np.int64)
    if vectors.shape[-1] != count:
        raise ShapeError(f"expected index vectors of {count} elements, got {vectors.shape[-1]}")
    return vectors


def _distinct(name: str, dimensions: Sequence[int], rank: int) -> None:
    if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < rank for d in dimensions):
        raise ShapeError(f"{name} {list(dimensions)} for rank {rank}")


def _infer_gather(options: StablehloGatherOptions, inputs: Specs) -> list[TensorSpec]:
    x, indices = require.present(inputs, 2)
    require.types(indices, types.INDEX)
    rank = require.rank(x)
    sizes = options.slice_sizes
    if len(sizes) != rank or any(not 0 <= size <= most for size, most in zip(sizes, x.static_shape, strict=True)):
        raise ShapeError(f"slices of {list(sizes)} from shape {list(x.static_shape)}")
    _distinct("collapsed_slice_dims", options.collapsed_slice_dims, rank)
    _distinct("start_index_map", options.start_index_map, rank)
    if any(sizes[d] != 1 for d in options.collapsed_slice_dims):
        raise ShapeError(f"collapsed dimensions {list(options.collapsed_slice_dims)} of slices {list(sizes)}")
    batches = [n for d, n in enumerate(indices.static_shape) if d != options.index_vector_dim]
    window = [size for d, size in enumerate(sizes) if d not in options.collapsed_slice_dims]
    if len(options.offset_dims) != len(window):
        raise ShapeError(f"{len(options.offset_dims)} offset_dims for slices {list(sizes)}")
    _distinct("offset_dims", options.offset_dims, len(batches) + len(window))
    parts = iter(batches), iter(window)
    shape = tuple(next(parts[d in options.offset_dims]) for d in range(len(batches) + len(window)))
    return [TensorSpec(x.type, shape)]


def _run_gather(options: StablehloGatherOptions, inputs: Inputs) -> list[Array]:
    x, indices = require.arrays(inputs, 2)
    vectors = _index_vectors(indices, options.index_vector_dim, len(options.start_index_map))
    batches = vectors.shape[:-1]
    window = [d for d in range(x.ndim) if d not in options.collapsed_slice_dims]
    rank = len(batches) + len(window)
    coordinates: list[Array] = []
    for d, (size, length) in enumerate(zip(options.slice_sizes, x.shape, strict=True)):
        start: Array = np.zeros(batches, np.int64)
        if d in options.start_index_map:
            start = np.clip(vectors[..., options.start_index_map.index(d)], 0, length - size)
        coordinate = start.reshape(*batches, *(1,) * len(window))
        if d in window:
            steps = [1] * rank
            steps[len(batches) + window.index(d)] = -1
            coordinate = coordinate + np.arange(size).reshape(steps)
        coordinates.append(coordinate)
    taken = x[tuple(np.broadcast_arrays(*coordinates))] if coordinates else np.broadcast_to(x, batches)
    order = [d for d in range(rank) if d not in options.offset_dims]
    source = [*order, *sorted(options.offset_dims)]
    return [np.ascontiguousarray(np.transpose(taken, np.argsort(source)))]


def _infer_scatter(options: StablehloScatterOptions, inputs: Specs) -> list[TensorSpec]:
    x, indices, updates = require.present(inputs, 3)
    require.types(indices, types.INDEX)
    require.same_type(x, updates)
    rank = require.rank(x)
    _distinct("update_window_dims", options.update_window_dims, len(updates.static_shape))
    _distinct("inserted_window_dims", options.inserted_window_dims, rank)
    _distinct("scatter_dims_to_operand_dims", options.scatter_dims_to_operand_dims, rank)
    if len(options.update_window_dims) + len(options.inserted_window_dims) != rank:
        raise ShapeError(f"windows of updates {list(updates.static_shape)} for shape {list(x.static_shape)}")
    scattered = [n for d, n in enumerate(updates.static_shape) if d not in options.update_window_dims]
    batches = [n for d, n in enumerate(indices.static_shape) if d != options.index_vector_dim]
    if scattered != batches:
        raise ShapeError(f"updates {list(updates.static_shape)} for indices {list(indices.static_shape)}")
    return [TensorSpec(x.type, x.shape)]


def _propagate_scatter(options: StablehloScatterOptions, inputs: Specs, shapes: Shapes) -> list[TensorSpec]:
    x, indices, updates = require.present(inputs, 3)
    control.propagate_body(options.update_computation_subgraph_index, x.type, shapes)
    if any(spec.shape is None for spec in (x, indices, updates)):
        return [TensorSpec(x.type, None)]
    return _infer_scatter(options, inputs)


def _targets(options: StablehloScatterOptions, x: Array, indices: Array, updates: Array) -> list[Array]:
    """Return, for every update, its index along each dimension of ``x``."""
    count = len(options.scatter_dims_to_operand_dims)
    vectors = _index_vectors(indices, options.index_vector_dim, count)
    scattered = [d for d in range(updates.ndim) if d not in options.update_window_dims]
    windows = iter(sorted(options.update_window_dims))
    targets: list[Array] = []
    for d in range(x.ndim):
        target: Array = np.zeros((1,) * updates.ndim, np.int64)
        if d in options.scatter_dims_to_operand_dims:
            start = vectors[..., options.scatter_dims_to_operand_dims.index(d)]
            shape = [updates.shape[axis] if axis in scattered else 1 for axis in range(updates.ndim)]
            target = target + start.reshape(shape)
        if d not in options.inserted_window_dims:
            axis = next(windows)
            shape = [-1 if a == axis else 1 for a in range(updates.ndim)]
            target = target + np.arange(updates.shape[axis]).reshape(shape)
        targets.append(np.broadcast_to(target, updates.shape).reshape(-1))
    return targets


def _run_scatter(options: StablehloScatterOptions, inputs: Inputs, context: Context) -> list[Array]:
    """Apply updates of one element in turn, and leave out those that lie outside."""
    x, indices, updates = require.arrays(inputs, 3)
    result = x.reshape(-1).copy()
    targets = _targets(options, x, indices, updates)
    inside = np.ones(updates.size, np.bool_)
    for target, size in zip(targets, x.shape, strict=True):
        inside &= (target >= 0) & (target < size)
    kept = [target[inside] for target in targets]
    flat = np.ravel_multi_index(kept, x.shape) if kept else np.zeros(int(inside.sum()), np.int64)
    values = updates.reshape(-1)[inside]
    while flat.size:
        _, first = np.unique(flat, return_index=True)
        (combined,) = context.call(options.update_computation_subgraph_index, [result[flat[first]], values[first]])
        result[flat[first]] = combined
        left = np.ones(flat.size, np.bool_)
        left[first] = False
        flat, values = flat[left], values[left]
    return [result.reshape(x.shape)]


def _propagate_case(options: StablehloCaseOptions, inputs: Specs, shapes: Shapes) -> list[TensorSpec]:
    return control.propagate_branches(options.branch_subgraph_indices, inputs, shapes)


def _run_case(options: StablehloCaseOptions, inputs: Inputs, context: Context) -> list[Array]:
    """Run the branch of an index, or the last one if it is out of range."""
    index, *arguments = inputs
    if index is None or index.size != 1 or not options.branch_subgraph_indices:
        raise ShapeError("expected one branch index and at least one branch")
    branch = int(index.reshape(-1)[0])
    last = len(options.branch_subgraph_indices) - 1
    return context.call(options.branch_subgraph_indices[branch if 0 <= branch <= last else last], arguments)


STABLEHLO_ADD = _arithmetic("STABLEHLO_ADD", np.add)
STABLEHLO_MULTIPLY = _arithmetic("STABLEHLO_MULTIPLY", np.multiply)
STABLEHLO_MAXIMUM = _arithmetic("STABLEHLO_MAXIMUM", lambda a, b: np.where(a > b, a, b))
STABLEHLO_MINIMUM = _arithmetic("STABLEHLO_MINIMUM", lambda a, b: np.where(a < b, a, b))
STABLEHLO_AND = _arithmetic("STABLEHLO_AND", np.bitwise_and, _NUMBERS[3:])
STABLEHLO_SHIFT_LEFT = _arithmetic("STABLEHLO_SHIFT_LEFT", _shift_left, (*types.BITS, TensorType.INT64))
STABLEHLO_PAD = Op("STABLEHLO_PAD", options=StablehloPadOptions, infer=_infer_pad, run=_run_pad, integers=MOVING)
STABLEHLO_GATHER = Op(
    "STABLEHLO_GATHER", options=StablehloGatherOptions, infer=_infer_gather, run=_run_gather, integers=MOVING
)
STABLEHLO_SCATTER = ControlOp(
    "STABLEHLO_SCATTER",
    options=StablehloScatterOptions,
    infer=_infer_scatter,
    run=_run_scatter,
    propagate=_propagate_scatter,
    callees=lambda options: (options.update_computation_subgraph_index,),
)
STABLEHLO_CASE = ControlOp(
    "STABLEHLO_CASE",
    options=StablehloCaseOptions,
    infer=control.infer_nothing,
    run=_run_case,
    propagate=_propagate_case,
    callees=lambda options: options.branch_subgraph_indices,
)
