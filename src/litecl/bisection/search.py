"""Searches for nodes that a runtime computes wrong given right inputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from litecl.bisection.cut import body, cut
from litecl.bisection.runners import EMULATED, Run, Runner, run
from litecl.bisection.tolerance import Error, Tolerance, size_of, worst
from litecl.interpreter.errors import LiteclError, ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import ABSENT, Array, Model, Node, callees_of

_MOST_FUSED = 12  # nodes that one kernel may fuse; an error that needs more isn't a single kernel's
_MOST_ITERATIONS = 10_000
_MOST_POINTS = 40  # sample points for the growth of errors

Values = Mapping[int, Array]
Tick = Callable[[str], None]


@dataclass(frozen=True)
class Fault:
    """Nodes of a subgraph whose results are wrong.

    iterations: of the enclosing loops, outermost first. error: of the worst result, ``tensor``. model, inputs,
    expected: the nodes as a model, its inputs and the right outputs.
    """

    subgraph: int
    nodes: tuple[int, ...]
    ops: tuple[str, ...]
    iterations: tuple[int, ...]
    tensor: str
    error: Error
    model: Model
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]


@dataclass(frozen=True)
class Growth:
    """The error of a node's results after all nodes before it have also run on the suspect."""

    node: int
    op: str
    size: float


