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
    """Merge neighbouring sorted runs of ``width``: a binary search tells how many elements of the right run come before
    each of the left one, and the others take what positions remain.

    Elements of a left run go before their equals. A comparator that contradicts itself, as on NaN, gives some order.
    """
    count = rows.shape[1]
    at = np.arange(count)
    start = at // (2 * width) * (2 * width)
    left = np.flatnonzero(at - start < width)
    first = np.minimum(start[left] + width, count)
    low = np.broadcast_to(first, (len(rows), len(left))).copy()
    high = np.broadcast_to(np.minimum(first + width, count), low.shape).copy()
    while (open_ := low < high).any():
        row, column = np.nonzero(open_)
        middle = (low + high)[row, column] // 2
        further = before(rows[row, middle], rows[row, left[column]])
        low[row, column] = np.where(further, middle + 1, low[row, column])
        high[row, column] = np.where(further, high[row, column], middle)
    # Runs follow each other, so the largest so far keeps the order within a run and never reaches into the next.
    places = left + np.maximum.accumulate(low, axis=1) - first
    is_left = np.zeros(rows.shape, bool)
    np.put_along_axis(is_left, places, values=True, axis=1)
    result = np.empty_like(rows)
    result[is_left] = rows[:, left].reshape(-1)
    result[~is_left] = np.delete(rows, left, axis=1).reshape(-1)
    return result


STABLEHLO_SORT = ControlOp(
    "STABLEHLO_SORT",
    options=StablehloSortOptions,
    infer=control.infer_nothing,
    run=_run,
    propagate=_propagate,
    callees=lambda options: (options.comparator_subgraph_index,),
)
