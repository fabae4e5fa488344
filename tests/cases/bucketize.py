"""Cases of BUCKETIZE."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import EDGES, Random
from litecl.interpreter.ops.bucketize import BUCKETIZE, BucketizeOptions

_random = Random(39)
_boundaries = BucketizeOptions((-3.0, -0.5, 0.0, 1.5, 20.0))

CASES = (
    Case("float", BUCKETIZE, _boundaries, [_random.normal(3, 4)]),
    Case("on the boundaries", BUCKETIZE, _boundaries, [EDGES]),
    Case("int32", BUCKETIZE, _boundaries, [_random.integers(3, 4)]),
    Case("int64", BUCKETIZE, _boundaries, [_random.integers(5, dtype=np.int64)]),
    Case("one boundary", BUCKETIZE, BucketizeOptions((0.5,)), [EDGES]),
)
