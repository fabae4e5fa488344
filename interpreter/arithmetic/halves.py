"""FLOAT16 as tensors are stored: what is computed of them is computed in float32, and rounded once."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Inputs, Run
from litecl.interpreter.schema import TensorType


def in_floats(run: Run, outputs: Sequence[TensorSpec]) -> Run:
    """Return a kernel of float32 as one whose inputs may be FLOAT16; its results become of the types of ``outputs``."""

    def kernel(options: object, inputs: Inputs) -> list[Array]:
        wide = [None if x is None else x.astype(np.float32) if x.dtype == np.float16 else x for x in inputs]
        with np.errstate(over="ignore"):  # what is beyond the largest half is infinite
            return [result.astype(spec.dtype) for result, spec in zip(run(options, wide), outputs, strict=True)]

    return kernel


def is_half(spec: TensorSpec) -> bool:
    """Return whether a tensor is FLOAT16."""
    return spec.type == TensorType.FLOAT16
