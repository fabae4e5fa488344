"""Families of branches and loops whose subgraphs are random graphs themselves, nested up to a depth of two."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from litecl.interpreter.errors import FAULTS, LiteclError
from litecl.interpreter.graph import ABSENT, Array, Subgraph
from litecl.interpreter.op import ControlOp, Inputs, Op
from litecl.interpreter.ops import compare, reduce
from litecl.interpreter.ops.binary import ADD, LOGICAL_AND, AddOptions
from litecl.interpreter.ops.control import CALL, IF, WHILE, CallOptions, IfOptions, WhileOptions
from litecl.random_graphs.sketch import Sketch, T, Unfit, alike
from litecl.random_graphs.variables import handle_to

_DEEPEST = 2
_MOST_NODES = 5


@dataclass
class _Run:
    """Runs subgraphs by their operators' kernels, for the values of a sketch. Variables begin as zeros."""

    graphs: Sequence[Subgraph]
    resources: dict[str, Any] = field(default_factory=dict)
    assigned: dict[str, Array] = field(default_factory=dict)
    variables: dict[tuple[int, int], Array] = field(default_factory=dict)

    def read(self, variable: str) -> Array:
        """Return the value of a resource variable."""
        return self.assigned[variable]

    def assign(self, variable: str, value: Array) -> None:
        """Give a resource variable another value."""
        self.assigned[variable] = value

    def call(self, subgraph: int, inputs: Inputs) -> list[Array]:
        """Return the outputs of a subgraph."""
        graph = self.graphs[subgraph]
        values = {t: x for t, x in zip(graph.inputs, inputs, strict=True) if x is not None}

        def value(tensor: int) -> Array | None:
            if tensor == ABSENT:
                return None
            spec = graph.tensors[tensor]
            if tensor in values or spec.data is not None:
                return values.get(tensor, spec.data)
            return self.variables.get((subgraph, tensor), np.zeros(spec.static_shape, spec.dtype))

        for node in graph.nodes:
            given = [value(t) for t in node.inputs]
            if isinstance(node.op, ControlOp):
                results = node.op.run(node.options, given, self)
            else:
                specs = [None if t == ABSENT else graph.tensors[t] for t in node.inputs]
                bind = node.op.bind
                run = None if bind is None else bind(node.options, specs, [graph.tensors[t] for t in node.outputs])
                results = (run or node.op.run)(node.options, given)
            states = node.op.states if isinstance(node.op, Op) else ()
            for position, new in zip(states, results[len(node.outputs) :], strict=True):
                self.variables[subgraph, node.inputs[position]] = new
            values |= dict(zip(node.outputs, results, strict=False))
        return [np.asarray(value(t)) for t in graph.outputs]


def _control(s: Sketch, op: ControlOp, options: Any, inputs: Sequence[int]) -> None:
    """Adds a node that runs subgraphs, with the values that its outputs and resource variables then have."""
    running = _Run(s.graphs, assigned=dict(s.kept.values))
    try:
        with np.errstate(all="ignore"):
            results = op.run(options, [s.values[t] for t in inputs], running)
    except (LiteclError, *FAULTS) as error:
        raise Unfit(f"{op.name}: {error}") from error
    s.control(op, inputs, options, results)
    s.kept.values.update(running.assigned)


def _inner(s: Sketch, name: str, given: Sequence[int]) -> Sketch:
    """The sketch of a subgraph whose inputs are like these tensors."""
    inner = Sketch(s.rng, s.types, s.families, s.graphs, f"{name}{len(s.graphs)}", s.depth + 1, s.kept)
    for t in given:
        inner.input(s.spec(t).type, s.shape_of(t), s.spec(t).quantization, s.values[t])
    return inner


def _add(s: Sketch, graph: Subgraph) -> int:
    """Make a subgraph part of the model; its number."""
    s.graphs.append(graph)
    return len(s.graphs) - 1


