"""How memory changes hands between a model and the buffers of its caller, so that little is copied."""

from collections.abc import Mapping
from typing import Any
from weakref import ref

import numpy as np

from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array
from litecl.tensor_buffer import TensorBuffer

Buffers = Mapping[int, TensorBuffer]  # by tensor


class Exchange:
    """Which buffers hold memory of the interpreter's own.

    The first buffer that is made for an input is the memory that the model reads. The buffer that got an output of the
    last run is the memory that it was written to. Either gets a copy of its own before anything else is written there.
    """

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._bound: dict[tuple[int, int], ref[TensorBuffer]] = {}  # inputs, by subgraph and tensor
        self._lent: dict[tuple[int, int], ref[TensorBuffer]] = {}  # outputs

    def input_buffer(self, subgraph: int, tensor: int) -> TensorBuffer:
        """Return a new buffer for an input, of its present shape, filled with zeros."""
        key, memory = (subgraph, tensor), self._memory(subgraph, tensor)
        if _alive(self._bound.get(key)) is not None:
            return TensorBuffer(np.zeros_like(memory))
        buffer = TensorBuffer(memory)
        self._bound[key] = ref(buffer)
        return buffer

    def output_buffer(self, subgraph: int, tensor: int) -> TensorBuffer:
        """Return a new buffer for an output, of its present shape."""
        details = self._interpreter._get_tensor_details(tensor, subgraph)
        return TensorBuffer(np.zeros(details["shape"], np_dtype(details)))

    def run(self, subgraph: int, inputs: Buffers, outputs: Buffers) -> None:
        """Run a subgraph on buffers. Raises ShapeError for one that does not fit."""
        self._fit(subgraph, inputs)
        for tensor, buffer in inputs.items():
            self._feed(subgraph, tensor, buffer)
        self._let_go(subgraph, outputs)
        self._interpreter._invoke(subgraph)
        for tensor, buffer in outputs.items():
            self._collect(subgraph, tensor, buffer, inputs)

    def _memory(self, subgraph: int, tensor: int) -> Array:
        return self._interpreter.tensor(tensor, subgraph_index=subgraph)()

    def _fit(self, subgraph: int, inputs: Buffers) -> None:
        """Resize inputs whose buffers have another shape, and check their types."""
        for tensor, buffer in inputs.items():
            details, array = self._interpreter._get_tensor_details(tensor, subgraph), buffer.array
            shape, dtype = tuple(details["shape"].tolist()), np_dtype(details)
            if array.dtype != dtype:
                raise ShapeError(f"input {details['name']!r}: expected a buffer of {dtype}, got {array.dtype}")
            if array.shape == shape or (array.ndim == 1 and array.size == int(np.prod(shape))):
                continue
            if array.ndim != len(shape):
                raise ShapeError(f"input {details['name']!r}: expected shape {list(shape)}, got {list(array.shape)}")
            self._interpreter.resize_tensor_input(tensor, array.shape, subgraph_index=subgraph)
        self._interpreter.allocate_tensors()

    def _feed(self, subgraph: int, tensor: int, buffer: TensorBuffer) -> None:
        """Put an input where the model reads it, unless the buffer is that memory."""
        memory = self._memory(subgraph, tensor)
        if buffer.array is memory:
            return
        holder = _alive(self._bound.pop((subgraph, tensor), None))
        if holder is not None and holder.holds(memory):
            holder.exchange(memory.copy())
        self._interpreter.set_tensor(tensor, buffer.array.reshape(memory.shape), subgraph_index=subgraph)

    def _let_go(self, subgraph: int, outputs: Buffers) -> None:
        """Give a copy to buffers that hold memory which this run is about to write, but are not among its outputs."""
        for key, holder in list(self._lent.items()):
            buffer = _alive(holder)
            if key[0] == subgraph and buffer is outputs.get(key[1]):
                continue
            del self._lent[key]
            if buffer is not None and not buffer.is_destroyed:
                buffer.exchange(buffer.array.copy())

    def _collect(self, subgraph: int, tensor: int, buffer: TensorBuffer, inputs: Buffers) -> None:
        """Hand an output to its buffer: the memory itself, or a copy where that is also an input's or a constant's."""
        value = self._memory(subgraph, tensor)
        if buffer.is_users:
            if buffer.array.dtype != value.dtype or buffer.array.size != value.size:
                raise ShapeError(f"an output of {value.dtype}{list(value.shape)} does not fit its buffer")
            buffer.array[...] = value.reshape(buffer.array.shape)
            return
        if not value.flags.writeable or any(np.may_share_memory(value, other.array) for other in inputs.values()):
            buffer.exchange(value.copy())
            return
        buffer.exchange(value)
        self._lent[subgraph, tensor] = ref(buffer)


def np_dtype(details: Mapping[str, Any]) -> np.dtype[Any]:
    """Return the type of the arrays that hold a tensor, by its dictionary: strings are objects."""
    return np.dtype(np.object_ if details["dtype"] is np.bytes_ else details["dtype"])


def _alive(holder: ref[TensorBuffer] | None) -> TensorBuffer | None:
    return None if holder is None else holder()
