"""Cases of BUCKETIZE."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import EDGES, Random
from litecl.interpreter.ops.bucketize import BUCKETIZE, BucketizeOptions

_random = Random(39)
# Halfway between floats and beside them.
_near = [16777217, 16777219, 16777220, 16777221, 16777218, -16777217, -16777215, 2**31 - 1]
_wide = BucketizeOptions((-16777216.0, 0.0, 16777218.0, 16777220.0, 2.0**53, 2.0**62, 3e38))
_boundaries = BucketizeOptions((-3.0, -0.5, 0.0, 1.5, 20.0))

CASES = (
    Case("float", BUCKETIZE, _boundaries, [_random.normal(3, 4)]),
    Case("on the boundaries", BUCKETIZE, _boundaries, [EDGES]),
    Case("int32", BUCKETIZE, _boundaries, [_random.integers(3, 4)]),
    Case("int64", BUCKETIZE, _boundaries, [_random.integers(5, dtype=np.int64)]),
    Case("int32 as floats", BUCKETIZE, _wide, [np.array(_near, np.int32)]),
    Case("int64 as floats", BUCKETIZE, _wide, [np.array([*_near, 2**53 - 1, 2**62 + 1, 2**62 - 1, -(2**63)])]),
    Case("float64", BUCKETIZE, _wide, [np.array([*_near, np.nan, -np.inf])], device="type FLOAT64"),
    Case("equal and infinite boundaries", BUCKETIZE, BucketizeOptions((-np.inf, 0.0, 0.0, -0.0, np.inf)), [EDGES]),
    Case("boundaries that are no numbers", BUCKETIZE, BucketizeOptions((1.0, np.nan, np.nan, 2.0)), [EDGES]),
    Case("no boundary", BUCKETIZE, BucketizeOptions(), [EDGES]),
    Case("many boundaries", BUCKETIZE, BucketizeOptions(tuple(np.linspace(-2, 2, 101))), [_random.normal(50, 40)]),
    Case("few boundaries, many elements", BUCKETIZE, _boundaries, [_random.normal(37, 5)]),
    Case("few boundaries, many int64", BUCKETIZE, _wide, [np.array([*_near, 2**53 - 1, 2**62 + 1, -(2**63)] * 5)]),
    Case("NaN and infinities", BUCKETIZE, _boundaries, [np.array([np.nan, np.inf, -np.inf, -0.0] * 9, np.float32)]),
    Case("one boundary", BUCKETIZE, BucketizeOptions((0.5,)), [EDGES]),
)