def _arguments(s: Sketch) -> list[int]:
    """One to three tensors to hand on, mostly different ones."""
    if s.depth >= _DEEPEST:
        raise Unfit("deep enough")
    given = [s.pick(where=lambda p: not p.is_variable) for _ in range(int(s.rng.integers(1, 4)))]
    names = [*s.kept.specs]
    handles = [handle_to(s, str(s.one_of(*names)))] if names and s.chance(0.3) else []
    return [*(given if s.chance(0.2) else dict.fromkeys(given)), *handles]


def _truth(s: Sketch) -> int:
    """One truth value that follows from a tensor."""
    x = s.pick(T.FLOAT32, T.INT32, T.BOOL, where=lambda p: p.quantization is None)
    axes = s.ints(*range(len(s.shape_of(x))))
    if s.spec(x).type == T.BOOL:
        return s.op(reduce.REDUCE_ANY, [x, axes], reduce.ReducerOptions())
    most = s.op(reduce.REDUCE_MAX, [x, axes], reduce.ReducerOptions())
    bound = s.values[most] + s.one_of(-1, 0, 1) * s.spec(x).dtype.type(2)
    return s.op(s.one_of(compare.LESS, compare.GREATER), [most, s.const(bound.astype(s.spec(x).dtype))])


def _match(s: Sketch, inner: Sketch, given: Sequence[int]) -> list[int]:
    """For every tensor one of the subgraph that is like it, computed there if any is; its own input at the least."""
    found = []
    for t, own in zip(given, inner.inputs, strict=False):
        fits = [i for i in inner.pool if alike(inner.spec(i), s.spec(t)) and not inner.spec(i).is_variable]
        computed = [i for i in fits if i not in inner.inputs]
        found.append(int(s.one_of(*computed)) if computed and s.chance(0.9) else int(s.one_of(*fits, own)))
    return found


@contextmanager
def _only_drawn(s: Sketch) -> Iterator[None]:
    """Draw subgraphs, which assign nothing until they run."""
    before = dict(s.kept.values)
    try:
        yield
    finally:
        s.kept.values.update(before)


def branch(s: Sketch) -> None:
    """IF."""
    given = _arguments(s)
    numbers = []
    for name in ("then", "else"):
        with _only_drawn(s):
            inner = _inner(s, name, given)
            inner.grow(int(s.rng.integers(1, _MOST_NODES)))
        numbers.append(_add(s, inner.build(_match(s, inner, given))))
    _control(s, IF, IfOptions(*numbers), [_truth(s), *given])


def call(s: Sketch) -> None:
    """CALL."""
    given = _arguments(s)
    with _only_drawn(s):
        inner = _inner(s, "called", given)
        inner.grow(int(s.rng.integers(1, _MOST_NODES)))
    _control(s, CALL, CallOptions(_add(s, inner.build(_match(s, inner, given)))), given)


def loop(s: Sketch) -> None:
    """WHILE, as often as a counter says, or until the values of the loop say so."""
    given = [s.const(np.array(0, np.int32)), *_arguments(s)]
    condition = _inner(s, "condition", given)
    most = condition.const(np.array(int(s.rng.integers(0, 6)), np.int32))
    goes_on = condition.op(compare.LESS, [condition.inputs[0], most])
    if s.chance(0.3):
        whole = condition.op(reduce.REDUCE_ANY, [goes_on, condition.ints()], reduce.ReducerOptions())
        goes_on = condition.op(LOGICAL_AND, [whole, _truth(condition)])
    with _only_drawn(s):
        if s.chance(0.05):
            condition.grow(int(s.rng.integers(2, _MOST_NODES)))
        number = _add(s, condition.build([goes_on]))
        body = _inner(s, "body", given)
        counter = body.op(ADD, [body.inputs[0], body.const(np.array(1, np.int32))], AddOptions())
        body.grow(int(s.rng.integers(2, _MOST_NODES + 1)))
    outputs = [counter, *_match(s, body, given)[1:]]
    if s.chance(0.3):
        outputs[1:] = _match(s, body, given)[1:]
    _control(s, WHILE, WhileOptions(number, _add(s, body.build(outputs))), given)


FAMILIES = {"control": (branch, loop, loop, call)}
