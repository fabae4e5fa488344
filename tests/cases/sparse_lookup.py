"""Cases of HASHTABLE_LOOKUP, EMBEDDING_LOOKUP_SPARSE and SKIP_GRAM."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.lsh_projection import LSH_PROJECTION, LSHProjectionOptions
from litecl.interpreter.ops.skip_gram import SKIP_GRAM, SkipGramOptions
from litecl.interpreter.ops.sparse_lookup import (
    EMBEDDING_LOOKUP_SPARSE,
    HASHTABLE_LOOKUP,
    EmbeddingLookupSparseOptions,
)

_random = Random(67)
_KEYS = i32(-11, 0, 12, 1234)


def _strings(*values: bytes) -> Array:
    result = np.empty(len(values), np.object_)
    result[:] = values
    return result


def _lookup(name: str, values: Array) -> Case:
    return Case(name, HASHTABLE_LOOKUP, NoOptions(), [i32(1234, -292, -11, 0, 99999), _KEYS, values])


def _sparse(name: str, combiner: int, ids: Array, indices: Array, shape: Array, table: Array) -> Case:
    weights = np.abs(_random.normal(ids.size)) + 0.5
    return Case(
        name,
        EMBEDDING_LOOKUP_SPARSE,
        EmbeddingLookupSparseOptions(combiner),
        [ids, indices, shape, weights.astype(np.float32), table],
    )


def _projection(name: str, kind: int, x: Array, weighted: bool) -> Case:
    seeds = _random.normal(3, 4)
    weights = [_random.normal(len(x))] if weighted else []
    return Case(name, LSH_PROJECTION, LSHProjectionOptions(kind), [seeds, x, *weights])


def _grams(name: str, text: bytes, *options: int) -> Case:
    return Case(name, SKIP_GRAM, SkipGramOptions(options[0], options[1], bool(options[2])), [_strings(text)])


_TEXT = b"The quick\t brown fox\n jumps over the lazy dog"

CASES = (
    _lookup("vectors", _random.normal(4, 3)),
    _lookup("numbers", _random.normal(4)),
    _lookup("strings", _strings(b"one", b"", b"three", b"four")),
    *(
        _sparse(f"combiner {combiner} {name}", combiner, *arguments)
        for combiner in (0, 1, 2)
        for name, arguments in {
            "rows": (i32(1, 3, 0, 2), i32([[0, 0], [2, 0], [2, 1], [3, 0]]), i32(4, 2), _random.normal(4, 3)),
            "deeper": (i32(1, 3, 0), i32([[0, 0, 0], [1, 0, 0], [1, 0, 1]]), i32(2, 2, 2), _random.normal(4, 3, 2)),
        }.items()
    ),
    _projection("sparse", 1, i32(5, -7, 1000), False),
    _projection("dense", 2, i32(5, -7, 1000), True),
    # Keys of every length that the hash tells apart.
    *(
        _projection(f"{n} bytes", 2, _random.integers(20, n, low=-128, high=128, dtype=np.int8), False)
        for n in (1, 4, 5, 12, 13, 20, 28, 29, 60, 61, 124, 125, 200)
    ),
    _grams("pairs", _TEXT, 2, 0, 0),
    _grams("skips", _TEXT, 2, 2, 0),
    _grams("all", _TEXT, 3, 1, 1),
    _grams("too few words", b"alone", 2, 1, 0),
)
