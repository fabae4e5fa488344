"""Kernels on FLOAT16 tensors: they compute in float32 and round once."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Inputs, Run
from litecl.interpreter.schema import TensorType


def in_floats(run: Run, outputs: Sequence[TensorSpec]) -> Run:
    """Wrap a float32 kernel whose inputs may be FLOAT16; its results get the types of ``outputs``."""

    def kernel(options: object, inputs: Inputs) -> list[Array]:
        wide = [None if x is None else x.astype(np.float32) if x.dtype == np.float16 else x for x in inputs]
        with np.errstate(over="ignore"):  # values beyond the largest half become infinite
            return [result.astype(spec.dtype) for result, spec in zip(run(options, wide), outputs, strict=True)]

    return kernel


def is_half(spec: TensorSpec) -> bool:
    """Return whether a tensor is FLOAT16."""
    return spec.type == TensorType.FLOAT16
