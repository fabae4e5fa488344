"""Run a file's signatures on a session's caches."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from litecl.generate.signatures import Step
from litecl.interpreter import DeviceTensor, Interpreter
from litecl.interpreter.delegation import Delegation
from litecl.interpreter.device_run import DeviceRun
from litecl.interpreter.graph import Array


class Caches(dict[str, Any]):
    """Keys and values by input name, in the representation of the runner that created them.

    runs: the runner's preparations for them, by signature.
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(values or {})
        self.runs: dict[str, Any] = {}


class Runner(Protocol):
    """Runs the signatures of one file."""

    def caches(self, values: Mapping[str, Array]) -> Caches:
        """Return caches with the given values."""

    def values(self, caches: Caches) -> dict[str, Array]:
        """Return copies of the caches' values."""

    def run(self, step: Step, given: Mapping[str, Array], caches: Caches) -> dict[str, Array]:
        """Run a signature. Caches serve as its inputs and outputs of the same names; return its other outputs."""

    @property
    def delegations(self) -> Sequence[Delegation]:
        """The delegations of nodes that run on devices."""

    def close(self) -> None:
        """Release the file."""


class InterpreterRunner:
    """litecl's runner. Its caches are device tensors, which all signatures update in place."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._bound: dict[tuple[str, int], _Bound] = {}  # by key and width, one per key
        interpreter.allocate_tensors()

    def caches(self, values: Mapping[str, Array]) -> Caches:
        """See ``Runner``."""
        return Caches({name: DeviceTensor.of(value) for name, value in values.items()})

    def values(self, caches: Caches) -> dict[str, Array]:
        """See ``Runner``."""
        return {name: tensor.read() for name, tensor in caches.items()}

    def run(self, step: Step, given: Mapping[str, Array], caches: Caches) -> dict[str, Array]:
        """See ``Runner``."""
        bound = self._bound.get((step.key, step.width)) or self._bind(step)
        for name, value in given.items():
            bound.memory[name][...] = value
        run, twins = bound.run_on(caches, step.key)
        passed = run.run(bound.wanted)
        for cache, first in twins:  # several caches share an output
            cache.write(first.read())
        return {
            name: passed[tensor] if tensor in passed else self._interpreter._value(tensor, bound.subgraph).copy()
            for name, tensor in bound.outputs.items()
            if name not in caches
        }

    @property
    def delegations(self) -> Sequence[Delegation]:
        """The delegations of nodes that run on devices."""
        return self._interpreter._delegations

    def close(self) -> None:
        """Release the model."""
        self._bound = {}
        self._interpreter.close()

    def _bind(self, step: Step) -> "_Bound":
        """Prepare a step. Its inputs' memory stays in place until another step needs other shapes."""
        interpreter = self._interpreter
        runner = interpreter.get_signature_runner(step.key)
        subgraph, inputs = runner._subgraph_index, dict(runner._signature.inputs)
        for entry in step.inputs:
            interpreter.resize_tensor_input(inputs[entry.name], entry.shape, subgraph_index=subgraph)
        if not interpreter.is_allocated:
            self._bound = {}
            interpreter.allocate_tensors()
        pair = _Bound(interpreter, subgraph, inputs, dict(runner._signature.outputs))
        self._bound = {key: bound for key, bound in self._bound.items() if key[0] != step.key}
        self._bound[step.key, step.width] = pair
        return pair


class _Bound:
    """A step's input memory and outputs, and its runs on caches."""

    def __init__(
        self, interpreter: Interpreter, subgraph: int, inputs: Mapping[str, int], outputs: Mapping[str, int]
    ) -> None:
        self.subgraph, self.outputs, self.wanted = subgraph, outputs, {*outputs.values()}
        self.memory = {name: interpreter.tensor(t, subgraph_index=subgraph)() for name, t in inputs.items()}
        self._interpreter, self._inputs = interpreter, inputs

    def run_on(self, caches: Caches, key: str) -> "_RunOn":
        """Return the run on these caches, and pairs of caches that share an output, of which a run writes the second.

        key: of the signature. Sessions take turns, so caches keep their runs.
        """
        kept: tuple[_Bound, _RunOn] | None = caches.runs.get(key)
        if kept is None or kept[0] is not self:
            given = {self._inputs[name]: x for name, x in caches.items()}
            taken = dict[int, DeviceTensor]()
            firsts = [(x, taken.setdefault(self.outputs[name], x)) for name, x in caches.items()]
            twins = [(x, first) for x, first in firsts if x is not first]
            kept = caches.runs[key] = self, (DeviceRun(self._interpreter, self.subgraph, given, taken), twins)
        return kept[1]


_RunOn = tuple[DeviceRun, Sequence[tuple[DeviceTensor, DeviceTensor]]]
