"""Cases of FILL, ZEROS_LIKE and RANGE."""

from typing import Any

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32, scalar, unfit
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.fill import FILL, RANGE, ZEROS_LIKE

_random = Random(25)
_dynamic = "length known at run time"


def _fill(name: str, value: Array, *dims: int, device: str | None = None) -> Case:
    inputs = [i32(*dims), value]
    return Case(name, FILL, NoOptions(), inputs, frozenset({0}), device=device or unfit(value))


def _range(name: str, start: float, limit: float, delta: float, dtype: Any = np.int32) -> Case:
    return Case(name, RANGE, NoOptions(), [scalar(v, dtype) for v in (start, limit, delta)], device=_dynamic)


CASES = (
    _fill("matrix", scalar(2.5, np.float32), 2, 3),
    _fill("int32", scalar(7), 5),
    _fill("int64", scalar(2**40, np.int64), 2, 1, 2),
    _fill("bool", scalar(True, np.bool_), 3),
    _fill("rank 0", scalar(1.5, np.float32)),
    _fill("empty", scalar(1.5, np.float32), 0, 3, device="no elements"),
    Case("float", ZEROS_LIKE, NoOptions(), [_random.normal(2, 3)]),
    Case("int32", ZEROS_LIKE, NoOptions(), [_random.integers(4)]),
    Case("int64", ZEROS_LIKE, NoOptions(), [_random.integers(4, dtype=np.int64)]),
    _range("ascending", 0, 7, 1),
    _range("steps", 2, 11, 3),
    _range("steps onto the limit", 2, 11, 9),
    _range("descending", 10, -3, -4),
    _range("int64", 0, 5, 2, np.int64),
    _range("float", 0.0, 2.0, 0.3, np.float32),
    _range("float, a step more in float64", 0.0, 0.3, 0.1, np.float32),
    _range("float, steps add up", 0.0, 100.0, 0.1, np.float32),
    _range("float descending", 1.0, -1.0, -0.5, np.float32),
)
