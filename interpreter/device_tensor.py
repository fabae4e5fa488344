"""Tensors that stay on a model's device between calls, such as the caches of a language model."""

import math
import operator
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from os import PathLike
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from litecl.interpreter.buffers import Buffer, HostBuffer
from litecl.interpreter.errors import ArgumentError, ModelError, ShapeError
from litecl.interpreter.graph import Array, Shape

_Result = TypeVar("_Result")
_ACQUIRE, _RELEASE = operator.methodcaller("acquire", False), operator.methodcaller("release")  # of locks


class DeviceTensor:
    """A tensor in the memory of the device that runs a model; pass it to signatures in place of an array.

    shape, dtype: of the value, initially zeros. nbytes: its size. The first model that gets it allocates it on its
    device; any model on that device uses it without a copy. One run at a time uses it.

    Raises ShapeError for a negative dimension or a type that isn't numeric.
    """

    def __init__(self, shape: Iterable[int], dtype: npt.DTypeLike = np.float32) -> None:
        self.shape: Shape = _shape(shape)
        try:
            self.dtype: np.dtype[Any] = np.dtype(dtype)
        except TypeError as error:
            raise ArgumentError(f"dtype: expected a type of numbers, got {dtype!r:.100}") from error
        if self.dtype.hasobject or not self.dtype.itemsize:
            raise ShapeError(f"dtype: expected a type of numbers, got {self.dtype}")
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        self._memory: Buffer | None = _on_host(self.nbytes)
        self._spare: Buffer | None = None  # holds a result until its run has succeeded
        self._is_users = False
        self._is_lost = False
        self._lock = threading.Lock()

    @classmethod
    def of(cls, value: npt.ArrayLike) -> Self:
        """Return a tensor that holds a copy of an array."""
        array = np.asarray(value)
        tensor = cls(array.shape, array.dtype)
        tensor.write(array)
        return tensor

    @classmethod
    def on(cls, memory: Buffer, shape: Shape, dtype: np.dtype[Any]) -> Self:
        """Return a tensor in a caller's memory, which it never leaves."""
        tensor = cls(shape, dtype)
        tensor._memory, tensor._is_users = memory, True
        return tensor

    def __repr__(self) -> str:
        state = " closed" if self.is_closed else " lost" if self._is_lost else ""
        return f"<DeviceTensor{state}: {self.dtype}{[*self.shape]}>"

    def read(self) -> Array:
        """Return a copy of the value. Raises ModelError if it is closed, lost or in use, and DelegateError."""
        return alone([self], self._read)

    def _read(self) -> Array:
        self.require_content()
        value = np.empty(self.shape, self.dtype)
        self.memory.read(value)
        return value

    def write(self, value: npt.ArrayLike) -> None:
        """Copy an array into it. Raises ShapeError unless shape and type are the tensor's, and ``read``'s errors."""
        array = np.asarray(value)
        if (array.shape, array.dtype) != (self.shape, self.dtype):
            raise ShapeError(f"write: expected {self.dtype}{[*self.shape]}, got {array.dtype}{[*array.shape]}")
        alone([self], partial(self._write, array))

    def _write(self, array: Array) -> None:
        self.memory.write(array)
        self._is_lost = False

    def fork(self) -> "DeviceTensor":
        """Return another tensor with the same value."""
        return DeviceTensor.of(self.read())

    def close(self) -> None:
        """Release the memory; any later use raises ModelError.

        An OpenCL device frees it once the signatures that last ran on it run on other tensors, or are gone.
        """
        alone([self], self._close)

    def _close(self) -> None:
        for buffer in (self._memory, self._spare):
            if isinstance(buffer, HostBuffer):
                buffer.free()  # even if somebody still has it
        self._memory = self._spare = None

    @property
    def is_closed(self) -> bool:
        """True once its memory is released."""
        return self._memory is None

    # For runs

    @property
    def memory(self) -> Buffer:
        """The memory that holds the value. Raises ModelError once the tensor is closed."""
        if self._memory is None:
            raise ModelError("this DeviceTensor is closed")
        return self._memory

    @property
    def is_users(self) -> bool:
        """True if its memory is a caller's, which must not be exchanged."""
        return self._is_users

    def require_content(self) -> None:
        """Raise ModelError if it is closed, or a device failed while writing it."""
        if self.memory and self._is_lost:
            raise ModelError(
                "this DeviceTensor holds nothing certain: a device failed while it was written; write() to it, or use "
                "a fork() or a saved file"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the value. Raises what ``read`` raises."""
        return DeviceTensor.of, (self.read(),)


class DeviceTensors(dict[str, DeviceTensor]):
    """Tensors by name, such as all caches of a text: ``runner(**caches, tokens=...)``.

    ``SignatureRunner.device_tensors`` makes one.
    """

    @property
    def nbytes(self) -> int:
        """The total size in bytes."""
        return sum(tensor.nbytes for tensor in self.values())

    def fork(self) -> "DeviceTensors":
        """Return a copy of the set; both continue independently."""
        return DeviceTensors({name: tensor.fork() for name, tensor in self.items()})

    def save(self, path: str | PathLike[str]) -> None:
        """Write all values to a file. Raises OSError, and ``DeviceTensor.read``'s errors."""
        from litecl.interpreter import tensor_files  # few programs need it

        tensor_files.write(path, {name: tensor.read() for name, tensor in self.items()})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "DeviceTensors":
        """Load a saved set. Raises ModelError for a damaged file or one of another kind."""
        from litecl.interpreter import tensor_files

        return cls({name: DeviceTensor.of(value) for name, value in tensor_files.read(path).items()})

    def close(self) -> None:
        """Release all memory."""
        for tensor in self.values():
            tensor.close()


Tensors = Mapping[int, DeviceTensor]  # by number


class Shown(dict[int, Array]):
    """The values of a run; those in device tensors are read on access."""

    def __init__(self, values: Mapping[int, Array], tensors: Tensors) -> None:
        super().__init__({**values, **dict.fromkeys(tensors, np.empty(0))})
        self._tensors = tensors

    def __getitem__(self, number: int) -> Array:
        return self._tensors[number].read() if number in self._tensors else super().__getitem__(number)

    def get(self, number: int, default: Any = None) -> Any:
        """Return a value, or the default where there is none."""
        return self[number] if number in self.keys() else default


def alone(tensors: Sequence[DeviceTensor], function: Callable[[], _Result]) -> _Result:
    """Call a function with exclusive use of some tensors. Raises ModelError if another run uses one.

    One call into C takes, or releases, all locks: an interrupt comes before or after it, and leaves none locked.
    """
    locks, held = [tensor._lock for tensor in tensors], list[Any]()
    end, released = deque[None](maxlen=0).extend, map(_RELEASE, held)
    try:
        held.extend(takewhile(_ACQUIRE, locks))
        if len(held) < len(locks):
            raise ModelError("this DeviceTensor is in use by another run: fork() it for another thread")
        return function()
    finally:
        end(released)


def _shape(given: Iterable[int]) -> Shape:
    try:
        shape = tuple(map(operator.index, given))
    except TypeError as error:
        raise ArgumentError(f"shape: expected dimensions, got {given!r:.100}") from error
    if min(shape, default=0) < 0:
        raise ShapeError(f"shape: dimensions must not be negative, got {[*shape]}")
    return shape


def _on_host(size_bytes: int) -> HostBuffer:
    try:
        return HostBuffer(size_bytes)
    except (MemoryError, ValueError) as error:
        raise ModelError(f"DeviceTensor: no memory for {size_bytes} bytes") from error