@dataclass
class Search:
    """A search on a suspect and a reference. notes: the parts that could not be checked, and why."""

    suspect: Runner
    reference: Runner
    tolerance: Tolerance
    tick: Tick = lambda text: None
    notes: list[str] = field(default_factory=list)

    def whole(self, model: Model, given: Sequence[Array]) -> bytes:
        """Return the model as a file, with the shapes of the given inputs."""
        return write(body(model, 0, dict(zip(model.subgraphs[0].inputs, given, strict=True))).model)

    def values(self, model: Model, subgraph: int, given: Sequence[Array]) -> Values:
        """Return the reference's values of all tensors of a subgraph, including constants. Raises LiteclError."""
        return self._values(self.reference, model, subgraph, given)

    def _values(self, runner: Runner, model: Model, subgraph: int, given: Sequence[Array]) -> Values:
        graph = model.subgraphs[subgraph]
        whole = body(model, subgraph, dict(zip(graph.inputs, given, strict=True)))
        runtime = runner.load(write(whole.model), preserve=True)
        run(runtime, given, runner.name)
        tensors = dict(zip(graph.inputs, given, strict=True))
        used = {t for node in graph.nodes for t in (*node.inputs, *node.outputs, *node.intermediates) if t != ABSENT}
        for number, tensor in enumerate(sorted({*used, *graph.inputs, *graph.outputs})):
            data = graph.tensors[tensor].data
            if data is not None:
                tensors[tensor] = data
            elif tensor not in tensors:
                try:
                    tensors[tensor] = runtime.get_tensor(number)
                except (LiteclError, ValueError):  # not readable: a resource or an intermediate
                    continue
        return tensors

    def fault(self, model: Model, subgraph: int, values: Values, iterations: tuple[int, ...] = ()) -> Fault | None:
        """Return the fault in a subgraph that is wrong as a whole; None if no part is wrong by itself."""
        count = len(model.subgraphs[subgraph].nodes)
        part = self._part(model, subgraph, values, 0, count)
        most = 1 if self.suspect.name in EMULATED else _MOST_FUSED  # emulations don't fuse
        if part is None or len(part) > most or self.wrong(model, subgraph, part, values) is None:
            part = next(([i] for i in range(count) if self.wrong(model, subgraph, [i], values) is not None), None)
        if part is None:
            return None
        if len(part) == 1:
            node = model.subgraphs[subgraph].nodes[part[0]]
            inner = self._within(model, node, values, iterations)
            if inner is not None:
                return inner
        return self._blamed(model, subgraph, part, values, iterations)

    def wrong(self, model: Model, subgraph: int, nodes: Sequence[int], values: Values) -> Error | None:
        """Run nodes alone on the suspect, given right inputs; return the worst result. None if none is wrong, or if the
        nodes can't run apart.
        """
        try:
            part = cut(model, subgraph, nodes, values)
            self.tick(_named(model, subgraph, nodes))
            got = self.suspect.prepare(write(part.model))([values[t] for t in part.inputs])
            return worst(got, [values[t] for t in part.outputs], self.tolerance)
        except KeyError as error:
            self._note(model, subgraph, nodes, f"tensor {error} has no value to compare with")
        except LiteclError as error:
            self._note(model, subgraph, nodes, str(error))
        return None

    def growth(self, model: Model, subgraph: int, values: Values) -> list[Growth]:
        """Return the error after more and more nodes of a subgraph."""
        if self.suspect.name in EMULATED:
            return self._growth_at_once(model, subgraph, values)
        nodes = model.subgraphs[subgraph].nodes
        step = -(-len(nodes) // _MOST_POINTS)
        growth = []
        for last in sorted({*range(step - 1, len(nodes), step), len(nodes) - 1}):
            try:
                part = cut(model, subgraph, range(last + 1), values)
                got = self.suspect.prepare(write(part.model))([values[t] for t in part.inputs])
            except (LiteclError, KeyError):
                continue
            own = [(a, values[t]) for a, t in zip(got, part.outputs, strict=True) if t in nodes[last].outputs]
            growth.append(Growth(last, nodes[last].op.name, max((size_of(a, b) for a, b in own), default=0.0)))
        return growth

    def _growth_at_once(self, model: Model, subgraph: int, values: Values) -> list[Growth]:
        """Return the growth from a single run: a suspect that doesn't fuse yields the results of all nodes."""
        graph = model.subgraphs[subgraph]
        got = self._values(self.suspect, model, subgraph, [values[t] for t in graph.inputs])
        growth = []
        for i, node in enumerate(graph.nodes):
            sizes = [size_of(got[t], values[t]) for t in node.outputs if t in got and t in values]
            growth += [Growth(i, node.op.name, max(sizes))] if sizes else []
        return growth

    def _part(self, model: Model, subgraph: int, values: Values, first: int, end: int) -> list[int] | None:
        """Narrow nodes from first to end, which are wrong together, to the fewest adjacent ones that still are."""
        if end - first < 2:
            return [*range(first, end)] or None
        middle = (first + end) // 2
        for half in ((first, middle), (middle, end)):
            if self.wrong(model, subgraph, range(*half), values) is not None:
                return self._part(model, subgraph, values, *half)
        return self._around(model, subgraph, values, first, middle, end)

    def _around(self, model: Model, subgraph: int, values: Values, first: int, middle: int, end: int) -> list[int]:
        """Return the fewest nodes around a middle that are wrong together, as when one kernel fuses both sides."""
        for step in _halves(middle - first):
            while first + step < middle and self.wrong(model, subgraph, range(first + step, end), values):
                first += step
        for step in _halves(end - middle):
            while end - step > middle and self.wrong(model, subgraph, range(first, end - step), values):
                end -= step
        return [*range(first, end)]

    def _within(self, model: Model, node: Node, values: Values, iterations: tuple[int, ...]) -> Fault | None:
        """Return the fault in the subgraphs that a node runs; None if they are right by themselves."""
        callees = callees_of(node)
        if not callees:
            return None
        try:
            given = [values[t] for t in node.inputs]
            if node.op.name == "WHILE":
                return self._in_loop(model, callees, given, iterations)
            if node.op.name == "IF":
                callees, given = (callees[0 if given[0].item() else 1],), given[1:]
            for callee in callees:
                if (fault := self._in_call(model, callee, given, iterations)) is not None:
                    return fault
        except (ModelError, KeyError) as error:
            self.notes.append(f"{node.op.name}: its subgraphs do not run apart: {error}")
        return None

    def _in_call(self, model: Model, callee: int, given: Sequence[Array], iterations: tuple[int, ...]) -> Fault | None:
        right, suspected = (self._runs(model, callee, given, runner) for runner in (self.reference, self.suspect))
        if worst(suspected(given), right(given), self.tolerance) is None:
            return None
        return self.fault(model, callee, self.values(model, callee, given), iterations)

    def _in_loop(
        self, model: Model, callees: Sequence[int], given: Sequence[Array], iterations: tuple[int, ...]
    ) -> Fault | None:
        """Search the first wrong iteration, giving each the right variables."""
        condition, body_ = callees
        goes_on = self._runs(model, condition, given, self.reference)
        suspects = [(callee, self._runs(model, callee, given, self.suspect)) for callee in callees]
        right = {condition: goes_on, body_: self._runs(model, body_, given, self.reference)}
        for iteration in range(_MOST_ITERATIONS):
            for callee, suspected in suspects:
                if worst(suspected(given), right[callee](given), self.tolerance) is not None:
                    return self.fault(model, callee, self.values(model, callee, given), (*iterations, iteration))
            if not goes_on(given)[0].all():
                return None
            given = right[body_](given)
        self.notes.append(f"a loop was looked at for {_MOST_ITERATIONS} iterations only")
        return None

    def _runs(self, model: Model, subgraph: int, given: Sequence[Array], runner: Runner) -> Run:
        graph = model.subgraphs[subgraph]
        return runner.prepare(write(body(model, subgraph, dict(zip(graph.inputs, given, strict=True))).model))

    def _blamed(
        self, model: Model, subgraph: int, nodes: Sequence[int], values: Values, iterations: tuple[int, ...]
    ) -> Fault | None:
        error = self.wrong(model, subgraph, nodes, values)
        if error is None:  # not reproducible: it was wrong before
            return None
        graph, part = model.subgraphs[subgraph], cut(model, subgraph, nodes, values)
        inputs, expected = ([values[t] for t in tensors] for tensors in (part.inputs, part.outputs))
        name = graph.tensors[part.outputs[error.output]].name
        ops = tuple(graph.nodes[i].op.name for i in nodes)
        return Fault(subgraph, tuple(nodes), ops, iterations, name, error, part.model, tuple(inputs), tuple(expected))

    def _note(self, model: Model, subgraph: int, nodes: Sequence[int], why: str) -> None:
        note = f"{_named(model, subgraph, nodes)} could not be looked at alone: {why}"
        if note not in self.notes:
            self.notes.append(note)


def _halves(count: int) -> list[int]:
    """Return steps that halve from half of a count down to 1."""
    steps = []
    while count > 1:
        count = (count + 1) // 2
        steps.append(count)
    return steps


def _named(model: Model, subgraph: int, nodes: Sequence[int]) -> str:
    ops = [model.subgraphs[subgraph].nodes[i].op.name for i in nodes]
    span = str(nodes[0]) if len(nodes) == 1 else f"{nodes[0]} to {nodes[-1]}"
    listed = ", ".join(ops) if len(ops) <= 3 else f"{ops[0]} ... {ops[-1]}"
    return f"node{'s' if len(nodes) > 1 else ''} {span} ({listed})" + (f" of subgraph {subgraph}" if subgraph else "")
