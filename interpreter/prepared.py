"""A model prepared for the shapes of its inputs, and a shelf of earlier preparations."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.delegation import Delegate, Delegation, Preliminary
from litecl.interpreter.feeding import blank
from litecl.interpreter.graph import ABSENT, Array, Model, Shape, TensorSpec
from litecl.interpreter.op import InPlace
from litecl.interpreter.run import threads
from litecl.interpreter.run.executor import Executor, Listener
from litecl.interpreter.run.resources import agreed, running
from litecl.interpreter.run.shapes import Known, propagate
from litecl.interpreter.run.variables import Variables

Entries = Mapping[int, tuple[Shape, ...]]  # input shapes, by subgraph that a caller may run

_MOST_SHAPES = 8
_MOST_BYTES = 1 << 28
_NOWHERE: Array = np.empty(0)  # an array that no delegate knows


@dataclass(frozen=True, eq=False)
class Prepared:
    """A model that is ready to run on inputs of certain shapes.

    shared: the delegates' arrays that inputs are written into. in_place: fast paths of entries that consist of one
    node. size_bytes: what it keeps besides the model, on the device and packed for numpy. believed: the assumed shapes
    of resource variables, by name.
    """

    specs: tuple[Known, ...]
    delegations: tuple[Delegation, ...]
    executor: Executor
    threads: AbstractContextManager[None]
    shared: Mapping[int, Mapping[int, Array]]
    in_place: dict[int, InPlace]
    size_bytes: int
    believed: Mapping[str, TensorSpec]

    @property
    def preliminary(self) -> bool:
        """Return whether a successor is to take over a delegation."""
        return any(isinstance(delegation, Preliminary) for delegation in self.delegations)

    def without(self, seen: Collection[tuple[int, int]]) -> "Prepared":
        """Return the same without sharing the inputs in ``seen`` (subgraph, number): callers have their arrays."""
        if not any(t in tensors for i, t in seen if (tensors := self.shared.get(i, {}))):
            return self
        shared = {i: {t: x for t, x in tensors.items() if (i, t) not in seen} for i, tensors in self.shared.items()}
        return replace(self, shared=shared, in_place={})

    def fits(self, variables: Variables) -> bool:
        """Return whether resource variables have the assumed shapes, or no value yet."""
        return all(variables.fits(name, spec) for name, spec in self.believed.items())

    def inputs(self, model: Model, before: Mapping[int, Mapping[int, Array]]) -> dict[int, dict[int, Array]]:
        """Return arrays for the inputs: earlier values where the shape is the same, else zeros."""
        return {index: self._inputs(model, index, before.get(index, {})) for index in self.shared}

    def _inputs(self, model: Model, subgraph: int, before: Mapping[int, Array]) -> dict[int, Array]:
        arrays: dict[int, Array] = {}
        for tensor in model.subgraphs[subgraph].inputs:
            spec, shared, old = self.specs[subgraph][tensor], self.shared[subgraph].get(tensor), before.get(tensor)
            same = old is not None and old.shape == spec.shape
            if shared is None:
                arrays[tensor] = old if same and old is not None else blank(spec)
            else:
                shared[...] = old if same else 0
                arrays[tensor] = shared
        return arrays


@dataclass(frozen=True, eq=False)
class Preparation:
    """Prepares the model of an interpreter for any shapes."""

    model: Model
    delegates: Sequence[Delegate]
    variables: Variables
    preserve: bool
    listeners: Sequence[Listener]
    budget: limits.Budget | None
    num_threads: int | None

    def successor(
        self, entries: Entries, specs: Sequence[Known], delegations: Sequence[Delegation], executor: Executor
    ) -> Prepared | None:
        """Return the model prepared for the same shapes once a preliminary delegation has a successor, None before.

        executor: the current one. Delegates after the successor are applied anew.
        """
        for number, before in enumerate(delegations):
            if isinstance(before, Preliminary):
                successor = before.successor(executor.invocation)
                if successor is None:
                    return None
                prepared = self._with_delegates(entries, specs, (*delegations[:number], successor))
                prepared.executor.go_on(executor)
                return prepared
        return None

    def prepare(self, entries: Entries) -> Prepared:
        """Return the model with its shapes propagated and its delegates applied."""
        if self.budget is not None:
            self.budget.reset()
        specs = propagate(self.model, entries, self.variables.fits)
        if self.budget is not None:
            fed = [specs[i][t] for i in entries for t in self.model.subgraphs[i].inputs]
            self.budget.require(limits.bytes_of(fed))
        return self._with_delegates(entries, specs, ())

    def _with_delegates(self, entries: Entries, specs: Sequence[Known], applied: Sequence[Delegation]) -> Prepared:
        """Apply the remaining delegates."""
        delegations = [*applied]
        model = delegations[-1].model if delegations else self.model
        for delegate in self.delegates[len(applied) :]:
            delegations.append(delegate.apply(model, specs, preserve_all_tensors=self.preserve))
            model = delegations[-1].model
        if self.budget is not None:
            self.budget.start_clock()  # leaves out kernel builds, whose time is the driver's, not the model's
        executor = Executor(
            model,
            specs,
            self.variables,
            preserve=self.preserve,
            preserve_last=not delegations and self.budget is None,
            listeners=self.listeners,
            budget=self.budget,
        )
        shared = {i: {t: x for d in delegations for t, x in d.input_memory(i).items()} for i in entries}
        limited = threads.limited(model, specs, self.num_threads)
        free = self.budget is None and isinstance(limited, nullcontext)
        in_place = self._in_place(executor, shared) if free else {}
        size = sum(delegation.memory_bytes for delegation in delegations) + self._packed_bytes(model, specs)
        believed = {name: x for name, x in agreed(self.model, specs, running(self.model)).items() if x is not None}
        return Prepared(tuple(specs), tuple(delegations), executor, limited, shared, in_place, size, believed)

    def _in_place(self, executor: Executor, shared: Mapping[int, Mapping[int, Array]]) -> dict[int, InPlace]:
        """Return fast paths of entries that consist of one node, on inputs whose arrays never change."""
        runs = {}
        for index, memory in shared.items():
            inputs = [memory.get(t, _NOWHERE) for t in self.model.subgraphs[index].inputs]
            if (run := executor.in_place(index, inputs)) is not None:
                runs[index] = run
        return runs

    def _packed_bytes(self, model: Model, specs: Sequence[Known]) -> int:
        """Return an upper bound of the bytes that numpy's kernels keep: folded constants and prepared weights."""
        folded = sum(
            known.data.nbytes
            for graph, specs_ in zip(self.model.subgraphs, specs, strict=True)
            for declared, known in zip(graph.tensors, specs_, strict=True)
            if known.data is not None and known.data is not declared.data
        )
        nodes = [(node, specs[i]) for i, graph in enumerate(model.subgraphs) for node in graph.nodes]
        return folded + sum(limits.packed([known[t] for t in node.inputs if t != ABSENT]) for node, known in nodes)


