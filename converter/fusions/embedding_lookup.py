"""Lowers lookups of table rows, (table [N, ...], ids [B]), to EMBEDDING_LOOKUP.

TensorFlow's guide on operation fusion names the composite ``embedding_lookup``, its converter ``embedding_matmul``.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from litecl.converter.composites import Composite
from litecl.converter.fusions.fusion import Fusion, expect
from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.schema import TensorType

_NAMES = ("embedding_lookup", "embedding_matmul", "lingvo.EmbeddingLookup")


def _matches(name: str, attrs: Mapping[str, Any]) -> bool:
    return name in _NAMES


def _check(composite: Composite) -> str | None:
    wrong = expect(composite, range(2, 3), range(1, 2))
    if wrong is not None:
        return wrong
    table, ids = composite.inputs
    if ids.type not in (TensorType.INT32, TensorType.INT64):
        return f"expected integers as ids, got {ids.type.name}"
    if table.rank is None or table.rank < 2:
        return f"expected a table of rank 2 or more, got {table.shape}"
    if ids.rank is None or (ids.rank != 1 and (ids.shape or ()).count(None) > 1):
        return f"expected ids of rank 1, or with one open dimension at most, got {ids.shape}"
    return None


def _rewrite(b: Builder, composite: Composite) -> Value:
    table, ids = composite.inputs
    ids = b.int32(ids)
    if ids.rank == 1:
        return b.op(EMBEDDING_LOOKUP, [ids, table])
    shape, row = ids.shape or (), (table.shape or ())[1:]
    count = None if None in shape else int(np.prod([d for d in shape if d is not None]))
    flat = b.op(RESHAPE, [ids, b.const([-1], np.int32)], ReshapeOptions((-1,)), type=ids.type, shape=(count,))
    rows = b.op(EMBEDDING_LOOKUP, [flat, table], shape=(count, *row))
    return b.reshape(rows, [-1 if d is None else d for d in (*shape, *row)])


EMBEDDING = Fusion("embedding_lookup", _rewrite, _check, _matches)
