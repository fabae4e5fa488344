"""Arguments for TensorFlow's raw operators: arrays are fed, those in ``C`` are constants, and others attributes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from litecl.interpreter.graph import Array

_RANDOM = np.random.default_rng(14)


@dataclass(frozen=True)
class C:
    """An operand that is a constant of the model."""

    value: Array


def f(*shape: int) -> Array:
    """Return floats from -2 to 2."""
    return _RANDOM.uniform(-2, 2, shape).astype(np.float32)


def p(*shape: int) -> Array:
    """Return floats between 0 and 1."""
    return _RANDOM.uniform(0.1, 0.9, shape).astype(np.float32)


def z(*shape: int) -> Array:
    """Return complex numbers."""
    return (f(*shape) + 1j * f(*shape)).astype(np.complex64)


def i(*values: Any) -> Array:
    """Return int32."""
    return np.array(values, np.int32)


def n(*values: Any) -> Array:
    """Return int64."""
    return np.array(values, np.int64)


def s(*values: bytes) -> Array:
    """Return texts."""
    return np.array(values, object)


def b(*values: Any) -> Array:
    """Return booleans."""
    return np.array(values, bool)


def c(values: npt.ArrayLike, dtype: npt.DTypeLike = np.int32) -> C:
    """Return a constant."""
    return C(np.array(values, dtype))


def ct(*values: bytes) -> C:
    """Return constant texts."""
    return C(s(*values))


def of(kind: Any, *shape: int) -> Array:
    """Return random numbers of an integer type."""
    info = np.iinfo(kind)
    return _RANDOM.integers(info.min, info.max, shape, kind, endpoint=True)
