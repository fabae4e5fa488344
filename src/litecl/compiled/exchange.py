"""Exchanges memory between a model and its caller's buffers, to avoid copies."""

import math
from collections.abc import Mapping, Sequence
from threading import RLock
from typing import Any
from weakref import ref

import numpy as np

from litecl.compiled.signatures import Names, listed
from litecl.interpreter import Interpreter
from litecl.interpreter.delegation import Moved
from litecl.interpreter.device_run import DeviceRun
from litecl.interpreter.device_tensor import DeviceTensor, Tensors
from litecl.interpreter.errors import ArgumentError, ModelError, ShapeError
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.variables import READ_VARIABLE
from litecl.tensor_buffer import TensorBuffer

Buffers = Sequence[tuple[int, TensorBuffer]]  # with their tensors


class Exchange:
    """Tracks the buffers that alias the interpreter's memory.

    The first buffer created for an input aliases the memory that the model reads. A buffer that received an output of
    the last run aliases the memory that the run wrote. Either gets its own copy before anything else is written there.
    """

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._bound: dict[tuple[int, int], ref[TensorBuffer]] = {}  # inputs, by subgraph and tensor
        self._lent: dict[tuple[int, int], ref[TensorBuffer]] = {}  # outputs
        self._runs: dict[int, DeviceRun] = {}  # latest runs on device tensors, by subgraph
        self._is_running = False
        self._guard = RLock()  # keeps other threads from using a buffer while its memory is exchanged
        nodes = [node for graph in interpreter.model.subgraphs for node in graph.nodes]
        self._keeps_state = any(node.op is READ_VARIABLE for node in nodes)  # its result is the variable's own memory

    def input_buffer(self, subgraph: int, tensor: int) -> TensorBuffer:
        """Return a new buffer for an input in its current shape; zeros unless it aliases the model's memory."""
        key, memory = (subgraph, tensor), self._memory(subgraph, tensor)
        if self._is_running or _alive(self._bound.get(key)) is not None:
            return TensorBuffer(np.zeros_like(memory), guard=self._guard)
        buffer = TensorBuffer(memory, guard=self._guard)
        self._bound[key] = ref(buffer)
        return buffer

    def output_buffer(self, subgraph: int, tensor: int) -> TensorBuffer:
        """Return a new buffer for an output in its current shape."""
        details = self._interpreter._get_tensor_details(tensor, subgraph)
        return TensorBuffer(np.zeros(details["shape"], np_dtype(details)), guard=self._guard)

    def allocate(self) -> None:
        """Prepare the model for new shapes, first giving copies to buffers that alias the current memory.

        The interpreter reuses that memory when these shapes return.
        """
        if self._interpreter.is_allocated:
            return
        with self._guard:
            for buffer in map(_alive, (*self._bound.values(), *self._lent.values())):
                if buffer is not None and not buffer.is_destroyed:
                    buffer.exchange(buffer.array.copy())
            self._bound, self._lent = {}, {}
        self._interpreter.allocate_tensors()

    def run(self, subgraph: int, inputs: Buffers, outputs: Buffers) -> None:
        """Run a subgraph on buffers. Raises ShapeError for one that doesn't fit, and ModelError in a signal handler
        that interrupted another run.
        """
        if self._is_running:
            raise ModelError("this compiled model is already running: use another one in a signal handler")
        self._is_running = True
        try:
            self._run(subgraph, inputs, outputs)
        finally:
            self._is_running = False

    def _run(self, subgraph: int, inputs: Buffers, outputs: Buffers) -> None:
        memories = self._fit(subgraph, inputs)
        given, taken = _on_device(inputs), _on_device(outputs)
        with self._guard:
            for (tensor, buffer), memory in zip(inputs, memories, strict=True):
                if tensor not in given and not buffer.holds(memory):
                    self._feed(subgraph, tensor, buffer, memory)
            self._let_go(subgraph, outputs)
        passed: Mapping[int, Array] = {}
        if given or taken:
            run = self._device_run(subgraph, given, taken)
            passed = run.run({tensor for tensor, _ in outputs} - taken.keys())
            self._interpreter._count(Moved(*run.moved))
        else:
            self._interpreter._invoke(subgraph)
        for tensor, buffer in outputs:
            if tensor not in taken:
                with self._guard:
                    self._collect(subgraph, tensor, buffer, inputs, passed.get(tensor))

    def _device_run(self, subgraph: int, inputs: Tensors, outputs: Tensors) -> DeviceRun:
        """Return a run on device tensors, reusing the latest, prepared one if the tensors are the same."""
        run = self._runs.get(subgraph)
        if run is None or (run.inputs, run.outputs) != (inputs, outputs):
            run = self._runs[subgraph] = DeviceRun(self._interpreter, subgraph, inputs, outputs)
        return run

    def _memory(self, subgraph: int, tensor: int) -> Array:
        return self._interpreter.tensor(tensor, subgraph_index=subgraph)()

    def _fit(self, subgraph: int, inputs: Buffers) -> list[Array]:
        """Check types, resize inputs to their buffers' shapes, and return the memory that the model reads."""
        memories = [self._memory(subgraph, tensor) for tensor, _ in inputs]
        resized = False
        for (tensor, buffer), memory in zip(inputs, memories, strict=True):
            dtype, shape = buffer.dtype, buffer.shape
            if dtype != memory.dtype:
                raise ShapeError(f"input {tensor}: expected a buffer of {memory.dtype}, got {dtype}")
            if shape == memory.shape or (len(shape) == 1 and math.prod(shape) == memory.size):
                continue
            if len(shape) != memory.ndim:
                raise ShapeError(f"input {tensor}: expected shape {list(memory.shape)}, got {list(shape)}")
            self._interpreter.resize_tensor_input(tensor, shape, subgraph_index=subgraph)
            resized = True
        if not resized:
            return memories
        self.allocate()
        return [self._memory(subgraph, tensor) for tensor, _ in inputs]

    def _feed(self, subgraph: int, tensor: int, buffer: TensorBuffer, memory: Array) -> None:
        """Write an input to the model's memory, first giving a copy to a buffer that aliases it."""
        holder = _alive(self._bound.pop((subgraph, tensor), None))
        if holder is not None and holder.holds(memory):
            holder.exchange(memory.copy())
        self._interpreter._give(tensor, buffer.array.reshape(memory.shape), subgraph)

    def _let_go(self, subgraph: int, outputs: Buffers) -> None:
        """Give copies to buffers that alias memory this run will write, unless they are the same output again."""
        for key, holder in list(self._lent.items()):
            buffer = _alive(holder)
            if key[0] == subgraph and any(tensor == key[1] and buffer is target for tensor, target in outputs):
                continue
            del self._lent[key]
            if buffer is not None and not buffer.is_destroyed:
                buffer.exchange(buffer.array.copy())

    def _collect(self, subgraph: int, tensor: int, buffer: TensorBuffer, inputs: Buffers, passed: Array | None) -> None:
        """Hand an output to its buffer: the memory itself, or a copy if another object shares it.

        That may be an input, a constant, a variable, or another buffer for the same tensor. passed: a copy of an input
        on a device that is also this output, if it is one.
        """
        value = self._memory(subgraph, tensor) if passed is None else passed
        if buffer.holds(value) and _alive(self._lent.get((subgraph, tensor))) is buffer:
            return
        if buffer.is_users:
            if buffer.dtype != value.dtype or math.prod(buffer.shape) != value.size:
                raise ShapeError(f"an output of {value.dtype}{list(value.shape)} does not fit its buffer")
            buffer.write(value)
            return
        if self._keeps_state or not value.flags.writeable or self._is_anothers(value, buffer, inputs):
            buffer.exchange(value.copy())
            return
        buffer.exchange(value)
        self._lent[subgraph, tensor] = ref(buffer)

    def _is_anothers(self, value: Array, buffer: TensorBuffer, inputs: Buffers) -> bool:
        """Return whether a value shares memory with an input, or with another output handed out earlier."""
        handed = [other for holder in self._lent.values() if (other := _alive(holder)) is not None]
        others = [other for other in (*handed, *(given for _, given in inputs)) if other is not buffer]
        on_host = [other for other in others if not other.is_destroyed and other.on_device is None]
        return any(np.may_share_memory(value, other.array) for other in on_host)


