"""Running a model by the names in one of its signatures."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from litecl.interpreter.delegation import Moved
from litecl.interpreter.details import TensorDetails
from litecl.interpreter.device_run import DeviceRun
from litecl.interpreter.device_tensor import DeviceTensor, DeviceTensors
from litecl.interpreter.errors import ArgumentError, ModelError, ShapeError
from litecl.interpreter.feeding import OF_ML_DTYPES
from litecl.interpreter.graph import Array, Model, Shape, Signature
from litecl.interpreter.runnable import ALREADY_RUNNING, Runnable
from litecl.interpreter.schema import TensorType
from litecl.interpreter.visible import visible

_NONE: Mapping[Any, Any] = MappingProxyType({})
_ARRAY = np.ndarray
_SEEN_OTHERWISE = (TensorType.STRING, *OF_ML_DTYPES)  # see ``feeding.checked``


class SignatureRunner:
    """Callable: takes inputs by keyword, returns outputs in a dictionary. Inputs of another shape resize the model.

    ``Interpreter.get_signature_runner`` makes one. Raises ModelError if the model has no such signature.
    """

    def __init__(self, interpreter: Runnable | None = None, signature_key: str | None = None) -> None:
        if interpreter is None or signature_key is None:
            missing = "interpreter" if interpreter is None else "signature_key"
            raise ModelError(f"SignatureRunner: expected an interpreter and the key of a signature, got no {missing}")
        self._interpreter = interpreter
        self._signature = _named(interpreter.model, signature_key)
        # TFLite's names, which libraries read.
        self._signature_key = self._signature.key
        self._subgraph_index = self._signature.subgraph
        self._inputs = dict(sorted(self._signature.inputs.items()))
        self._outputs = dict(sorted(self._signature.outputs.items())).items()
        self._last: _Again | None = None
        self._arrays: _Arrays | None = None

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(visible(name) for name in names) for names in (self._inputs, dict(self._outputs)))
        return f"<SignatureRunner of {self._signature_key!r}: {inputs} -> {outputs}>"

    def __call__(self, **inputs: npt.ArrayLike | DeviceTensor) -> dict[str, Any]:
        """Run the signature. Raises ModelError for missing or unknown names and while another thread runs the
        interpreter, ShapeError for a wrong type or shape.

        A ``DeviceTensor`` is read in place; if an output has the same name, the tensor gets that output.
        """
        interpreter, arrays = self._interpreter, self._arrays
        if interpreter._is_called or interpreter._busy:
            raise self._refusal()
        try:
            interpreter._is_called = True  # no other thread can have come in between
            if arrays is None or not arrays.give(inputs):
                return self._called(inputs)
            interpreter._invoke(self._subgraph_index)
            results = arrays.results()
            return self._results(Moved(arrays.given_bytes)) if results is None else results
        finally:
            interpreter._is_called = False

    def _refusal(self) -> ModelError:
        """Return the error of a call during another one, which would change the interpreter's inputs or outputs."""
        return ModelError(f"signature {self._signature_key!r}: {ALREADY_RUNNING}")

    def _called(self, inputs: Mapping[str, npt.ArrayLike | DeviceTensor]) -> dict[str, Any]:
        """Run with whatever inputs."""
        kept = {name: x for name, x in inputs.items() if isinstance(x, DeviceTensor)}
        if kept:
            return self._run(inputs, {name: x for name, x in kept.items() if name in self._signature.outputs})
        given_bytes = self._give(inputs)
        self._interpreter._invoke(self._subgraph_index)
        results = self._results(Moved(given_bytes))
        if self._arrays is None or not self._arrays.lasts:
            self._arrays = _Arrays.of(self._interpreter, self._signature)
        return results

    def run(
        self, inputs: Mapping[str, npt.ArrayLike | DeviceTensor], outputs: Mapping[str, DeviceTensor] | None = None
    ) -> dict[str, Any]:
        """Run the signature, leave some outputs in tensors on the device, and return all outputs by name.

        outputs: tensors by name, of the outputs' shapes and types. One may be an input too, of any name: an output that
        updates this input is written in place, and costs nothing beyond its changes.

        If this raises, tensors keep their values; one that a failing device was overwriting is lost, and says so.
        Raises a call's errors, and ModelError for tensors that are closed, lost, in use by another run, or on another
        device.
        """
        if self._interpreter._is_called or self._interpreter._busy:
            raise self._refusal()
        try:
            self._interpreter._is_called = True
            return self._run(inputs, _NONE if outputs is None else outputs)
        finally:
            self._interpreter._is_called = False

    def _run(
        self, inputs: Mapping[str, npt.ArrayLike | DeviceTensor], outputs: Mapping[str, DeviceTensor]
    ) -> dict[str, Any]:
        again = self._last
        if again is None or not again.gives(inputs, outputs):
            self._last = again = self._prepared(inputs, outputs)
        passed = again.run.run(self._signature.outputs.values())
        read, written, within = again.run.moved
        return self._results(Moved(again.given_bytes + read, written, within), outputs, passed)

    def _prepared(self, inputs: Mapping[str, Any], outputs: Mapping[str, DeviceTensor]) -> "_Again":
        """Set inputs, and return the run on these tensors, ready to repeat with such inputs."""
        interpreter, subgraph, known = self._interpreter, self._subgraph_index, self._signature.inputs
        wanted = self._named(outputs)
        given_bytes = self._give(inputs)
        kept = {name: x for name, x in inputs.items() if isinstance(x, DeviceTensor)}
        run = DeviceRun(interpreter, subgraph, {known[name]: x for name, x in kept.items()}, wanted)
        arrays = {name: x for name, x in inputs.items() if name not in kept}
        shared = interpreter._shared.get(subgraph, {})
        memory = {name: shared[known[name]] for name in arrays if known[name] in shared}
        memory = {name: view for name, view in memory.items() if view.dtype == np.asarray(arrays[name]).dtype}
        is_all = len(memory) == len(arrays)
        return _Again(interpreter, kept, outputs, memory if is_all else None, run, given_bytes)

    def device_tensor(self, name: str) -> DeviceTensor:
        """Return a new tensor of zeros for an input or output. Raises ModelError for an unknown name or shape."""
        tensors = {**self._signature.outputs, **self._signature.inputs}
        if name not in tensors:
            raise ModelError(f"signature {self._signature_key!r}: {name!r} is none of {sorted(tensors)}")
        details = self._interpreter._details(tensors[name], self._subgraph_index)
        return DeviceTensor(details["shape"].tolist(), object if details["dtype"] is np.bytes_ else details["dtype"])

    def device_tensors(self, *names: str) -> DeviceTensors:
        """Return new tensors for some inputs and outputs; by default for names that are both."""
        both = sorted(self._signature.inputs.keys() & self._signature.outputs.keys())
        return DeviceTensors({name: self.device_tensor(name) for name in names or both})

    def _named(self, outputs: Mapping[str, DeviceTensor]) -> dict[int, DeviceTensor]:
        """Return output tensors by number. Raises ModelError for unknown names."""
        known = self._signature.outputs
        if not known.keys() >= outputs.keys():
            raise ModelError(
                f"signature {self._signature_key!r}: expected outputs among {sorted(known)}, got {sorted(outputs)}"
            )
        tensors: dict[int, DeviceTensor] = {}
        for name, tensor in outputs.items():
            if not isinstance(tensor, DeviceTensor):
                raise ArgumentError(f"output {name!r}: expected a DeviceTensor, got {type(tensor).__name__}")
            if tensors.setdefault(known[name], tensor) is not tensor:
                raise ModelError(f"output {name!r} has another name too: expected one DeviceTensor for both, got two")
        return tensors

    def _give(self, inputs: Mapping[str, npt.ArrayLike | DeviceTensor]) -> int:
        """Prepare the model for the inputs' shapes, set those that are arrays, and return the bytes copied."""
        signature, interpreter = self._signature, self._interpreter
        if inputs.keys() != signature.inputs.keys():
            raise ModelError(
                f"signature {signature.key!r}: expected inputs {sorted(signature.inputs)}, got {sorted(inputs)}"
            )
        for name, value in inputs.items():
            tensor, shape = signature.inputs[name], _shape(name, value)
            if shape != interpreter._shape(tensor, signature.subgraph):  # skips resize's costly checks
                strict = isinstance(value, DeviceTensor)
                interpreter.resize_tensor_input(tensor, shape, strict, subgraph_index=signature.subgraph)
        interpreter.allocate_tensors()
        # invoke() runs the first subgraph too, on this call's inputs: they are copied, since callers may change arrays.
        copied = interpreter._copied_inputs(signature.subgraph) if signature.subgraph else ()
        given_bytes = 0
        for name, value in inputs.items():
            if isinstance(value, DeviceTensor):
                continue
            if (tensor := signature.inputs[name]) in copied:
                interpreter._give(tensor, value, signature.subgraph)
            else:
                interpreter.set_tensor(tensor, value, subgraph_index=signature.subgraph)
                given_bytes += np.asarray(value).nbytes
        return given_bytes

    def _results(
        self,
        moved: Moved,
        kept: Mapping[str, DeviceTensor] = _NONE,
        passed: Mapping[int, Array] = _NONE,
    ) -> dict[str, Any]:
        """Count copies, and return the outputs by name. kept: tensors to return. passed: existing copies."""
        interpreter, subgraph = self._interpreter, self._subgraph_index
        results: dict[str, Any] = {}
        for name, tensor in self._outputs:
            given = kept.get(name, passed.get(tensor))
            results[name] = interpreter.get_tensor(tensor, subgraph) if given is None else given
        returned = sum(value.nbytes for name, value in results.items() if name not in kept)
        interpreter._count(replace(moved, returned=moved.returned + returned))
        return results

    def get_input_details(self) -> dict[str, TensorDetails]:
        """Return TFLite's dictionary for every input, by name."""
        return {name: self._interpreter._details(t, self._subgraph_index) for name, t in self._inputs.items()}

    def get_output_details(self) -> dict[str, TensorDetails]:
        """Return TFLite's dictionary for every output, by name."""
        return {name: self._interpreter._details(t, self._subgraph_index) for name, t in self._outputs}


