"""Cases of CAST and BITCAST."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, unfit
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.cast import BITCAST, CAST, CastOptions
from litecl.interpreter.schema import TensorType as T

_random = Random(34)
_TYPES = (T.FLOAT32, T.INT32, T.INT64, T.BOOL, T.INT8, T.UINT8, T.INT16, T.UINT16, T.UINT32, T.FLOAT16, T.FLOAT64)
_WHOLE = (T.INT8, T.UINT8, T.INT16, T.UINT16, T.INT32, T.UINT32, T.INT64)
_NARROW = (T.INT4, T.INT2, T.UINT4)
_WILD = np.array([-1e20, -3e9, -200.7, -1.5, -0.0, 0.5, 1.5, 300.2, 70000.0, 5e9, 1e20, np.inf, -np.inf], np.float32)


def _cast(name: str, x: Array, to: T) -> Case:
    device = unfit(x, np.ones(1, to.dtype)) or ("rounds" if to == T.FLOAT16 else None)
    return Case(name, CAST, CastOptions(T.of(x.dtype), to), [x], device=device)


def _bitcast(name: str, x: Array, to: T) -> Case:
    outputs = (TensorSpec(to, None),)
    return Case(name, BITCAST, NoOptions(), [x], outputs=outputs, device="shape known at run time")


CASES = (
    *(_cast(f"{a.name} to {b.name}", _random.of(a, 3, 4), b) for a in _TYPES for b in _TYPES if a != b),
    *(_cast(f"saturating {to.name}", _WILD, to) for to in _WHOLE),
    *(_cast(f"wrapping {to.name}", i32(-1, 300, 70000, -(2**31)), to) for to in (T.INT8, T.UINT8, T.INT16)),
    *(Case(f"saturating {to.name}", CAST, CastOptions(T.FLOAT32, to), [_WILD], device="few bits") for to in _NARROW),
    _cast("rank 0", np.array(2.7, np.float32), T.INT32),
    _cast("empty", np.zeros((0, 3), np.float32), T.INT32),
    _cast("to complex", _random.normal(4), T.COMPLEX64),
    _cast("from complex", np.array([1 + 2j, -3j], np.complex64), T.FLOAT32),
    _bitcast("same size", _random.normal(3, 4), T.INT32),
    _bitcast("into parts", _random.normal(3), T.UINT8),
    _bitcast("of parts", _random.integers(3, 4, dtype=np.int8), T.FLOAT32),
)
