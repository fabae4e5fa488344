"""Runs a model: nodes in order, subgraphs by reference, each value dropped after its last use."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import ABSENT, Array, Model, Node, TensorSpec, acts
from litecl.interpreter.op import ControlOp, InPlace, Inputs, Op
from litecl.interpreter.run.step import RAISED, Step, calls, mark, raise_located
from litecl.interpreter.run.variables import Variables


class Listener(Protocol):
    """Called after every node. Times are ``time.perf_counter`` seconds."""

    def ran(self, subgraph: int, node: int, op: str, start_s: float, end_s: float) -> None:
        """A node has run; nodes inside a called subgraph are reported before the caller."""


class Frame:
    """One run of one subgraph, and the context of its operators."""

    def __init__(self, executor: "Executor", subgraph: int, values: dict[int, Array]) -> None:
        self._executor = executor
        self.subgraph = subgraph
        self.values = values

    @property
    def invocation(self) -> int:
        """The number of the invoke that this run belongs to."""
        return self._executor.invocation

    @property
    def variables(self) -> Variables:
        """The model's state store."""
        return self._executor.variables

    @property
    def resources(self) -> dict[str, Any]:
        """Return tables and marks of completed one-time work, by name, shared by all subgraphs."""
        return self._executor.variables.resources

    def read(self, variable: str) -> Array:
        """Return the value of a resource variable. Raises ModelError if it was never assigned."""
        return self._executor.variables.read(variable)

    def assign(self, variable: str, value: Array) -> None:
        """Assign to a resource variable; a value that shares memory with the caller's inputs is copied."""
        shared = any(given is not None and np.may_share_memory(value, given) for given in self._executor.given)
        self._executor.variables.set(variable, value.copy() if shared else value)

    def call(self, subgraph: int, inputs: Inputs) -> list[Array]:
        """Run a subgraph on arrays, passed by reference, and return its outputs."""
        return self._executor.call(subgraph, inputs)

    def run_nodes(self, nodes: Sequence[Node]) -> None:
        """Run nodes of this subgraph on this frame's values, as a region's fallback."""
        for node in nodes:
            self._executor.run_node(self, node)


def _require_type(spec: TensorSpec, state: Array) -> None:
    """Raise ModelError unless a kernel returned a state in its tensor's type."""
    if state.dtype != spec.dtype:
        raise ModelError(f"state {spec.name!r}: expected type {state.dtype}, got {spec.type.name}")


