"""Runners of the signatures of a file, on the caches of a session."""

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Protocol
from weakref import ref

import numpy as np

from litecl.generate.signatures import Step
from litecl.interpreter import Interpreter
from litecl.interpreter.delegation import Delegation
from litecl.interpreter.graph import Array


class Caches(dict[str, Array]):
    """Keys and values by the names of their inputs."""


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


class InterpreterRunner:
    """litecl's. A step writes its outputs to memory that its next run writes again: who holds caches there gets copies
    before, unless they are the caches of that run, which have been read by then.
    """

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._bound: dict[tuple[str, int], _Bound] = {}  # steps by key and width, one of each key
        self._lent: dict[int, ref[Caches]] = {}  # who holds outputs of a subgraph
        interpreter.allocate_tensors()

    def run(self, step: Step, given: Mapping[str, Array], caches: Caches) -> dict[str, Array]:
        """See ``Runner``."""
        bound = self._bound.get((step.key, step.width)) or self._bind(step)
        for values in (given, caches):
            for name, value in values.items():
                bound.inputs[name][...] = value
        self._take_back(bound.subgraph, caches)
        self._interpreter._invoke(bound.subgraph)
        results = bound.results(self._interpreter)
        caches.update({name: value for name, value in results.items() if name in caches})
        self._lent[bound.subgraph] = ref(caches)
        return {name: value for name, value in results.items() if name not in caches}

    @property
    def delegations(self) -> Sequence[Delegation]:
        """Delegations, for what runs on devices."""
        return self._interpreter._delegations

    def close(self) -> None:
        """Let go of the model."""
        self._bound, self._lent = {}, {}
        self._interpreter.close()

    def _take_back(self, subgraph: int, running: Caches | None) -> None:
        """Give copies to whoever holds what a subgraph wrote, but for the caches that are run on."""
        lent = self._lent.pop(subgraph, None)
        holder = None if lent is None else lent()
        if holder is not None and holder is not running:
            holder.update({name: value.copy() for name, value in holder.items()})

    def _bind(self, step: Step) -> "_Bound":
        """Prepare a step: the memory of its inputs stays where it is until another step needs other shapes."""
        interpreter = self._interpreter
        runner = interpreter.get_signature_runner(step.key)
        subgraph, inputs = runner._subgraph_index, dict(runner._signature.inputs)
        for entry in step.inputs:
            interpreter.resize_tensor_input(inputs[entry.name], entry.shape, subgraph_index=subgraph)
        if not interpreter.is_allocated:
            for written in [*self._lent]:
                self._take_back(written, None)
            self._bound = {}
            interpreter.allocate_tensors()
        memory = {name: interpreter.tensor(t, subgraph_index=subgraph)() for name, t in inputs.items()}
        found = _Bound(subgraph, memory, dict(runner._signature.outputs))
        self._bound = {key: bound for key, bound in self._bound.items() if key[0] != step.key}
        self._bound[step.key, step.width] = found
        return found


class _Bound:
    """Where a step's inputs lie, and the tensors of its outputs."""

    def __init__(self, subgraph: int, inputs: Mapping[str, Array], outputs: Mapping[str, int]) -> None:
        self.subgraph = subgraph
        self.inputs = inputs
        self._outputs = outputs
        self._alone: Sequence[Array] = ()  # outputs of the last run, if each lies where nothing else does

    def results(self, interpreter: Interpreter) -> dict[str, Array]:
        """Return the outputs of the last run: copies of those that lie where something else does."""
        values = interpreter._values[self.subgraph]
        found = {
            name: values[tensor] if tensor in values else interpreter.tensor(tensor, subgraph_index=self.subgraph)()
            for name, tensor in self._outputs.items()
        }  # a signature may name what its subgraph does not return, such as an input
        arrays = [*found.values()]
        if len(arrays) == len(self._alone) and all(map(is_, arrays, self._alone)):
            return found
        others = [*arrays, *self.inputs.values()]
        shared = [sum(np.may_share_memory(value, other) for other in others) > 1 for value in arrays]
        self._alone = () if any(shared) else arrays
        return {
            name: value.copy() if is_shared else value
            for (name, value), is_shared in zip(found.items(), shared, strict=True)
        }
