"""Runners of the signatures of a file, on the caches of a session."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from litecl.compiled_model import CompiledModel
from litecl.environment import Environment
from litecl.generate.signatures import Step
from litecl.interpreter import Interpreter
from litecl.interpreter.delegation import Delegation
from litecl.interpreter.graph import Array
from litecl.tensor_buffer import TensorBuffer

Caches = dict[str, TensorBuffer]


class Runner(Protocol):
    """Runs the signatures of one file."""

    def run(self, step: Step, given: Mapping[str, Array], caches: Caches) -> dict[str, Array]:
        """Run a signature. The caches are its inputs and outputs of those names; the other outputs are returned, which
        are valid until the next run.
        """

    @property
    def delegations(self) -> Sequence[Delegation]:
        """Delegations, for what runs on devices."""

    def close(self) -> None:
        """Let go of the file."""


class CompiledRunner:
    """litecl's: on inputs that lie where the model reads them."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._model = CompiledModel(interpreter, Environment.create())
        self._inputs: dict[tuple[str, str], TensorBuffer] = {}
        self._outputs: dict[tuple[str, str], TensorBuffer] = {}

    def run(self, step: Step, given: Mapping[str, Array], caches: Caches) -> dict[str, Array]:
        """See ``Runner``."""
        inputs = caches | {name: self._filled(step, name, value) for name, value in given.items()}
        outputs = {each.name: caches.get(each.name) or self._output(step, each.name) for each in step.outputs}
        self._model.run_by_name(step.key, {each.name: inputs[each.name] for each in step.inputs}, outputs)
        return {name: buffer.array for name, buffer in outputs.items() if name not in caches}

    def _filled(self, step: Step, name: str, value: Array) -> TensorBuffer:
        key = step.key, name
        if key not in self._inputs:
            self._inputs[key] = self._model.create_input_buffer_by_name(*key)
        if self._inputs[key].shape != value.shape:
            return TensorBuffer(value)
        self._inputs[key].array[...] = value
        return self._inputs[key]

    def _output(self, step: Step, name: str) -> TensorBuffer:
        key = step.key, name
        if key not in self._outputs:
            self._outputs[key] = self._model.create_output_buffer_by_name(*key)
        return self._outputs[key]

    @property
    def delegations(self) -> Sequence[Delegation]:
        """Delegations, for what runs on devices."""
        return self._interpreter._delegations

    def close(self) -> None:
        """Let go of the model."""
        self._interpreter.close()
