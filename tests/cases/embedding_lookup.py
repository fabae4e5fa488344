"""Cases of EMBEDDING_LOOKUP."""

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.schema import TensorType

_random = rng(32)


def _f(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def _indices(*values: int) -> Array:
    return np.array(values, np.int32)


def _quantized(
    name: str, type_: TensorType, top: int, rows: int, scales: int, inner: tuple[int, ...] = (6,), zeros: bool = False
) -> Case:
    """A table of integers, looked up as floats. zeros: whether some scales are zero."""
    table = _random.integers(-top, top + 1, (rows, *inner)).astype(np.int8).view(type_.dtype)
    values = _random.uniform(0.01, 0.1, scales).astype(np.float32)
    values[::2] *= not zeros
    quantization = Quantization(values, np.zeros(scales, np.int64))
    return Case(
        name,
        EMBEDDING_LOOKUP,
        NoOptions(),
        [_indices(2, 0, 3), table],
        constants=frozenset({1}),
        types={1: type_},
        quantization={1: quantization},
        outputs=[TensorSpec(TensorType.FLOAT32, (3, *inner))],
        version=4,
    )


CASES = (
    _quantized("8 bits, one scale", TensorType.INT8, 127, 4, 1),
    _quantized("8 bits, a scale a row", TensorType.INT8, 127, 4, 4),
    _quantized("signed bytes by the name of unsigned ones", TensorType.UINT8, 127, 4, 1),
    _quantized("4 bits, a scale a row", TensorType.INT4, 7, 5, 5),
    _quantized("4 bits, longer rows", TensorType.INT4, 7, 5, 5, (38,)),
    _quantized("8 bits, rank 3", TensorType.INT8, 127, 5, 5, (3, 11)),
    _quantized("8 bits, scales of zero", TensorType.INT8, 127, 4, 4, (20,), zeros=True),
    _quantized("4 bits, scales of zero", TensorType.INT4, 7, 4, 4, (20,), zeros=True),
    Case("rank 2", EMBEDDING_LOOKUP, NoOptions(), [_indices(3, 0, 2, 3), _f(4, 5)], constants=frozenset({1})),
    Case("rank 4", EMBEDDING_LOOKUP, NoOptions(), [_indices(1, 2), _f(3, 2, 4, 5)], constants=frozenset({1})),
    Case("one index", EMBEDDING_LOOKUP, NoOptions(), [_indices(6), _f(7, 1)], constants=frozenset({1})),
    Case("table that is not constant", EMBEDDING_LOOKUP, NoOptions(), [_indices(1, 0), _f(2, 3)]),
)