class _Arrays:
    """Where a prepared model reads a signature's arrays, and leaves its results.

    given_bytes: the size of copied arrays. Strings, and types that callers see differently, take the slow path.
    """

    @classmethod
    def of(cls, interpreter: Runnable, signature: Signature) -> "_Arrays | None":
        """Return those of a signature, None if copying alone is not enough."""
        subgraph, inputs, outputs = signature.subgraph, signature.inputs, signature.outputs
        specs = [interpreter._spec(t, subgraph) for t in (*inputs.values(), *outputs.values())]
        ends_where_it_begins = not {*inputs.values()}.isdisjoint(outputs.values())
        if ends_where_it_begins or any(spec.type in _SEEN_OTHERWISE for spec in specs):
            return None
        return cls(interpreter, signature)

    def __init__(self, interpreter: Runnable, signature: Signature) -> None:
        self._interpreter, self._subgraph = interpreter, signature.subgraph
        self._executor, self._all_inputs = interpreter._executor, interpreter._inputs
        self._inputs, self._outputs = interpreter._inputs[self._subgraph], sorted(signature.outputs.items())
        shared = interpreter._shared.get(self._subgraph, {})
        copied = interpreter._copied_inputs(self._subgraph) if self._subgraph else ()
        # Per input: shape, type, memory to copy it to if any, tensor, and whether to use the array itself.
        self._slots = dict[str, tuple[Shape, np.dtype[Any], Array | None, int, bool]]()
        self.given_bytes = 0
        for name, tensor in signature.inputs.items():
            itself, value = tensor in copied, self._inputs[tensor]
            memory = None if itself else shared.get(tensor)
            self._slots[name] = value.shape, value.dtype, memory, tensor, itself
            self.given_bytes += 0 if itself else value.nbytes
        self._moved = Moved(self.given_bytes)

    @property
    def lasts(self) -> bool:
        """Return whether they are still valid: the model was not prepared anew."""
        interpreter = self._interpreter
        is_same = interpreter._executor is self._executor and interpreter._inputs is self._all_inputs
        return is_same and not interpreter._preliminary

    def give(self, inputs: Mapping[str, Any]) -> bool:
        """Set inputs; return False if that is not enough, and all must be set again."""
        slots = self._slots
        if len(inputs) != len(slots) or not self.lasts:
            return False
        for name, x in inputs.items():
            slot = slots.get(name)
            if slot is None or type(x) is not _ARRAY or x.shape != slot[0] or x.dtype != slot[1]:
                return False
        try:
            for name, x in inputs.items():
                _, _, memory, tensor, itself = slots[name]
                if memory is not None:
                    memory[...] = x
                else:
                    self._inputs[tensor] = x if itself else x.copy()
        except MemoryError:
            return False
        return True

    def results(self) -> dict[str, Any] | None:
        """Return copies of the outputs and count them; None if the outputs are elsewhere."""
        interpreter, results, returned = self._interpreter, dict[str, Any](), 0
        values = interpreter._values.get(self._subgraph, _NONE)
        try:
            for name, tensor in self._outputs:
                results[name] = value = np.array(values[tensor])
                returned += value.nbytes
        except (KeyError, MemoryError):
            return None
        if returned != self._moved.returned:
            self._moved = Moved(self.given_bytes, returned)
        interpreter._count(self._moved)
        return results


