"""Hadamard rotation: spreads outliers of weights over their rows before rounding.

Rows of weights and of their inputs are multiplied by one orthogonal matrix, which preserves their products. The matrix
has blocks of ``size`` along its diagonal (ai_edge_quantizer, hadamard_rotation).
"""

from dataclasses import replace
from functools import cache

import numpy as np

from litecl.converter.quantization.gptq import Moments
from litecl.interpreter.graph import Array, TensorSpec


def rotation_size(depth: int, largest: int = 0) -> int:
    """Return the largest power of two that divides a row's length, up to ``largest`` unless that is 0."""
    size = depth & -depth
    while largest and size > largest:
        size //= 2
    return size


@cache
def hadamard(size: int) -> Array:
    """Return Sylvester's Hadamard matrix divided by the root of its size, [size, size] of float32."""
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return np.asarray(matrix / np.sqrt(size), np.float32)


def rotated(spec: TensorSpec, size: int) -> TensorSpec:
    """Return weights [units, depth] whose rows are rotated in blocks."""
    assert spec.data is not None
    blocks = spec.data.astype(np.float64).reshape(-1, size) @ hadamard(size).astype(np.float64)
    return replace(spec, data=blocks.astype(np.float32).reshape(spec.data.shape))


def rotated_moments(moments: Moments, size: int) -> Moments:
    """Return the mean products of rotated inputs."""
    matrix = np.kron(np.eye(len(moments.products) // size), hadamard(size).astype(np.float64))
    return Moments(matrix.T @ moments.products @ matrix)
