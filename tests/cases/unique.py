"""Cases of UNIQUE."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32
from litecl.interpreter.ops.unique import UNIQUE, UniqueOptions
from litecl.interpreter.schema import TensorType

_random = Random(29)
_dynamic = "shape known at run time"

CASES = (
    Case("int32", UNIQUE, UniqueOptions(), [i32(5, 2, 5, 5, 0, 2)], device=_dynamic),
    Case("float", UNIQUE, UniqueOptions(), [np.round(_random.normal(20, scale=1.0)) + 0.5], device=_dynamic),
    Case("int64 positions", UNIQUE, UniqueOptions(TensorType.INT64), [i32(3, 3, 1)], device=_dynamic),
    Case("all equal", UNIQUE, UniqueOptions(), [i32(4, 4, 4)], device=_dynamic),
)
