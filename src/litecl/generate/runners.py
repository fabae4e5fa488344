"""Runners of the signatures of a file, on the caches of a session."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from litecl.generate.signatures import Step
from litecl.interpreter import DeviceTensor, Interpreter
from litecl.interpreter.delegation import Delegation
from litecl.interpreter.graph import Array
from litecl.interpreter.signature import SignatureRunner


class Caches(dict[str, Any]):
    """Keys and values by the names of their inputs, as the runner keeps them that has made them."""


class Runner(Protocol):
    """Runs the signatures of one file."""

    def caches(self, values: Mapping[str, Array]) -> Caches:
        """Return caches that hold values."""

    def values(self, caches: Caches) -> dict[str, Array]:
        """Return copies of what caches hold."""

    def run(self, step: Step, given: Mapping[str, Array], caches: Caches) -> dict[str, Array]:
        """Run a signature. The caches are its inputs and outputs of those names; the other outputs are returned."""

    @property
    def delegations(self) -> Sequence[Delegation]:
        """Delegations, for what runs on devices."""

    def close(self) -> None:
        """Let go of the file."""


class InterpreterRunner:
    """litecl's. Caches are tensors that stay on the device, which all signatures and files write in place."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._runners: dict[str, SignatureRunner] = {}
        interpreter.allocate_tensors()

    def caches(self, values: Mapping[str, Array]) -> Caches:
        """See ``Runner``."""
        return Caches({name: DeviceTensor.of(value) for name, value in values.items()})

    def values(self, caches: Caches) -> dict[str, Array]:
        """See ``Runner``."""
        return {name: tensor.read() for name, tensor in caches.items()}

    def run(self, step: Step, given: Mapping[str, Array], caches: Caches) -> dict[str, Array]:
        """See ``Runner``."""
        if step.key not in self._runners:
            self._runners[step.key] = self._interpreter.get_signature_runner(step.key)
        results = self._runners[step.key].run({**given, **caches}, caches)
        return {name: value for name, value in results.items() if name not in caches}

    @property
    def delegations(self) -> Sequence[Delegation]:
        """Delegations, for what runs on devices."""
        return self._interpreter._delegations

    def close(self) -> None:
        """Let go of the model."""
        self._runners = {}
        self._interpreter.close()