class _Again:
    """A run on the same tensors, and its arguments: arrays are copied to the memory that the model reads.

    memory: that memory, by name; None if copying is not enough. given_bytes: the size of the arrays.
    """

    def __init__(
        self,
        interpreter: Runnable,
        kept: Mapping[str, DeviceTensor],
        outputs: Mapping[str, DeviceTensor],
        memory: Mapping[str, Array] | None,
        run: DeviceRun,
        given_bytes: int,
    ) -> None:
        self._interpreter, self._executor = interpreter, interpreter._executor
        self._kept, self._outputs = kept, dict(outputs)
        self._memory = memory
        self._like = {name: (x.shape, x.dtype) for name, x in (memory or {}).items()}
        self.run, self.given_bytes = run, given_bytes

    def gives(self, inputs: Mapping[str, Any], outputs: Mapping[str, DeviceTensor]) -> bool:
        """Set inputs again; return False if that is not enough."""
        interpreter, memory = self._interpreter, self._memory
        if memory is None or interpreter._executor is not self._executor or interpreter._preliminary:
            return False
        if len(inputs) != len(memory) + len(self._kept) or len(outputs) != len(self._outputs):
            return False
        pairs = (inputs, self._kept), (outputs, self._outputs)
        if any(given.get(name) is not x for given, before in pairs for name, x in before.items()):
            return False
        arrays = [(into, inputs.get(name), self._like[name]) for name, into in memory.items()]
        if any(not isinstance(x, np.ndarray) or (x.shape, x.dtype) != like for _, x, like in arrays):
            return False
        for into, x, _ in arrays:
            into[...] = x
        return True


def _shape(name: str, value: npt.ArrayLike | DeviceTensor) -> Shape:
    """Return the shape of an input. Raises ShapeError for a ragged list."""
    try:
        return value.shape if isinstance(value, np.ndarray | DeviceTensor) else np.shape(value)
    except ValueError as error:
        raise ShapeError(f"input {name!r}: {error}") from error


def _named(model: Model, key: str) -> Signature:
    """Return a signature by its key. Raises ModelError if there is none."""
    signatures = {signature.key: signature for signature in model.signatures}
    if not isinstance(key, str) or key not in signatures:
        raise ModelError(f"signature {key!r:.100} not found; the model has {sorted(signatures)}")
    return signatures[key]


def only_key(model: Model) -> str:
    """Return the key of a model's only signature. Raises ModelError if it has none, or several."""
    if len(model.signatures) != 1:
        keys = sorted(signature.key for signature in model.signatures)
        raise ModelError(f"signature_key: the model has {len(keys)} signatures: {keys}")
    return model.signatures[0].key
