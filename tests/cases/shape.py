"""Cases of SHAPE and RANK."""

from litecl.cases import Case
from litecl.cases.values import Random
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.shape import RANK, SHAPE, ShapeOptions
from litecl.interpreter.schema import TensorType

_random = Random(14)
_folded = "constant: computed at preparation"

CASES = (
    Case("int32", SHAPE, ShapeOptions(TensorType.INT32), [_random.normal(2, 3, 4)], device=_folded),
    Case("int64", SHAPE, ShapeOptions(TensorType.INT64), [_random.integers(2, 0)], device=_folded),
    Case("rank 3", RANK, NoOptions(), [_random.normal(2, 3, 4)], device=_folded),
    Case("vector", RANK, NoOptions(), [_random.normal(4)], device=_folded),
)
