"""Main diagonals, and bands of matrices; other diagonals are compositions."""

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.expression import Expression, formula
from litecl.interpreter.ops.matrix_diag import MATRIX_DIAG, MATRIX_SET_DIAG
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.schema import TensorType


def _offset(b: Builder) -> int:
    """Return the one diagonal of an operator of version 2 or 3."""
    return int(b.known(1, "diagonal").reshape(-1)[0]) if len(b.node.inputs) > 1 else 0


def _diag(b: Builder) -> Value:
    return b.op(MATRIX_DIAG, [b.node.input(0)])


def _set_diag(b: Builder) -> Value:
    return b.op(MATRIX_SET_DIAG, b.node.inputs[:2])


def _diag_part(b: Builder) -> Value:
    """Return every (n + 1)-th element of the rows one after the other."""
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
    *_, height, width = x.b.shape(x.value)
    below, above = int(x.b.known(1, "bounds")), int(x.b.known(2, "bounds"))
    if height is None or width is None:
        raise x.b.error("the sizes of its matrices must be known; give input_shapes")
    distance = np.arange(height)[:, None] - np.arange(width)
    kept = ((distance <= below) | (below < 0)) & ((-distance <= above) | (above < 0))
    return x.constant(kept, TensorType.BOOL).select(x, 0)


LOWERINGS: dict[str, Lowering] = {
    **dict.fromkeys(("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3", "BatchMatrixDiag"), _diag),
    "Diag": _diag,
    **dict.fromkeys(("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"), _set_diag),
    **dict.fromkeys(("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "DiagPart"), _diag_part),
    "MatrixBandPart": formula(_band_part),
}
