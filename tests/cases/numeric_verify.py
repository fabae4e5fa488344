"""Cases of NumericVerify."""

from typing import Any

import numpy as np

from litecl.cases import Case
from litecl.cases.quantize import affine
from litecl.cases.values import Random
from litecl.interpreter.ops.numeric_verify import NUMERIC_VERIFY, NumericVerifyOptions
from litecl.interpreter.ops.quantize import quantize
from litecl.interpreter.schema import TensorType as T

_random = Random(139)


def _case(name: str, type_: T, zero_point: int, **options: Any) -> Case:
    """Numbers within the range of 8 bits, beside what is stored of them."""
    real, scale = np.clip(_random.normal(3, 5), -5, 5), affine(0.05, zero_point)
    inputs = [quantize(real, scale, type_), real]
    return Case(name, NUMERIC_VERIFY, NumericVerifyOptions(**options), inputs, quantization={0: scale})


_half = _random.normal(2, 3)

CASES = (
    _case("INT8", T.INT8, -7),
    _case("UINT8, within the tolerance", T.UINT8, 128, tolerance=0.6, log_if_failed=True),
    _case("INT16, a tolerance too small to count", T.INT16, 0, tolerance=0.01, log_if_failed=True),
    Case("FLOAT16", NUMERIC_VERIFY, NumericVerifyOptions(), [_half.astype(np.float16), _half]),
)
