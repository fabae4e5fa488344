"""STABLEHLO_SORT: tensors sorted together along a dimension, in the order that a subgraph tells."""

from collections.abc import Callable

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Context, ControlOp, Inputs, Shapes, Specs
from litecl.interpreter.ops import control
from litecl.interpreter.schema import TensorType

Before = Callable[[Array, Array], Array]
"""Whether elements at some flat positions come before those at others."""


@dataclass(frozen=True)
class StablehloSortOptions:
    dimension: int = 0
    is_stable: bool = False
    comparator_subgraph_index: int = 0


def _propagate(options: StablehloSortOptions, inputs: Specs, shapes: Shapes) -> list[TensorSpec]:
    specs = require.present(inputs, max(1, len(inputs)))
    elements = [TensorSpec(spec.type, None) for spec in specs for _ in range(2)]  # called with arrays of any shape
    results = shapes.call(options.comparator_subgraph_index, elements)
    if [spec.type for spec in results] != [TensorType.BOOL]:
        raise ShapeError(f"expected a comparator of one BOOL, got {', '.join(spec.type.name for spec in results)}")
    if any(spec.shape is None for spec in specs):
        return [TensorSpec(spec.type, None) for spec in specs]
    if len({spec.shape for spec in specs}) > 1:
        raise ShapeError(f"expected inputs of one shape, got {', '.join(str(list(s.static_shape)) for s in specs)}")
    require.axis(options.dimension, require.rank(specs[0], at_least=1))
    return [TensorSpec(spec.type, spec.shape) for spec in specs]


def _run(options: StablehloSortOptions, inputs: Inputs, context: Context) -> list[Array]:
    values = require.arrays(inputs, len(inputs))
    axis = require.axis(options.dimension, values[0].ndim)
    moved = [np.moveaxis(value, axis, -1) for value in values]
    flat = [value.reshape(-1) for value in moved]

    def before(left: Array, right: Array) -> Array:
        """Ask for all pairs at once: the comparator is of scalars, so it works element by element."""
        pairs = [value[positions] for value in flat for positions in (left, right)]
        (result,) = context.call(options.comparator_subgraph_index, pairs)
        return np.broadcast_to(result, left.shape)  # one that compares constants has a single result

    order = _sorted(np.arange(values[0].size).reshape(moved[0].shape), before)
    return [np.moveaxis(value[order], -1, axis) for value in flat]


def _sorted(order: Array, before: Before) -> Array:
    """Return positions [..., n], sorted stably along the last dimension: runs are merged, all of a length at once."""
    if not order.size:
        return order
    count, width = order.shape[-1], 1
    rows = order.reshape(-1, count)
    while width < count:
        limits.tick()
        rows = _merged(rows, width, before)
        width *= 2
    return rows.reshape(order.shape)


def _merged(rows: Array, width: int, before: Before) -> Array:
    """Merge neighbouring sorted runs of ``width``, by a binary search of each element in the other run.

    Elements of a left run go before their equals.
    """
    count = rows.shape[1]
    at = np.arange(count)
    start = at // (2 * width) * (2 * width)
    is_left = at - start < width
    first = np.minimum(np.where(is_left, start + width, start), count)
    low = np.broadcast_to(first, rows.shape).copy()
    high = np.broadcast_to(np.minimum(first + width, count), rows.shape).copy()
    while (open_ := low < high).any():
        row, column = np.nonzero(open_)
        middle = (low + high)[row, column] // 2
        own, other = rows[row, column], rows[row, middle]
        on_left = is_left[column]
        told = before(np.where(on_left, other, own), np.where(on_left, own, other))
        further = np.where(on_left, told, ~told)
        low[row, column] = np.where(further, middle + 1, low[row, column])
        high[row, column] = np.where(further, high[row, column], middle)
    others = low - first
    places = np.where(is_left, at, at - width) + others
    result = np.empty_like(rows)
    np.put_along_axis(result, places, rows, axis=1)
    return result


STABLEHLO_SORT = ControlOp(
    "STABLEHLO_SORT",
    options=StablehloSortOptions,
    infer=control.infer_nothing,
    run=_run,
    propagate=_propagate,
    callees=lambda options: (options.comparator_subgraph_index,),
)
