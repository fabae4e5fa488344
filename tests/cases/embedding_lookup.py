"""Cases of EMBEDDING_LOOKUP."""

import numpy as np

from cases import Case, rng
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP

_random = rng(32)


def _f(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def _indices(*values: int) -> Array:
    return np.array(values, np.int32)


CASES = (
    Case("rank 2", EMBEDDING_LOOKUP, NoOptions(), [_indices(3, 0, 2, 3), _f(4, 5)], constants=frozenset({1})),
    Case("rank 4", EMBEDDING_LOOKUP, NoOptions(), [_indices(1, 2), _f(3, 2, 4, 5)], constants=frozenset({1})),
    Case("one index", EMBEDDING_LOOKUP, NoOptions(), [_indices(6), _f(7, 1)], constants=frozenset({1})),
    Case("table that is not constant", EMBEDDING_LOOKUP, NoOptions(), [_indices(1, 0), _f(2, 3)]),
)