def _on_device(buffers: Buffers) -> dict[int, DeviceTensor]:
    """Return the device tensors, by tensor index."""
    return {tensor: on_device for tensor, buffer in buffers if (on_device := buffer.on_device) is not None}


def paired(kind: str, names: Names, buffers: Any) -> list[tuple[int, TensorBuffer]]:
    """Return buffers with their tensors, wrapping each ``DeviceTensor`` in a buffer. Raises ModelError for a wrong
    number of buffers, ArgumentError for other objects.
    """
    try:
        given = list(buffers)
    except TypeError:
        raise ArgumentError(f"expected a list of {kind} buffers, got {type(buffers).__name__}") from None
    if len(given) != len(names):
        raise ModelError(f"expected {len(names)} {kind} buffers {listed(names)}, got {len(given)}")
    given = [TensorBuffer.from_device_tensor(x) if isinstance(x, DeviceTensor) else x for x in given]
    for buffer in given:
        if not isinstance(buffer, TensorBuffer):
            raise ArgumentError(f"expected a TensorBuffer as {kind}, got {type(buffer).__name__}")
    return [(tensor, buffer) for (_, tensor), buffer in zip(names, given, strict=True)]


def by_name(kind: str, names: Names, buffers: Any) -> list[TensorBuffer]:
    """Return buffers in the order of the names. Raises ModelError unless the names match exactly."""
    if not isinstance(buffers, Mapping):
        raise ArgumentError(f"expected {kind} buffers by name, got {type(buffers).__name__}")
    if buffers.keys() != {*listed(names)}:
        raise ModelError(f"expected {kind} buffers {listed(names)}, got {[*buffers]}")
    return [buffers[name] for name, _ in names]


def np_dtype(details: Mapping[str, Any]) -> np.dtype[Any]:
    """Return the numpy type for a tensor's details: strings are objects."""
    return np.dtype(np.object_ if details["dtype"] is np.bytes_ else details["dtype"])


def _alive(holder: ref[TensorBuffer] | None) -> TensorBuffer | None:
    return None if holder is None else holder()
