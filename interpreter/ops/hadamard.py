"""aeq.hadamard_rotation: blocks of rows times the Hadamard matrix of their size, over the root of the size.

Formula: kernels/hadamard_rotation.cc, a fast Walsh-Hadamard transform. It does not read its random_binary_vector.
"""

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class HadamardRotationOptions:
    hadamard_size: int = 0
    random_binary_vector: tuple[int, ...] = ()


def _infer(options: HadamardRotationOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.typed(inputs, TensorType.FLOAT32)
    require.rank(x, at_least=2, at_most=3)
    size = options.hadamard_size
    if size < 1 or size & (size - 1) or x.static_shape[-1] % size:
        raise ShapeError(f"expected rows of blocks of a power of two, got {size} for shape {list(x.static_shape)}")
    return [TensorSpec(x.type, x.shape)]


def _run(options: HadamardRotationOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    size, half = options.hadamard_size, 1
    result = x.reshape(-1, size)
    while half < size:
        pairs = result.reshape(-1, 2, half)
        result = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        half *= 2
    return [result.reshape(x.shape) * scale_of(size)]


def scale_of(size: int) -> np.float32:
    """Return the factor of every element that makes the matrix orthogonal."""
    return np.float32(np.float32(1) / np.sqrt(np.float32(size)))


HADAMARD_ROTATION = Op("aeq.hadamard_rotation", options=HadamardRotationOptions, infer=_infer, run=_run, custom=True)
