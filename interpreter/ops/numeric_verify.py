"""NumericVerify: a dequantized tensor minus the original, in models made for debugging.

Formula: kernels/numeric_verify.cc. With ``log_if_failed`` and a tolerance of 0.1 or more, in steps of the scale, a
larger difference is an error.
"""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.arithmetic.fixed_point import affine, scale_of
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import InFloat
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.ops.quantize import dequantize
from litecl.interpreter.schema import TensorType

_LEAST_TOLERANCE = 0.1
_STORED = (TensorType.UINT8, TensorType.INT8, TensorType.INT16, TensorType.FLOAT16)


@dataclass(frozen=True)
class NumericVerifyOptions:
    tolerance: float = 0.0
    log_if_failed: bool = False

    @property
    def refuses(self) -> bool:
        """Return whether a difference beyond the tolerance is an error."""
        return self.log_if_failed and self.tolerance >= _LEAST_TOLERANCE


def _infer(options: NumericVerifyOptions, inputs: Specs) -> list[TensorSpec]:
    x, reference = require.present(inputs, 2)
    require.types(x, _STORED)
    require.types(reference, (TensorType.FLOAT32,))
    if x.shape != reference.shape:
        raise ShapeError(f"shapes differ: {list(x.static_shape)} and {list(reference.static_shape)}")
    return [TensorSpec(TensorType.FLOAT32, x.shape)]


def _bind(options: NumericVerifyOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    x, _ = require.present(inputs, 2)
    quantization = None if x.type == TensorType.FLOAT16 else affine(x)
    most = options.tolerance * float(scale_of(x)) if quantization is not None and options.refuses else np.inf

    def run(options: NumericVerifyOptions, inputs: Inputs) -> list[Array]:
        stored, reference = require.arrays(inputs, 2)
        real = stored.astype(np.float32) if quantization is None else dequantize(stored, quantization)
        difference = real - reference
        worst = float(np.abs(difference).max(initial=0.0))
        if worst > most:
            raise ModelError(f"expected differences of at most {most:.6g} by quantization, got {worst:.6g}")
        return [difference]

    return run


NUMERIC_VERIFY = Op(
    "NumericVerify",
    options=NumericVerifyOptions,
    infer=_infer,
    run=require.unbound,
    bind=_bind,
    custom=True,
    integers=InFloat("it compares integers with floats"),
)
