"""LiteRT's ``CompiledModel`` API: compiles a model once and runs it on buffers."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from os import PathLike
from typing import Any, Self

from litecl.compiled.accelerators import delegates, resolved
from litecl.compiled.exchange import Exchange, by_name, np_dtype, paired
from litecl.compiled.signatures import Entry, at, called, entries, listed
from litecl.environment import Environment, EnvironmentOptions
from litecl.hardware_accelerator import HardwareAccelerator
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ArgumentError, DelegateError, ModelError
from litecl.options import CpuKernelMode, CpuOptions, GpuOptions, Options
from litecl.tensor_buffer import TensorBuffer, dtype_name, size_bytes

__all__ = [
    "CompiledModel",
    "CpuKernelMode",
    "CpuOptions",
    "Environment",
    "EnvironmentOptions",
    "GpuOptions",
    "HardwareAccelerator",
    "Options",
    "TensorBuffer",
]

_HOST_MEMORY = 1  # LiteRT's number for host memory buffers


class CompiledModel:
    """A model compiled for a device, with LiteRT's methods and any number of buffers.

    The first input buffers alias device memory, and output buffers alias the memory of the latest run: a single set of
    buffers runs without copies.
    """

    def __init__(self, interpreter: Interpreter, environment: Environment) -> None:
        self._interpreter = interpreter
        self._environment = environment
        self._entries = entries(interpreter.model)
        self._lock = threading.RLock()  # reentrant: a signal handler gets an error, not a deadlock
        self._worker: ThreadPoolExecutor | None = None
        self._exchange = Exchange(interpreter)
        interpreter.allocate_tensors()

    @classmethod
    def from_file(
        cls,
        model_path: str | PathLike[str],
        hardware_accel: HardwareAccelerator | None = None,
        environment: Environment | None = None,
        options: Options | None = None,
    ) -> Self:
        """Compile a file, by default for the CPU. Raises ModelError and DelegateError."""
        if not isinstance(model_path, str | PathLike):
            raise ArgumentError(f"model_path: expected a path, got {type(model_path).__name__}")
        return cls._compiled(model_path, hardware_accel, environment, options)

    @classmethod
    def from_buffer(
        cls,
        model_data: bytes,
        hardware_accel: HardwareAccelerator | None = None,
        environment: Environment | None = None,
        options: Options | None = None,
    ) -> Self:
        """Compile the bytes of a file; see ``from_file``."""
        if not isinstance(model_data, bytes | bytearray | memoryview):
            raise ArgumentError(f"model_data: expected the bytes of a file, got {type(model_data).__name__}")
        return cls._compiled(model_data, hardware_accel, environment, options)

    @classmethod
    def _compiled(cls, source: Any, accelerator: Any, environment: Environment | None, options: Options | None) -> Self:
        chosen = resolved(options, accelerator)
        threads = chosen.cpu_options.num_threads or None
        environment = environment or Environment.create()
        given = delegates(chosen, environment.options.cl_context)
        interpreter = Interpreter(source, delegates=given, num_threads=threads)
        model = cls(interpreter, environment)
        if not chosen.hardware_accelerators & HardwareAccelerator.CPU:
            model._require_acceleration()
        return model

    def _require_acceleration(self) -> None:
        """Raise DelegateError if any node is left to the CPU, with the reasons."""
        left = {f"{row.op}: {row.reason}" for row in self._interpreter.delegation_report().nodes if not row.claimed}
        if left:
            raise DelegateError(f"some operators need the CPU: {'; '.join(sorted(left))}")

    @property
    def environment(self) -> Environment:
        """The environment that the model was compiled in."""
        return self._environment

    def close(self) -> None:
        """Release the model; buffers keep their memory. Any later use raises ModelError."""
        if self._worker is not None:
            self._worker.shutdown()
        self._interpreter.close()
        self._entries = ()

    def __repr__(self) -> str:
        return repr(self._interpreter).replace("Interpreter", "CompiledModel", 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # The model

    def get_num_signatures(self) -> int:
        """Return the number of signatures; a model without any has one, "<placeholder signature>"."""
        return len(self._open())

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return the names of inputs and outputs, in the order of the buffers, by signature key."""
        return {entry.key: {"inputs": listed(entry.inputs), "outputs": listed(entry.outputs)} for entry in self._open()}

    def get_signature_by_index(self, index: int) -> dict[str, Any]:
        """Return "key", "inputs" and "outputs" of a signature. Raises ModelError if there is none at the index."""
        entry = self._entry(index)
        return {"key": entry.key, "inputs": listed(entry.inputs), "outputs": listed(entry.outputs)}

    def get_signature_index(self, key: str) -> int:
        """Return the index of a signature, -1 if no signature has this key."""
        keys = [entry.key for entry in self._open()]
        return keys.index(key) if isinstance(key, str) and key in keys else -1

    def get_input_tensor_details(self, signature_key: str) -> dict[str, Any]:
        """Return "name", "index", "dtype" and "shape" of every input, by its name in the signature."""
        entry = self._entry(signature_key)
        return {name: self._tensor_details(entry, tensor) for name, tensor in entry.inputs}

    def get_output_tensor_details(self, signature_key: str) -> dict[str, Any]:
        """Return "name", "index", "dtype" and "shape" of every output, by its name in the signature."""
        entry = self._entry(signature_key)
        return {name: self._tensor_details(entry, tensor) for name, tensor in entry.outputs}

    def get_input_buffer_requirements(self, input_index: int, signature_index: int = 0) -> dict[str, Any]:
        """Return an input's "buffer_size" in bytes and "supported_types": host memory (1)."""
        entry = self._entry(signature_index)
        return self._requirements(entry, at("input", input_index, entry.inputs))

    def get_output_buffer_requirements(self, output_index: int, signature_index: int = 0) -> dict[str, Any]:
        """Return an output's "buffer_size" in bytes and "supported_types": host memory (1)."""
        entry = self._entry(signature_index)
        return self._requirements(entry, at("output", output_index, entry.outputs))

    def is_fully_accelerated(self) -> bool:
        """Return whether a device runs every operator. False on numpy."""
        self._open()
        try:
            report = self._interpreter.delegation_report()
        except ModelError:  # no delegate
            return False
        return all(row.claimed for row in report.nodes)

    def delegation_report(self) -> Any:
        """Return where each node runs, and why: see ``Interpreter.delegation_report``."""
        self._open()
        return self._interpreter.delegation_report()

    # Buffers

    def create_input_buffers(self, signature_index: int) -> list[TensorBuffer]:
        """Return a buffer for every input of a signature, with the input's current shape."""
        entry = self._entry(signature_index)
        with self._lock:  # a buffer may alias memory that a run is using
            return [self._exchange.input_buffer(entry.subgraph, tensor) for _, tensor in entry.inputs]

    def create_output_buffers(self, signature_index: int) -> list[TensorBuffer]:
        """Return a buffer for every output of a signature."""
        entry = self._entry(signature_index)
        return [self._exchange.output_buffer(entry.subgraph, tensor) for _, tensor in entry.outputs]

    def create_input_buffer_by_name(self, signature_key: str, input_name: str) -> TensorBuffer:
        """Return a buffer for one input. Raises ModelError for an unknown name."""
        entry = self._entry(signature_key)
        tensor = entry.inputs[called("input", input_name, entry.inputs)][1]
        with self._lock:
            return self._exchange.input_buffer(entry.subgraph, tensor)

    def create_output_buffer_by_name(self, signature_key: str, output_name: str) -> TensorBuffer:
        """Return a buffer for one output."""
        entry = self._entry(signature_key)
        return self._exchange.output_buffer(
            entry.subgraph, entry.outputs[called("output", output_name, entry.outputs)][1]
        )

    def resize_input_tensor(
        self, input_index: int, dims: Sequence[int], signature_index: int = 0, strict: bool = True
    ) -> None:
        """Resize an input; strict: only dimensions that its signature leaves open. Create new buffers afterwards."""
        entry = self._entry(signature_index)
        tensor = at("input", input_index, entry.inputs)
        with self._lock:
            self._interpreter.resize_tensor_input(tensor, dims, strict=strict, subgraph_index=entry.subgraph)
            self._exchange.allocate()

    def resize_input_tensor_by_name(
        self, signature_key: str, input_name: str, dims: Sequence[int], strict: bool = True
    ) -> None:
        """Resize an input by name; see ``resize_input_tensor``."""
        entry = self._entry(signature_key)
        index = called("input", input_name, entry.inputs)
        self.resize_input_tensor(index, dims, self._open().index(entry), strict)

    # Running

    def run_by_index(
        self, signature_index: int, input_buffers: Sequence[TensorBuffer], output_buffers: Sequence[TensorBuffer]
    ) -> None:
        """Run a signature on buffers in its order. Raises ModelError if there are too few or they don't fit."""
        entry = self._entry(signature_index)
        inputs = paired("input", entry.inputs, input_buffers)
        outputs = paired("output", entry.outputs, output_buffers)
        with self._lock:
            self._exchange.run(entry.subgraph, inputs, outputs)

    def run_by_name(
        self, signature_key: str, input_map: Mapping[str, TensorBuffer], output_map: Mapping[str, TensorBuffer]
    ) -> None:
        """Run a signature on buffers by name. Every input and output needs one."""
        entry = self._entry(signature_key)
        inputs = paired("input", entry.inputs, by_name("input", entry.inputs, input_map))
        outputs = paired("output", entry.outputs, by_name("output", entry.outputs, output_map))
        with self._lock:
            self._exchange.run(entry.subgraph, inputs, outputs)

    def run_async(
        self, signature_index: int, input_buffers: Sequence[TensorBuffer], output_buffers: Sequence[TensorBuffer]
    ) -> Future[None]:
        """Start ``run_by_index`` in a thread and return at once; ``result()`` waits for it and raises its error.

        Runs execute one after another, in order. Don't touch a run's buffers until it is done.
        """
        self._entry(signature_index)
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, "litecl-compiled-model")
        return self._worker.submit(self.run_by_index, signature_index, input_buffers, output_buffers)

    # Parts

    def _open(self) -> tuple[Entry, ...]:
        if not self._entries:
            raise ModelError("this compiled model is closed")
        return self._entries

    def _entry(self, which: int | str) -> Entry:
        """Return a signature by index or key. Raises ModelError if there is none."""
        entries = self._open()
        index = self.get_signature_index(which) if isinstance(which, str) else which
        if not isinstance(index, int) or not 0 <= index < len(entries):
            raise ModelError(f"signature {which!r} not found; the model has {[entry.key for entry in entries]}")
        return entries[index]

    def _tensor_details(self, entry: Entry, tensor: int) -> dict[str, Any]:
        details = self._interpreter._get_tensor_details(tensor, entry.subgraph)
        return {
            "name": details["name"],
            "index": tensor,
            "dtype": dtype_name(np_dtype(details)),
            "shape": details["shape"].tolist(),
        }

    def _requirements(self, entry: Entry, tensor: int) -> dict[str, Any]:
        details = self._interpreter._get_tensor_details(tensor, entry.subgraph)
        size = size_bytes(tuple(details["shape"].tolist()), np_dtype(details))  # 0 for strings, as in LiteRT
        return {"buffer_size": size, "supported_types": [_HOST_MEMORY]}
