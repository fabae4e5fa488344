"""Factors of matrices [..., m, n], computed in float64: litecl's own operators.

Singular vectors and eigenvectors are unique up to their signs, which may differ from TensorFlow's.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.kit import require, types
from litecl.interpreter.kit.own import Result, operator
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class SvdOptions:
    compute_uv: bool = True
    full_matrices: bool = False


@dataclass(frozen=True)
class QrOptions:
    full_matrices: bool = False


@dataclass(frozen=True)
class EigenOptions:
    compute_v: bool = True


@dataclass(frozen=True)
class LuOptions:
    output_idx_type: int = int(TensorType.INT32)


@dataclass(frozen=True)
class LeastSquaresOptions:
    fast: bool = True


@dataclass(frozen=True)
class TridiagonalOptions:
    partial_pivoting: bool = True


def _matrices(
    name: str, options: type, function: Callable[..., Sequence[Any]], shapes: Callable[..., Sequence[Shape]]
) -> Op:
    """Return an operator of matrices.

    function: maps options and float64 matrices to results, which get the matrices' type. shapes: maps options, batch,
    rows and columns of the first operand to the results' shapes.
    """

    def run(options: Any, *operands: Array) -> list[Array]:
        try:
            outputs = function(options, *(x.astype(np.float64) for x in operands))
        except np.linalg.LinAlgError as error:
            raise ModelError(f"{name} of {list(operands[0].shape)}: {error}") from error
        kept = operands[0].dtype
        return [np.asarray(x, kept if np.asarray(x).dtype.kind == "f" else None) for x in outputs]

    def results(options: Any, inputs: list[TensorSpec]) -> list[Result]:
        x = inputs[0]
        require.types(x, types.FLOAT)
        require.rank(x, at_least=2)
        *batch, rows, columns = x.static_shape
        return [(x.type, shape) for shape in shapes(options, tuple(batch), rows, columns)]

    return operator(name, options, run, results)


def _svd(options: SvdOptions, x: Array) -> Sequence[Array]:
    if not options.compute_uv:
        return [np.linalg.svd(x, compute_uv=False), *[np.zeros((*x.shape[:-2], 0, 0))] * 2]
    u, values, v = np.linalg.svd(x, full_matrices=options.full_matrices)
    return [values, u, np.swapaxes(v, -1, -2)]


def _svd_shapes(options: SvdOptions, batch: Shape, rows: int, columns: int) -> Sequence[Shape]:
    count = min(rows, columns)
    if not options.compute_uv:
        return [(*batch, count), (*batch, 0, 0), (*batch, 0, 0)]
    left, right = (rows, columns) if options.full_matrices else (count, count)
    return [(*batch, count), (*batch, rows, left), (*batch, columns, right)]


def _qr(options: QrOptions, x: Array) -> Sequence[Array]:
    q, r = np.linalg.qr(x, "complete" if options.full_matrices else "reduced")
    return [q, r]


def _qr_shapes(options: QrOptions, batch: Shape, rows: int, columns: int) -> Sequence[Shape]:
    inner = rows if options.full_matrices else min(rows, columns)
    return [(*batch, rows, inner), (*batch, inner, columns)]


def _eigen(options: EigenOptions, x: Array) -> Sequence[Array]:
    if options.compute_v:
        return np.linalg.eigh(x)
    return [np.linalg.eigvalsh(x), np.zeros((*x.shape[:-2], 0, 0))]


def _eigen_shapes(options: EigenOptions, batch: Shape, rows: int, columns: int) -> Sequence[Shape]:
    side = rows if options.compute_v else 0
    return [(*batch, rows), (*batch, side, side)]


def _lu(x: Array) -> tuple[Array, Array]:
    """Return both triangles in one matrix, and the order of the rows, by elimination with partial pivoting."""
    size = x.shape[-1]
    matrix, order = x.reshape(-1, size, size).copy(), np.tile(np.arange(size), (x.size // max(size * size, 1), 1))
    each = np.arange(len(matrix))
    for k in range(size):
        pivot = k + np.abs(matrix[:, k:, k]).argmax(1)
        for array in (matrix, order):
            array[each, k], array[each, pivot] = array[each, pivot].copy(), array[each, k].copy()
        if (matrix[:, k, k] == 0).any():
            raise np.linalg.LinAlgError("the matrix is not invertible")
        matrix[:, k + 1 :, k] /= matrix[:, k, k][:, None]
        matrix[:, k + 1 :, k + 1 :] -= matrix[:, k + 1 :, k][:, :, None] * matrix[:, k, k + 1 :][:, None]
    return matrix.reshape(x.shape), order.reshape(x.shape[:-1])


def _run_lu(options: LuOptions, x: Array) -> list[Array]:
    try:
        triangles, order = _lu(x.astype(np.float64))
    except np.linalg.LinAlgError as error:
        raise ModelError(f"Lu of {list(x.shape)}: {error}") from error
    return [triangles.astype(x.dtype), order.astype(TensorType(options.output_idx_type).dtype)]


def _of_lu(options: LuOptions, inputs: list[TensorSpec]) -> list[Result]:
    (x,) = inputs
    require.types(x, types.FLOAT)
    return [(x.type, x.shape), (TensorType(options.output_idx_type), x.static_shape[:-1])]


def _root(options: NoOptions, x: Array) -> Sequence[Array]:
    values, vectors = np.linalg.eig(x)
    roots = vectors * np.sqrt(values.astype(np.complex128))[..., None, :] @ np.linalg.inv(vectors)
    return [roots.real]


def _least_squares(options: LeastSquaresOptions, a: Array, b: Array, weight: Array) -> Sequence[Array]:
    """Return the x with the smallest |a x - b|^2 + weight |x|^2; by the pseudo-inverse if not ``fast``."""
    if not options.fast:
        return [np.linalg.pinv(a) @ b]
    turned = np.swapaxes(a, -1, -2)
    if a.shape[-2] >= a.shape[-1]:
        return [np.linalg.solve(turned @ a + weight * np.eye(a.shape[-1]), turned @ b)]
    return [turned @ np.linalg.solve(a @ turned + weight * np.eye(a.shape[-2]), b)]


def _tridiagonal(options: TridiagonalOptions, diagonals: Array, b: Array) -> Sequence[Array]:
    above, main, below = np.moveaxis(diagonals, -2, 0)
    size, rows = main.shape[-1], np.arange(main.shape[-1])
    matrix = np.zeros((*main.shape, size))
    matrix[..., rows, rows] = main
    matrix[..., rows[:-1], rows[1:]], matrix[..., rows[1:], rows[:-1]] = above[..., :-1], below[..., 1:]
    return [np.linalg.solve(matrix, b)]


def _of_right(options: Any, inputs: list[TensorSpec]) -> list[Result]:
    a, b = inputs[:2]
    require.types(a, types.FLOAT)
    return [(a.type, (*b.static_shape[:-2], a.static_shape[-1], b.static_shape[-1]))]


SVD = _matrices("litecl.Svd", SvdOptions, _svd, _svd_shapes)
QR = _matrices("litecl.Qr", QrOptions, _qr, _qr_shapes)
SELF_ADJOINT_EIG = _matrices("litecl.SelfAdjointEig", EigenOptions, _eigen, _eigen_shapes)
MATRIX_SQUARE_ROOT = _matrices("litecl.MatrixSquareRoot", NoOptions, _root, lambda o, batch, *sides: [(*batch, *sides)])
LU = operator("litecl.Lu", LuOptions, _run_lu, _of_lu)
MATRIX_SOLVE_LS = operator(
    "litecl.MatrixSolveLs",
    LeastSquaresOptions,
    lambda o, a, b, w: [_least_squares(o, *(x.astype(np.float64) for x in (a, b, w)))[0].astype(a.dtype)],
    _of_right,
)
TRIDIAGONAL_SOLVE = operator(
    "litecl.TridiagonalSolve",
    TridiagonalOptions,
    lambda o, d, b: [_tridiagonal(o, d.astype(np.float64), b.astype(np.float64))[0].astype(b.dtype)],
    lambda o, i: [(i[1].type, i[1].shape)],
)
