"""The enumerations of the TFLite schema (v3), under the schema's own names."""

from enum import IntEnum

import numpy as np
import numpy.typing as npt


class TensorType(IntEnum):
    """Element type of a tensor; ``dtype`` is the numpy type that holds its elements in memory."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    UINT8 = 3
    INT64 = 4
    STRING = 5
    BOOL = 6
    INT16 = 7
    COMPLEX64 = 8
    INT8 = 9
    FLOAT64 = 10
    COMPLEX128 = 11
    UINT64 = 12
    RESOURCE = 13
    VARIANT = 14
    UINT32 = 15
    UINT16 = 16
    INT4 = 17
    BFLOAT16 = 18
    INT2 = 19
    UINT4 = 20
    FLOAT8_E4M3FN = 21
    FLOAT8_E5M2 = 22

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The numpy type in memory: packed 4-bit and 2-bit integers take a byte each, strings are objects."""
        return _DTYPES[self]

    @classmethod
    def of(cls, dtype: npt.DTypeLike) -> "TensorType":
        """Return the tensor type of a numpy type. Raises KeyError if TFLite has none."""
        return _TYPES[np.dtype(dtype)]


_DTYPES: dict[TensorType, np.dtype[np.generic]] = {
    TensorType.FLOAT32: np.dtype(np.float32),
    TensorType.FLOAT16: np.dtype(np.float16),
    TensorType.INT32: np.dtype(np.int32),
    TensorType.UINT8: np.dtype(np.uint8),
    TensorType.INT64: np.dtype(np.int64),
    TensorType.STRING: np.dtype(np.object_),
    TensorType.BOOL: np.dtype(np.bool_),
    TensorType.INT16: np.dtype(np.int16),
    TensorType.COMPLEX64: np.dtype(np.complex64),
    TensorType.INT8: np.dtype(np.int8),
    TensorType.FLOAT64: np.dtype(np.float64),
    TensorType.COMPLEX128: np.dtype(np.complex128),
    TensorType.UINT64: np.dtype(np.uint64),
    TensorType.UINT32: np.dtype(np.uint32),
    TensorType.UINT16: np.dtype(np.uint16),
}
_TYPES = {dtype: type_ for type_, dtype in _DTYPES.items()}
_DTYPES |= {
    TensorType.RESOURCE: np.dtype(np.int32),
    TensorType.VARIANT: np.dtype(np.int32),
    TensorType.INT4: np.dtype(np.int8),
    TensorType.INT2: np.dtype(np.int8),
    TensorType.UINT4: np.dtype(np.uint8),
    TensorType.BFLOAT16: np.dtype(np.uint16),
    TensorType.FLOAT8_E4M3FN: np.dtype(np.uint8),
    TensorType.FLOAT8_E5M2: np.dtype(np.uint8),
}


class ActivationFunctionType(IntEnum):
    """The activation that an operator applies to its result."""

    NONE = 0
    RELU = 1
    RELU_N1_TO_1 = 2
    RELU6 = 3
    TANH = 4
    SIGN_BIT = 5


class Padding(IntEnum):
    """The treatment of a window that reaches past the border."""

    SAME = 0
    VALID = 1


class MirrorPadMode(IntEnum):
    """A mirrored border that repeats the edge element (SYMMETRIC) or does not (REFLECT)."""

    REFLECT = 0
    SYMMETRIC = 1


class LSTMKernelType(IntEnum):
    """FULL: the LSTM of 20 or 24 inputs; BASIC: the one of 5 inputs and 4 outputs."""

    FULL = 0
    BASIC = 1


class FullyConnectedOptionsWeightsFormat(IntEnum):
    """Storage of FULLY_CONNECTED weights."""

    DEFAULT = 0
    SHUFFLED4x16INT8 = 1
