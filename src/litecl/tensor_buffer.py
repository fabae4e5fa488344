"""LiteRT's buffers: the memory of one input or output of a ``CompiledModel``."""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np

from litecl.delegate.devices import user_buffer
from litecl.interpreter.arguments import index
from litecl.interpreter.buffers import Buffer
from litecl.interpreter.device_tensor import DeviceTensor
from litecl.interpreter.errors import ArgumentError, ModelError, ShapeError
from litecl.interpreter.graph import Array, Shape

Guard = AbstractContextManager[Any]


class TensorBuffer:
    """Host memory with a type and a shape. Buffers of a ``CompiledModel`` alias device memory if possible.

    array: the memory itself, without a copy; it has the latest run's values only until the next run.
    """

    def __init__(self, array: Array, *, is_users: bool = False, guard: Guard | None = None) -> None:
        self._memory: Array | None = array
        self._guard = nullcontext() if guard is None else guard  # held while memory is exchanged, read or written
        self.is_users = is_users  # the user's memory is never exchanged

    @classmethod
    def create_from_host_memory(cls, data_array: Array) -> Self:
        """Return a buffer on a numpy array, which runs read and write in place.

        Raises ModelError for an array that is not C-contiguous.
        """
        _require_array(data_array)
        if not data_array.flags.c_contiguous:
            raise ModelError("data_array must be C-contiguous for zero-copy host-memory binding")
        return cls(data_array, is_users=True)

    @classmethod
    def from_cl_mem(cls, buffer: Any, shape: Sequence[int], dtype: Any = np.float32) -> "TensorBuffer":
        """Return a buffer on your ``pyopencl.Buffer``, or a part of one, at least as large as the tensor.

        A model compiled for its context (``EnvironmentOptions(cl_context=...)``) reads and writes it without a copy.
        Finish your queued work on it before a run; a run returns when its own work is done. Raises ArgumentError for
        another object, and ShapeError for a buffer that is too small.
        """
        return _on_cl_mem(user_buffer(buffer), tuple(int(n) for n in shape), _dtype(dtype))

    @classmethod
    def from_device_tensor(cls, tensor: DeviceTensor) -> "TensorBuffer":
        """Return a buffer on a ``DeviceTensor``, which signature runners take too.

        A run reads and writes it in place. Raises ArgumentError for another object.
        """
        if not isinstance(tensor, DeviceTensor):
            raise ArgumentError(f"expected a DeviceTensor, got {type(tensor).__name__}")
        return _DeviceBuffer(tensor)

    @property
    def on_device(self) -> DeviceTensor | None:
        """The ``DeviceTensor`` behind this buffer; None for host memory."""
        return None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    @property
    def shape(self) -> Shape:
        """The shape."""
        return tuple(self.array.shape)

    @property
    def array(self) -> Array:
        """The memory itself. Raises ModelError once the buffer has been destroyed."""
        if self._memory is None:
            raise ModelError("TensorBuffer has been destroyed")
        return self._memory

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<{kind}: destroyed>" if self.is_destroyed else f"<{kind}: {self.dtype}{[*self.shape]}>"

    @property
    def is_destroyed(self) -> bool:
        """True once ``destroy`` has released the memory."""
        return self._memory is None

    def holds(self, memory: Array) -> bool:
        """Return whether the buffer's memory is this array."""
        return self._memory is memory

    def exchange(self, memory: Array) -> None:
        """Replace the memory by that of a ``CompiledModel``'s latest run."""
        self._memory = memory

    def write(self, data_array: Array) -> None:
        """Copy an array into the buffer. Raises ShapeError unless type and number of elements match."""
        _require_array(data_array)
        if data_array.dtype != self.dtype:
            raise ShapeError(f"write: expected {self.dtype}, got {data_array.dtype}")
        if data_array.size != math.prod(self.shape):
            raise ShapeError(
                f"write: expected {math.prod(self.shape)} elements {list(self.shape)}, got {list(data_array.shape)}"
            )
        self._put(data_array.reshape(self.shape))

    def read(self, num_elements: int | None = None, output_dtype: Any = None) -> Array:
        """Return a copy of the first elements, in one dimension; by default all, in the buffer's shape.

        Raises ShapeError for a type other than the buffer's, or for more elements than it has.
        """
        size, dtype = math.prod(self.shape), self.dtype if output_dtype is None else _dtype(output_dtype)
        if dtype != self.dtype:
            raise ShapeError(f"read: the buffer holds {self.dtype}, asked for {dtype}")
        if num_elements is not None and not 0 <= index("num_elements", num_elements) <= size:
            raise ShapeError(f"read: the buffer has {size} elements, asked for {num_elements}")
        value = self._got()
        return value if num_elements is None else value.reshape(-1)[:num_elements]

    def _put(self, value: Array) -> None:
        with self._guard:
            self.array[...] = value

    def _got(self) -> Array:
        with self._guard:
            return self.array.copy()

    def get_tensor_details(self) -> dict[str, Any]:
        """Return "dtype" and "shape"."""
        return {"dtype": dtype_name(self.dtype), "shape": list(self.shape)}

    def destroy(self) -> None:
        """Release the memory; any later use raises ModelError."""
        self._memory = None


class _DeviceBuffer(TensorBuffer):
    """A buffer on a tensor in device memory."""

    def __init__(self, tensor: DeviceTensor) -> None:
        self._tensor: DeviceTensor | None = tensor
        self._spec = tensor.shape, tensor.dtype
        self.is_users = True

    @property
    def on_device(self) -> DeviceTensor:
        if self._tensor is None:
            raise ModelError("TensorBuffer has been destroyed")
        return self._tensor

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._spec[1]

    @property
    def shape(self) -> Shape:
        return self._spec[0]

    @property
    def array(self) -> Array:
        raise ModelError("array: this buffer is device memory: read() copies it to the host")

    @property
    def is_destroyed(self) -> bool:
        return self._tensor is None

    def holds(self, memory: Array) -> bool:
        return False

    def _put(self, value: Array) -> None:
        self.on_device.write(value)

    def _got(self) -> Array:
        return self.on_device.read()

    def destroy(self) -> None:
        self._tensor = None


def _on_cl_mem(memory: Buffer, shape: Shape, dtype: np.dtype[Any]) -> _DeviceBuffer:
    if min(shape, default=1) < 0 or dtype == np.object_:
        raise ShapeError(f"from_cl_mem: expected a shape and a type of numbers, got {dtype}{list(shape)}")
    if (need := size_bytes(shape, dtype)) > (size := memory.size_bytes):
        raise ShapeError(f"from_cl_mem: {dtype}{list(shape)} takes {need} bytes, the buffer has {size}")
    return _DeviceBuffer(DeviceTensor.on(memory, shape, dtype))


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return a type's name in LiteRT's dictionaries."""
    return "string" if dtype == np.object_ else dtype.name


def size_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return a tensor's size in bytes; 0 for strings, whose size depends on their values."""
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
