"""SLICE: a box of a tensor, from ``begin``, of ``size`` (-1: to the end)."""

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import lowest, require
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.schema import TensorType


def _sizes(shape: Shape, begin: list[int], size: list[int]) -> Shape:
    """Return the shape of the box. Raises ShapeError if it is not within ``shape``."""
    result = tuple(dim - b if s == -1 else s for dim, b, s in zip(shape, begin, size, strict=True))
    inside = (b >= 0 and s >= 0 and b + s <= dim for dim, b, s in zip(shape, begin, result, strict=True))
    if not all(inside):
        raise ShapeError(f"begin {begin} and size {size} are not within shape {list(shape)}")
    return result


def _infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    x, begin, size = require.present(inputs, 3)
    rank = require.rank(x)
    for spec in (begin, size):
        if spec.static_shape != (rank,):
            raise ShapeError(f"expected begin and size of shape [{rank}], got {list(spec.static_shape)}")
    require.same_type(begin, size)
    begins, sizes = require.integers(begin), require.integers(size)
    if sizes is None:
        return [TensorSpec(x.type, None)]
    if begins is None:
        # The shape does not depend on the box's position, as long as no size reaches to the end.
        return [TensorSpec(x.type, None if -1 in sizes else _sizes(x.static_shape, [0] * rank, sizes))]
    return [TensorSpec(x.type, _sizes(x.static_shape, begins, sizes))]


def _run(options: NoOptions, inputs: Inputs) -> list[Array]:
    x, begin, size = require.arrays(inputs, 3)
    begins = begin.tolist()
    sizes = _sizes(x.shape, begins, size.tolist())
    return [x[tuple(slice(b, b + s) for b, s in zip(begins, sizes, strict=True))].copy()]


SLICE = Op(
    "SLICE",
    options=NoOptions,
    infer=_infer,
    run=_run,
    versions=range(1, 9),
    integers=MOVING,
    lowest=lowest.most(lowest.beyond_4(5, {TensorType.STRING: 3}), lowest.integers(2, 4)),
)
