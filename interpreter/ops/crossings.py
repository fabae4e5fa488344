"""SparseCross and its variants: every combination of a row's features in several columns."""

import itertools
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from litecl.interpreter.arithmetic.farmhash import fingerprint64
from litecl.interpreter.arithmetic.siphash import siphash
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit.own import Result, operator, sparse, texts
from litecl.interpreter.schema import TensorType

_INT64, _STRING = TensorType.INT64, TensorType.STRING
_FACTOR, _MASK, _MOST = 0xC6A4A7935BD1E995, (1 << 64) - 1, (1 << 63) - 1

_Feature = bytes | int
_Columns = Sequence[Sequence[Sequence[_Feature]]]


@dataclass(frozen=True)
class CrossOptions:
    """N: the number of sparse columns. hash_key: the number that hashes begin with; -1 for texts."""

    N: int = 0
    hashed_output: bool = False
    num_buckets: int = 0
    hash_key: int = 0


@dataclass(frozen=True)
class CountOptions:
    N: int = 0


def _joined(a: int, b: int) -> int:
    """Combine two hashes, as TensorFlow's FingerprintCat64 does."""
    mixed = b * _FACTOR & _MASK
    result = (a ^ _FACTOR) ^ ((mixed ^ mixed >> 47) * _FACTOR & _MASK)
    result = result * _FACTOR & _MASK
    result = (result ^ result >> 47) * _FACTOR & _MASK
    return result ^ result >> 47


def _columns(count: int, operands: Sequence[Array]) -> list[list[list[_Feature]]]:
    """Return the features of each row, column by column, sparse columns first."""
    indices, values, shapes = (operands[k * count : (k + 1) * count] for k in range(3))
    dense = operands[3 * count :]
    rows = int(shapes[0][0]) if count else len(dense[0]) if dense else 0
    columns = []
    for positions, features in zip(indices, values, strict=True):
        column: list[list[_Feature]] = [[] for _ in range(rows)]
        for (row, *_), feature in zip(positions.tolist(), features.tolist(), strict=True):
            if not 0 <= row < rows:
                raise ModelError(f"row {row} of {rows}")
            column[row].append(feature)
        columns.append(column)
    return [*columns, *(matrix.tolist() for matrix in dense)]


def _crossed(
    columns: _Columns, combine: Callable[[Sequence[_Feature]], _Feature]
) -> tuple[Array, list[_Feature], Array]:
    """Return the combinations of all rows as a sparse matrix."""
    return sparse([[combine(c) for c in itertools.product(*row)] for row in zip(*columns, strict=True)])


def _number(hashed: int, buckets: int) -> int:
    return hashed % (buckets if buckets > 0 else _MOST)


def _text(feature: _Feature) -> bytes:
    return feature if isinstance(feature, bytes) else str(feature).encode()


def _hash(feature: _Feature) -> int:
    return fingerprint64(feature) if isinstance(feature, bytes) else feature & _MASK


def _cross(options: CrossOptions, *operands: Array) -> list[Array]:
    columns = _columns(options.N, operands)
    if not options.hashed_output:
        indices, values, shape = _crossed(columns, lambda row: b"_X_".join(map(_text, row)))
        return [indices, texts(values), shape]  # type: ignore[arg-type]
    first = options.hash_key & _MASK

    def combine(row: Sequence[_Feature]) -> int:
        return _number(reduce(_joined, map(_hash, row), first), options.num_buckets)

    indices, values, shape = _crossed(columns, combine)
    return [indices, np.array(values, np.int64), shape]


def _cross_texts(options: CountOptions, *operands: Array) -> list[Array]:
    *rest, separator = operands
    indices, values, shape = _crossed(_columns(options.N, rest), lambda row: separator.item().join(map(_text, row)))
    return [indices, texts(values), shape]  # type: ignore[arg-type]


def _cross_hashes(options: CountOptions, *operands: Array) -> list[Array]:
    *rest, buckets, strong, salt = operands
    key = (int(salt[0]) & _MASK, int(salt[1]) & _MASK)

    def hashed(feature: _Feature, is_dense: bool) -> int:
        if isinstance(feature, int):
            if is_dense and not strong:
                return feature & _MASK
            feature = (feature & 0xFFFFFFFF).to_bytes(4, "little")  # TensorFlow hashes four of the eight bytes
        return siphash(key, feature) if strong else fingerprint64(feature)

    def combine(row: Sequence[_Feature]) -> int:
        hashes = [hashed(feature, position >= options.N) for position, feature in enumerate(row)]
        return _number(reduce(_joined, hashes), int(buckets))

    indices, values, shape = _crossed(_columns(options.N, rest), combine)
    return [indices, np.array(values, np.int64), shape]


def _of(type_: TensorType | None) -> Callable[[CrossOptions, list[TensorSpec]], list[Result]]:
    def results(options: CrossOptions, inputs: list[TensorSpec]) -> list[Result]:
        values = type_ or (_INT64 if options.hashed_output else _STRING)
        return [(_INT64, None), (values, None), (_INT64, (2,))]

    return results


SPARSE_CROSS = operator("litecl.SparseCross", CrossOptions, _cross, _of(None))
SPARSE_CROSS_TEXTS = operator("litecl.SparseCrossTexts", CountOptions, _cross_texts, _of(_STRING))
SPARSE_CROSS_HASHED = operator("litecl.SparseCrossHashed", CountOptions, _cross_hashes, _of(_INT64))