class Executor:
    """A model prepared for given shapes.

    model: as rewritten by delegates. specs: shape propagation's results, per subgraph. given: the caller's inputs.
    variables: the state store, which outlives the executor. preserve: keep every value (``values`` after a call).
    preserve_last: keep the inputs of the last node: programs look there for the embedding before a classifier's head,
        as it is the one inner value that TFLite's memory plan never reuses.
    budget: counts memory and time, if they are limited.
    """

    def __init__(
        self,
        model: Model,
        specs: Sequence[Sequence[TensorSpec]],
        variables: Variables,
        *,
        preserve: bool = False,
        preserve_last: bool = False,
        listeners: Iterable[Listener] = (),
        budget: limits.Budget | None = None,
    ) -> None:
        self.variables = variables
        self._budget = budget
        self._model = model
        self._specs = specs
        self._preserve = preserve
        self._last = [graph.nodes[-1].inputs if preserve_last and graph.nodes else () for graph in model.subgraphs]
        self._listeners = tuple(listeners)
        self._steps = [self._prepare(index) for index in range(len(model.subgraphs))]
        self.values: dict[int, dict[int, Array]] = {}
        self.invocation = 0
        self.given: Inputs = ()
        self._depth = 0
        self._replaced: dict[int, Step] = {}

    def call(self, subgraph: int, inputs: Inputs) -> list[Array]:
        """Run a subgraph and return its outputs. Errors carry a note that names the node."""
        graph = self._model.subgraphs[subgraph]
        if len(inputs) != len(graph.inputs):
            raise ModelError(f"subgraph {subgraph} is given {len(inputs)} inputs, expected {len(graph.inputs)}")
        budget = self._budget
        values = {t: x for i, t in enumerate(graph.inputs) if (x := inputs[i]) is not None}
        if budget is not None:
            budget.tick()
            values = limits.CountedValues(budget, values)
        frame = Frame(self, subgraph, values)
        if self._depth == 0:
            self.invocation += 1
            self.given = inputs
        self._depth += 1
        try:
            for step in self._steps[subgraph]:
                self._run(frame, step)
            outputs = [values[t] if t in values else self._value(frame, t) for t in graph.outputs]
        finally:
            self._depth -= 1
            if budget is not None and not self._preserve:
                values.clear()
        if self._preserve:
            self._keep(subgraph, values)
        elif self._depth == 0 and self._last[subgraph]:
            self.values[subgraph] = {t: values[t] for t in self._last[subgraph] if t in values}
        return outputs

    def renew(self) -> None:
        """Start anew, as if just prepared: random number sequences, and all that operators keep between runs."""
        self.values, self._replaced = {}, {}
        self._steps = [tuple(self._renewed(i, step) for step in steps) for i, steps in enumerate(self._steps)]

    def go_on(self, before: "Executor") -> None:
        """Continue from another executor of the model: random number sequences, and all that operators keep."""
        kept = {id(step.node): step.run for steps in before._steps for step in steps if step.remembers}
        self._steps = [tuple(replace(s, run=kept.get(id(s.node), s.run)) for s in steps) for steps in self._steps]
        self.values, self.invocation = before.values, before.invocation

    def _renewed(self, subgraph: int, step: Step) -> Step:
        if not step.remembers:
            return step
        return self._step(subgraph, step.index, step.node, step.drop)

    def in_place(self, subgraph: int, inputs: Inputs) -> InPlace | None:
        """Return a faster ``call`` for a subgraph that consists of one node with a fast path, else None.

        inputs: the arrays that every call will read. Its values leave out constant outputs.
        """
        graph, steps = self._model.subgraphs[subgraph], self._steps[subgraph]
        if len(steps) != 1 or self._preserve or self._listeners or self._budget is not None:
            return None
        (step,) = steps
        values = dict(zip(graph.inputs, inputs, strict=True))
        if not isinstance(step.node.op, ControlOp) or step.node.op.in_place is None:
            return None
        if len(step.fed) != len(step.node.inputs) or not values.keys() >= {*step.node.inputs}:
            return None
        arrays, specs = [values[t] for t in step.node.inputs], self._specs[subgraph]
        wanted = [t for t in graph.outputs if specs[t].data is None]
        fast = step.node.op.in_place(arrays, wanted, Frame(self, subgraph, {}))
        if fast is None:
            return None

        there = fast.failed

        def failed(error: Exception) -> None:
            try:
                there(error)
            except RAISED as raised:
                raise_located(raised, "running", step.node, subgraph, step.index)

        fast.failed = failed
        return fast

    def _keep(self, subgraph: int, values: dict[int, Array]) -> None:
        before = self.values.get(subgraph)
        if isinstance(before, limits.CountedValues):
            before.clear()
        self.values[subgraph] = values

    def run_node(self, frame: Frame, node: Node) -> None:
        """Run a node that is not in the subgraph's list, because a region replaced it."""
        if id(node) not in self._replaced:
            self._replaced[id(node)] = self._step(frame.subgraph, -1, node, ())
        self._run(frame, self._replaced[id(node)])

    def _prepare(self, index: int) -> tuple[Step, ...]:
        graph = self._model.subgraphs[index]
        folded = {t for t, spec in enumerate(self._specs[index]) if spec.data is not None}
        nodes = [(i, n) for i, n in enumerate(graph.nodes) if not folded.issuperset(n.outputs) or acts(self._model, n)]
        last = {t: i for i, node in nodes for t in (*node.inputs, *node.outputs)}
        keep = {ABSENT, *graph.outputs, *self._last[index]}
        drops: dict[int, list[int]] = {}
        for tensor, i in last.items():
            if tensor not in keep and not self._preserve:
                drops.setdefault(i, []).append(tensor)
        return tuple(self._step(index, i, node, tuple(drops.get(i, ()))) for i, node in nodes)

    def _step(self, subgraph: int, index: int, node: Node, drop: tuple[int, ...]) -> Step:
        specs = self._specs[subgraph]
        inputs = [None if t == ABSENT else specs[t] for t in node.inputs]
        outputs = [specs[t] for t in node.outputs]
        checked = isinstance(node.op, ControlOp) or all(
            spec is None or spec.shape is not None for spec in (*inputs, *outputs)
        )
        run: Callable[..., list[Array]] = node.op.run
        if node.op.bind is not None:
            intermediates = [specs[t] for t in node.intermediates if t != ABSENT]
            try:
                if self._budget is not None:
                    self._budget.tick()
                    self._budget.reserve(limits.packed(inputs))
                run = node.op.bind(node.options, inputs, [*outputs, *intermediates]) or node.op.run
            except RAISED as error:
                raise_located(error, "preparing", node, subgraph, index)
        plain = checked and isinstance(node.op, Op) and not node.op.states
        constants = tuple(None if spec is None else spec.data for spec in inputs)
        fed = tuple((i, t) for i, t in enumerate(node.inputs) if t != ABSENT and constants[i] is None)
        fed_specs = [inputs[i] for i, _ in fed]
        need = limits.need(fed_specs, outputs) if checked and not calls(node) else 0
        return Step(index, node, run, checked, plain, constants, fed, {}, drop, need)

    def _run(self, frame: Frame, step: Step) -> None:
        node = step.node
        start_s = time.perf_counter() if self._listeners else 0.0
        values = frame.values
        inputs = list(step.constants)
        try:
            for position, tensor in step.fed:
                value = values.get(tensor)
                inputs[position] = self._value(frame, tensor) if value is None else value
            if self._budget is not None:
                self._budget.tick()
                self._budget.require(step.need_bytes)
            outputs = step.run(node.options, inputs) if step.plain else self._outputs(frame, step, inputs)
            if len(outputs) != len(node.outputs):
                raise ModelError(f"the node has {len(node.outputs)} outputs, expected {len(outputs)}")
        except RAISED as error:
            raise_located(error, "running", node, frame.subgraph, step.index)
        for i, tensor in enumerate(node.outputs):
            values[tensor] = outputs[i]
        for listener in self._listeners:
            listener.ran(frame.subgraph, step.index, node.op.name, start_s, time.perf_counter())
        for tensor in step.drop:
            values.pop(tensor, None)

    def _outputs(self, frame: Frame, step: Step, inputs: Inputs) -> list[Array]:
        node = step.node
        if isinstance(node.op, ControlOp):
            return step.run(node.options, inputs, frame)
        if not step.checked:
            self._check(frame.subgraph, step, inputs)
        results = step.run(node.options, inputs)
        if node.op.states:
            count = len(node.outputs)
            for position, state in zip(node.op.states, results[count:], strict=True):
                tensor = node.inputs[position]
                if tensor != ABSENT:
                    _require_type(self._specs[frame.subgraph][tensor], state)
                if tensor in frame.values:
                    frame.values[tensor] = state  # fed or produced in every run; later readers see it updated
                elif tensor != ABSENT:
                    self.variables.set((frame.subgraph, tensor), state)
            results = results[:count]
        return results

    def _check(self, subgraph: int, step: Step, inputs: Inputs) -> None:
        """Repeat shape inference's checks on actual shapes and values, unless the same ones just passed."""
        seen = tuple(None if x is None else mark(x) for x in inputs)
        if step.passed.get("last") == seen:
            self._require(step.passed["need"])
            return
        node = step.node
        specs = self._specs[subgraph]
        actual = [
            None if x is None else TensorSpec(specs[t].type, x.shape, specs[t].name, x, specs[t].quantization)
            for t, x in zip(node.inputs, inputs, strict=True)
        ]
        inferred = node.op.infer(node.options, actual)
        for tensor, spec in zip(node.outputs, inferred, strict=False):
            limits.check(replace(spec, name=specs[tensor].name))
        need = limits.need([actual[i] for i, _ in step.fed], inferred)
        self._require(need)
        step.passed.update(last=seen, need=need)

    def _require(self, size_bytes: Any) -> None:
        if self._budget is not None:
            self._budget.require(size_bytes)

    def _value(self, frame: Frame, tensor: int) -> Array:
        value = frame.values.get(tensor)
        if value is not None:
            return value
        spec = self._specs[frame.subgraph][tensor]
        if spec.data is not None:
            return spec.data
        if spec.is_variable:
            return self.variables.get((frame.subgraph, tensor), spec)
        raise ModelError(f"tensor {tensor} ({spec.name!r}) has no value: nothing produces it")
