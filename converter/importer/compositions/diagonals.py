"""Operators that move elements, for static shapes: one GATHER, by applying TensorFlow's operator to element indices."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from litecl.converter.importer.compositions.kit import Composition, Unfit, known, sizes
from litecl.interpreter.graph import Array


def _matrix_diag(version: int) -> Composition:
    """Return the composition for diagonals that MATRIX_DIAG doesn't support."""

    def compose(attrs: Mapping[str, Any], x: Any, k: Any, rows: Any, columns: Any, padding: Any) -> Any:
        first = known(k, "diagonal").reshape(-1)
        limits = {"num_rows": known(rows, "size"), "num_cols": known(columns, "size")}
        if not first.any() and all(int(n) == -1 for n in limits.values()) and not np.any(known(padding, "padding")):
            return None
        depth = 1 if len(set(first.tolist())) == 1 else 2
        extra = {"align": attrs["align"]} if version == 3 else {}
        op = tf.raw_ops.MatrixDiagV3 if version == 3 else tf.raw_ops.MatrixDiagV2
        return _moved(
            lambda n: op(diagonal=n, k=first, padding_value=0, **limits, **extra), x, depth, tf.reshape(padding, [])
        )

    return compose


def _matrix_diag_part(version: int) -> Composition:
    def compose(attrs: Mapping[str, Any], x: Any, k: Any, padding: Any) -> Any:
        bounds = known(k, "diagonal").reshape(-1)
        if len(set(bounds.tolist())) == 1:
            return None
        extra = {"align": attrs["align"]} if version == 3 else {}
        op = tf.raw_ops.MatrixDiagPartV3 if version == 3 else tf.raw_ops.MatrixDiagPartV2
        return _moved(lambda n: op(input=n, k=bounds, padding_value=0, **extra), x, 2, tf.reshape(padding, []))

    return compose


def _matrix_set_diag(version: int) -> Composition:
    def compose(attrs: Mapping[str, Any], x: Any, diagonal: Any, k: Any) -> Any:
        bounds = known(k, "diagonal").reshape(-1)
        if not bounds.any():
            return None
        depth = 1 if len(set(bounds.tolist())) == 1 else 2
        extra = {"align": attrs["align"]} if version == 3 else {}
        op = tf.raw_ops.MatrixSetDiagV3 if version == 3 else tf.raw_ops.MatrixSetDiagV2
        height, width = sizes(x, x.shape.rank - 2)
        inner = sizes(diagonal, diagonal.shape.rank - depth)
        own, other = height * width, int(np.prod(inner))
        numbers = np.arange(own + other, dtype=np.int32)
        parts = numbers[:own].reshape(height, width), numbers[own:].reshape(inner)
        places = _run(lambda: op(input=parts[0], diagonal=parts[1], k=bounds, **extra))
        batch = tf.shape(x)[:-2]
        flat = tf.concat([_flat(x, batch, own), _flat(diagonal, batch, other)], -1)
        return tf.gather(flat, places, axis=-1)

    return compose


def _diag(attrs: Mapping[str, Any], x: Any) -> Any:
    return None if x.shape.rank == 1 else _moved(lambda n: tf.raw_ops.Diag(diagonal=n), x, x.shape.rank)


def _diag_part(attrs: Mapping[str, Any], x: Any) -> Any:
    return None if x.shape.rank == 2 else _moved(lambda n: tf.raw_ops.DiagPart(input=n), x, x.shape.rank)


def _volume_patches(attrs: Mapping[str, Any], x: Any) -> Any:
    """Return patches of volumes [N,D,H,W,C]."""
    rest = {name: list(attrs[name]) for name in ("ksizes", "strides")} | {"padding": attrs["padding"]}
    return _moved(lambda n: tf.raw_ops.ExtractVolumePatches(input=n[None], **rest)[0], x, 4)


def _moved(move: Any, x: Any, depth: int, padding: Any = 0) -> Any:
    """Move the last ``depth`` dimensions of ``x`` like ``move`` does; ``padding`` replaces zeros it inserts."""
    if x.shape.rank is None:
        raise Unfit("the rank of its operands must be known")
    inner = sizes(x, x.shape.rank - depth)
    count = int(np.prod(inner))
    numbers = np.arange(1, count + 1, dtype=np.int32).reshape(inner)
    places = _run(lambda: move(tf.constant(numbers)))
    batch = tf.shape(x)[: x.shape.rank - depth]
    flat = _flat(x, batch, count)
    if np.all(places > 0):
        return tf.gather(flat, places - 1, axis=-1)
    first = tf.fill(tf.concat([batch, [1]], 0), tf.cast(padding, x.dtype))
    return tf.gather(tf.concat([first, flat], -1), places, axis=-1)


def _flat(x: Any, batch: Any, count: int) -> Any:
    return tf.reshape(x, tf.concat([batch, [count]], 0))


def _run(function: Any) -> Array:
    with tf.init_scope():
        return np.asarray(function())


COMPOSITIONS: dict[str, Composition] = {
    "MatrixDiagV2": _matrix_diag(2),
    "MatrixDiagV3": _matrix_diag(3),
    "MatrixDiagPartV2": _matrix_diag_part(2),
    "MatrixDiagPartV3": _matrix_diag_part(3),
    "MatrixSetDiagV2": _matrix_set_diag(2),
    "MatrixSetDiagV3": _matrix_set_diag(3),
    "Diag": _diag,
    "DiagPart": _diag_part,
    "ExtractVolumePatches": _volume_patches,
}
