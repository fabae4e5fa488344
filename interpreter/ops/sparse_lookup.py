"""HASHTABLE_LOOKUP and EMBEDDING_LOOKUP_SPARSE: rows of a table by key, and weighted sums of rows."""

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import ADDS_ZEROS
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.schema import TensorType

_INT = (TensorType.INT32,)
_SUM, _MEAN, _SQRTN = 0, 1, 2


@dataclass(frozen=True)
class EmbeddingLookupSparseOptions:
    combiner: int = 0


def _infer_hashtable(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    lookup, keys, values = require.present(inputs, 3)
    for spec in (lookup, keys):
        require.types(spec, _INT)
        require.rank(spec, exactly=1)
    require.rank(values, at_least=1)
    if keys.static_shape[0] != values.static_shape[0]:
        raise ShapeError(f"{keys.static_shape[0]} keys for {values.static_shape[0]} values")
    count = lookup.static_shape[0]
    return [
        TensorSpec(values.type, (count, *values.static_shape[1:])),
        TensorSpec(TensorType.UINT8, (count,)),
    ]


def _run_hashtable(options: NoOptions, inputs: Inputs) -> list[Array]:
    """Look up ascending keys; rows not found are zeros (empty strings), and the second output marks rows found."""
    lookup, keys, values = require.arrays(inputs, 3)
    if not keys.size:
        found = np.zeros(lookup.shape, np.bool_)
        rows = np.zeros((len(lookup), *values.shape[1:]), values.dtype)
    else:
        positions = np.minimum(np.searchsorted(keys, lookup), keys.size - 1)
        found = keys[positions] == lookup
        rows = values[positions]
    rows[~found] = b"" if values.dtype == np.object_ else 0
    return [rows, found.astype(np.uint8)]


def _infer_embedding(options: EmbeddingLookupSparseOptions, inputs: Specs) -> list[TensorSpec]:
    ids, indices, shape, weights, table = require.present(inputs, 5)
    for spec, rank in ((ids, 1), (indices, 2), (shape, 1)):
        require.types(spec, _INT)
        require.rank(spec, exactly=rank)
    for spec in (weights, table):
        require.types(spec, types.FLOAT)
    require.rank(weights, exactly=1)
    require.rank(table, at_least=2)
    if not ids.static_shape[0] == indices.static_shape[0] == weights.static_shape[0]:
        raise ShapeError(f"{ids.size} ids, {indices.static_shape[0]} indices and {weights.size} weights")
    if indices.static_shape[1] != shape.static_shape[0] or not indices.static_shape[1]:
        raise ShapeError(f"indices of {indices.static_shape[1]} numbers for {shape.static_shape[0]} dimensions")
    if options.combiner not in (_SUM, _MEAN, _SQRTN):
        raise ShapeError(f"expected a combiner of 0 to 2, got {options.combiner}")
    values = require.integers(shape)
    if values is None:
        return [TensorSpec(TensorType.FLOAT32, None)]
    if min(values[:-1], default=0) < 0:
        raise ShapeError(f"dense shape must not be negative, got {values}")
    return [TensorSpec(TensorType.FLOAT32, (*values[:-1], *table.static_shape[1:]))]


def _run_embedding(options: EmbeddingLookupSparseOptions, inputs: Inputs) -> list[Array]:
    """Combine rows whose indices differ only in the last number; each combination is a bucket of the output."""
    ids, indices, shape, weights, table = require.arrays(inputs, 5)
    require.indices(ids, len(table))
    outer = tuple(shape[:-1].tolist())
    parts = [require.indices(indices[:, i], size) for i, size in enumerate(outer)]
    bucket = np.ravel_multi_index(parts, outer) if outer else np.zeros(len(ids), np.int64)
    buckets = require.elements(outer)
    result = np.zeros((buckets, *table.shape[1:]), np.float32)
    np.add.at(result, bucket, table[ids] * weights.reshape(-1, *(1,) * (table.ndim - 1)))
    if options.combiner != _SUM:
        total = np.zeros(buckets, np.float32)
        np.add.at(total, bucket, weights if options.combiner == _MEAN else weights * weights)
        divisor = total if options.combiner == _MEAN else np.sqrt(total)
        used = np.unique(bucket)
        with np.errstate(all="ignore"):
            result[used] /= divisor[used].reshape(-1, *(1,) * (table.ndim - 1))
    return [result.reshape(*outer, *table.shape[1:])]


HASHTABLE_LOOKUP = Op(
    "HASHTABLE_LOOKUP", options=NoOptions, infer=_infer_hashtable, run=_run_hashtable, integers=ADDS_ZEROS
)
EMBEDDING_LOOKUP_SPARSE = Op(
    "EMBEDDING_LOOKUP_SPARSE", options=EmbeddingLookupSparseOptions, infer=_infer_embedding, run=_run_embedding
)
