"""BUCKETIZE: for every element, the number of boundaries that are not above it."""

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class BucketizeOptions:
    boundaries: tuple[float, ...] = ()


def _infer(options: BucketizeOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.types(x, (*types.NUMBER, TensorType.FLOAT64))
    if any(a > b for a, b in zip(options.boundaries, options.boundaries[1:], strict=False)):
        raise ShapeError(f"boundaries must ascend, got {options.boundaries}")
    return [TensorSpec(TensorType.INT32, x.shape)]


def _run(options: BucketizeOptions, inputs: Inputs) -> list[Array]:
    """Search like C++'s std::upper_bound, with integers as float32; NaN is above all boundaries."""
    (x,) = require.arrays(inputs, 1)
    x = x if x.dtype.kind == "f" else x.astype(np.float32)
    boundaries = np.array(options.boundaries, np.float32)
    buckets, lengths = np.zeros(x.shape, np.int64), np.full(x.shape, len(boundaries))
    while lengths.any():
        halves = lengths // 2
        upper = (lengths > 0) & ~(x < boundaries[np.minimum(buckets + halves, len(boundaries) - 1)])
        buckets = np.where(upper, buckets + halves + 1, buckets)
        lengths = np.where(upper, lengths - halves - 1, halves)
    return [buckets.astype(np.int32)]


BUCKETIZE = Op("BUCKETIZE", options=BucketizeOptions, infer=_infer, run=_run)
