"""LiteRT's buffers: the memory of one input or output of a ``CompiledModel``."""

import math
from typing import Any, Self

import numpy as np

from litecl.interpreter.arguments import index
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array


class TensorBuffer:
    """Memory of the host with a type and a shape. Those that a ``CompiledModel`` makes are, where they can be, the
    memory that the device reads and writes.

    array: the memory itself, without a copy; it is that of the newest run only until the next one.
    """

    def __init__(self, array: Array, *, is_users: bool = False) -> None:
        self._memory: Array | None = array
        self.is_users = is_users  # and not to be exchanged for other memory

    @classmethod
    def create_from_host_memory(cls, data_array: Array) -> Self:
        """Return a buffer that is a numpy array: inputs are read from there, and outputs are written to it.

        Raises ModelError for what is no contiguous array.
        """
        _require_array(data_array)
        if not data_array.flags.c_contiguous:
            raise ModelError("data_array must be C-contiguous for zero-copy host-memory binding")
        return cls(data_array, is_users=True)

    @property
    def array(self) -> Array:
        """The memory itself. Raises ModelError once the buffer has been destroyed."""
        if self._memory is None:
            raise ModelError("TensorBuffer has been destroyed")
        return self._memory

    @property
    def is_destroyed(self) -> bool:
        """Whether it has let go of its memory."""
        return self._memory is None

    def holds(self, memory: Array) -> bool:
        """Return whether it is this very array."""
        return self._memory is memory

    def exchange(self, memory: Array) -> None:
        """Take other memory for its own: a ``CompiledModel`` does so with what it has written."""
        self._memory = memory

    def write(self, data_array: Array) -> None:
        """Copy an array into the buffer. Raises ShapeError unless type and number of elements are the buffer's."""
        _require_array(data_array)
        array = self.array
        if data_array.dtype != array.dtype:
            raise ShapeError(f"write: expected {array.dtype}, got {data_array.dtype}")
        if data_array.size != array.size:
            raise ShapeError(f"write: expected {array.size} elements {list(array.shape)}, got {list(data_array.shape)}")
        array[...] = data_array.reshape(array.shape)

    def read(self, num_elements: int | None = None, output_dtype: Any = None) -> Array:
        """Return a copy of the first elements, in one dimension; by default all, in the buffer's shape.

        Raises ShapeError for another type than the buffer's, or more elements than it has.
        """
        array = self.array
        dtype = array.dtype if output_dtype is None else _dtype(output_dtype)
        if dtype != array.dtype:
            raise ShapeError(f"read: the buffer holds {array.dtype}, asked for {dtype}")
        if num_elements is None:
            return array.copy()
        if not 0 <= index("num_elements", num_elements) <= array.size:
            raise ShapeError(f"read: the buffer has {array.size} elements, asked for {num_elements}")
        return array.reshape(-1)[:num_elements].copy()

    def get_tensor_details(self) -> dict[str, Any]:
        """Return "dtype" and "shape"."""
        return {"dtype": dtype_name(self.array.dtype), "shape": list(self.array.shape)}

    def destroy(self) -> None:
        """Let go of the memory; any later use raises ModelError."""
        self._memory = None


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a type in LiteRT's dictionaries."""
    return "string" if dtype == np.object_ else dtype.name


def size_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return the bytes that a tensor takes; 0 for strings, whose size depends on their values."""
    return 0 if dtype == np.object_ else math.prod(shape) * dtype.itemsize


def _require_array(data: Any) -> None:
    if not isinstance(data, np.ndarray):
        raise ModelError("data_array must be a NumPy array")


def _dtype(given: Any) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(given)
        return dtype
    except TypeError as error:
        raise ModelError(f"Unsupported dtype: {given}") from error
