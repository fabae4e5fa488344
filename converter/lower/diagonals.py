"""Main diagonals, and bands of matrices; other diagonals are compositions."""

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.expression import Expression, formula
from litecl.interpreter.ops.binary import LOGICAL_AND
from litecl.interpreter.ops.matrix_diag import MATRIX_DIAG, MATRIX_SET_DIAG
from litecl.interpreter.ops.shape import SHAPE, ShapeOptions
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.schema import TensorType

_INT32 = TensorType.INT32
_FAR = np.iinfo(np.int32).max  # farther from the diagonal than any element


def _offset(b: Builder) -> int:
    """Return the single diagonal of an operator of version 2 or 3."""
    return int(b.known(1, "diagonal").reshape(-1)[0]) if len(b.node.inputs) > 1 else 0


def _diag(b: Builder) -> Value:
    return b.op(MATRIX_DIAG, [b.node.input(0)])


def _set_diag(b: Builder) -> Value:
    return b.op(MATRIX_SET_DIAG, b.node.inputs[:2])


def _diag_part(b: Builder) -> Value:
    """Return every (n + 1)-th element of the flattened rows."""
    x, offset = Expression(b, b.node.input(0)), _offset(b)
    *batch, height, width = b.shape(x.value)
    if height is None or width is None or batch.count(None) > 1:
        raise b.error("the sizes of its matrices must be known; give input_shapes")
    length = min(height + min(offset, 0), width - max(offset, 0))
    first = offset if offset >= 0 else -offset * width
    flat = x.reshape([*(-1 if d is None else d for d in batch), height * width], (*batch, height * width))
    rank = len(batch)
    bounds = [[*[0] * rank, first], [*[0] * rank, first + (length - 1) * (width + 1) + 1], [*[1] * rank, width + 1]]
    whole = (1 << rank) - 1
    options = StridedSliceOptions(begin_mask=whole, end_mask=whole)
    return b.op(STRIDED_SLICE, [flat.value, *(b.const(bound, np.int32) for bound in bounds)], options)


def _band_part(x: Expression, lower: Expression, upper: Expression) -> Expression:
    """Return the elements within these distances below and above the diagonal; a negative bound means no limit."""
    below = _distance(x)
    limits = [_at_most(lower), _at_most(upper)]
    if below.value.data is not None and all(limit.value.data is not None for limit in limits):
        distance = below.value.data
        kept = x.constant((distance <= limits[0].value.data) & (-distance <= limits[1].value.data), TensorType.BOOL)
    else:
        below = below.cast(lower.type)
        kept = below.at_most(limits[0]).binary(LOGICAL_AND, (-below).at_most(limits[1]))
    return kept.select(x, 0)


def _distance(x: Expression) -> Expression:
    """Return the distances of a matrix's elements below the diagonal, [height, width] of int32."""
    height, width = (None, None) if x.value.shape is None else x.value.shape[-2:]
    if height is not None and width is not None:
        return x.constant(np.arange(height)[:, None] - np.arange(width), _INT32)
    sizes = x.b.op(SHAPE, [x.value], ShapeOptions(_INT32), type=_INT32, shape=(x.value.rank,))
    rows, columns = (_count(Expression(x.b, sizes), axis).counted() for axis in (-2, -1))
    return rows.expand(-1) - columns


def _at_most(bound: Expression) -> Expression:
    """Return the largest distance that a bound allows."""
    if bound.value.data is not None:
        return bound.constant(_FAR if bound.value.data < 0 else bound.value.data)
    return bound.less(0).select(bound.constant(_FAR), bound)


def _count(sizes: Expression, axis: int) -> Expression:
    """Return one of the sizes, counted from the end."""
    bounds = [sizes.b.const([n], np.int32) for n in (axis, axis + 1, 1)]
    options = StridedSliceOptions(end_mask=int(axis == -1))
    return Expression(sizes.b, sizes.b.op(STRIDED_SLICE, [sizes.value, *bounds], options, type=_INT32, shape=(1,)))


LOWERINGS: dict[str, Lowering] = {
    **dict.fromkeys(("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3", "BatchMatrixDiag"), _diag),
    "Diag": _diag,
    **dict.fromkeys(("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"), _set_diag),
    **dict.fromkeys(("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "DiagPart"), _diag_part),
    "MatrixBandPart": formula(_band_part),
}
