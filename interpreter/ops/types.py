"""Sets of element types that operators accept."""

from litecl.interpreter.schema import TensorType

FLOAT = (TensorType.FLOAT32,)
REAL = (TensorType.FLOAT32, TensorType.INT32)
NUMBER = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)
BOOL = (TensorType.BOOL,)
INDEX = (TensorType.INT32, TensorType.INT64)
BITS = (
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.INT16,
    TensorType.UINT16,
    TensorType.INT32,
    TensorType.UINT32,
)
ANY = tuple(TensorType)