class Shelf:
    """Models prepared for several sets of shapes; the least recently used are dropped.

    most: how many are kept; None keeps eight, while they take less than 256 MiB together. Those prepared ahead are
    always kept.
    """

    def __init__(self, most: int | None) -> None:
        self._most = _MOST_SHAPES if most is None else most
        self._most_bytes = _MOST_BYTES if most is None else None
        self._kept: dict[tuple[tuple[Shape, ...], ...], Prepared] = {}  # the most recently used last
        self._ahead: set[tuple[tuple[Shape, ...], ...]] = set()

    def take(self, entries: Entries, variables: Variables) -> Prepared | None:
        """Return the preparation for these shapes, if it is still there and valid."""
        if not all(d.usable for kept in self._kept.values() for d in kept.delegations):
            self._kept.clear()  # a failed device may be useless to the others too
        key = tuple(entries.values())
        prepared = self._kept.pop(key, None)
        if prepared is None or not prepared.fits(variables):
            return None
        prepared.executor.renew()
        self._kept[key] = prepared
        return prepared

    def holds_ahead(self, entries: Entries) -> bool:
        """Return whether these shapes are prepared, and always keep their preparation from now on."""
        self._ahead.add(tuple(entries.values()))
        return tuple(entries.values()) in self._kept

    def make_room(self) -> None:
        """Drop preparations until one more fits."""
        while (given_up := self._in_turn()) and len(given_up) >= self._most:
            del self._kept[given_up[0]]

    def put(self, entries: Entries, prepared: Prepared) -> None:
        """Keep the preparation for some shapes, and drop others while all take too much memory."""
        key = tuple(entries.values())
        if self._most:
            self._kept[key] = prepared
        while self._most_bytes is not None and (others := [k for k in self._in_turn() if k != key]):
            if sum(self._kept[k].size_bytes for k in (*others, key)) <= self._most_bytes:
                return
            del self._kept[others[0]]

    def _in_turn(self) -> list[tuple[tuple[Shape, ...], ...]]:
        """Return the keys that may be dropped, the least recently used first."""
        return [key for key in self._kept if key not in self._ahead]
