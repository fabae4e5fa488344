"""Linear equations for matrices [..., n, n]: elimination in a loop over columns."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from litecl.converter.importer.compositions.kit import Composition, Unfit, dims


def _eliminated(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Return a^-1 b, and logarithm and sign of a's determinant, by Gauss-Jordan elimination with partial pivoting.

    a: [B,n,n]. b: [B,n,m].
    """
    size = dims(a)[1]
    rows = tf.range(size)[None]
    table = tf.concat([a, b], 2)
    batch = tf.shape(table)[0]

    def step(k: Any, table: Any, log: Any, sign: Any) -> Any:
        column = tf.gather(table, k, axis=2)
        pivot = tf.argmax(tf.where(rows >= k, tf.abs(column), -1.0), 1, tf.int32)[:, None]
        order = tf.where(rows == k, pivot, tf.where(rows == pivot, k, rows))
        table = tf.gather(table, order, axis=1, batch_dims=1)
        row = tf.gather(table, k, axis=1)
        value = tf.gather(row, k, axis=1)
        column = tf.gather(table, k, axis=2)
        row = row / value[:, None]
        cleared = table - column[:, :, None] * row[:, None, :]
        table = tf.where((rows == k)[:, :, None], row[:, None, :], cleared)
        swap = tf.where(pivot[:, 0] == k, 1.0, -1.0)
        return k + 1, table, log + tf.math.log(tf.abs(value)), sign * swap * tf.sign(value)

    state = (tf.constant(0), table, tf.zeros([batch]), tf.ones([batch]))
    shapes = (tf.TensorShape([]), table.shape, tf.TensorShape([a.shape[0]]), tf.TensorShape([a.shape[0]]))
    _, table, log, sign = tf.while_loop(lambda k, *rest: k < size, step, state, shapes)
    return table[:, :, size:], log, sign


def _as_batch(x: Any) -> Any:
    if x.dtype != tf.float32:
        raise Unfit(f"it computes in {x.dtype.name}; only float32 and float64 are converted")
    rows, columns = dims(x)[-2:]
    return x if x.shape.rank == 3 else tf.reshape(x, [-1, rows, columns])


def _adjusted(a: Any, attrs: Mapping[str, Any]) -> Any:
    return tf.linalg.matrix_transpose(a) if attrs["adjoint"] else a


def _solved(a: Any, b: Any) -> Any:
    solution, _, _ = _eliminated(_as_batch(a), _as_batch(b))
    return tf.reshape(solution, tf.shape(b))


def _solve(attrs: Mapping[str, Any], a: Any, b: Any) -> Any:
    return _solved(_adjusted(a, attrs), b)


def _inverse(attrs: Mapping[str, Any], a: Any) -> Any:
    a = _adjusted(a, attrs)
    return _solved(a, tf.zeros_like(a) + tf.eye(dims(a)[-1]))


def _triangular_solve(attrs: Mapping[str, Any], a: Any, b: Any) -> Any:
    triangle = tf.linalg.band_part(a, *((-1, 0) if attrs["lower"] else (0, -1)))
    batch = tf.broadcast_dynamic_shape(tf.shape(a)[:-2], tf.shape(b)[:-2])
    whole = tf.broadcast_to(triangle, tf.concat([batch, tf.shape(a)[-2:]], 0))
    return _solved(_adjusted(whole, attrs), tf.broadcast_to(b, tf.concat([batch, tf.shape(b)[-2:]], 0)))


def _log_determinant(attrs: Mapping[str, Any], a: Any) -> Any:
    batch = _as_batch(a)
    _, log, sign = _eliminated(batch, batch[:, :, :0])
    return tf.reshape(sign, tf.shape(a)[:-2]), tf.reshape(log, tf.shape(a)[:-2])


def _determinant(attrs: Mapping[str, Any], a: Any) -> Any:
    sign, log = _log_determinant(attrs, a)
    return tf.where(sign == 0, 0.0, sign * tf.exp(log))


def _cholesky(attrs: Mapping[str, Any], a: Any) -> Any:
    """Return the lower triangle whose product with its transpose is the matrix, one column per step."""
    batch = _as_batch(a)
    size = dims(batch)[1]
    rows = tf.range(size)[None]

    def step(k: Any, lower: Any) -> Any:
        row = tf.gather(lower, k, axis=1)
        rest = tf.gather(batch, k, axis=2) - tf.reduce_sum(lower * row[:, None], 2)
        column = tf.where(rows >= k, rest / tf.sqrt(tf.gather(rest, k, axis=1))[:, None], 0.0)
        return k + 1, lower + column[:, :, None] * tf.cast(rows == k, tf.float32)[:, None]

    state = (tf.constant(0), tf.zeros_like(batch))
    _, lower = tf.while_loop(lambda k, lower: k < size, step, state, (tf.TensorShape([]), batch.shape))
    return tf.reshape(lower, tf.shape(a))


def _cross(attrs: Mapping[str, Any], a: Any, b: Any) -> Any:
    turned, other = [1, 2, 0], [2, 0, 1]
    return tf.gather(a, turned, axis=-1) * tf.gather(b, other, axis=-1) - tf.gather(a, other, axis=-1) * tf.gather(
        b, turned, axis=-1
    )


COMPOSITIONS: dict[str, Composition] = {
    "MatrixSolve": _solve,
    "MatrixInverse": _inverse,
    "MatrixTriangularSolve": _triangular_solve,
    "MatrixDeterminant": _determinant,
    "LogMatrixDeterminant": _log_determinant,
    "Cholesky": _cholesky,
    "Cross": _cross,
}
