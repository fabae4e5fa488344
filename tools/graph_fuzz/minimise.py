"""Reduces a model that differs as long as it still differs: fewer calls, one output, fewer nodes."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array, Model, Node, Subgraph, reached
from litecl.interpreter.op import Op
from litecl.interpreter.ops.variables import VAR_HANDLE
from litecl.random_graphs.graphs import Call, Drawn

Fails = Callable[[Drawn], bool]


def minimise(drawn: Drawn, fails: Fails) -> Drawn:
    """Return the smallest model, by a greedy search, that fails as this one does."""
    size = None
    while size != (size := _size(drawn)):
        for attempts in _ATTEMPTS:
            drawn = _best(drawn, attempts, fails)
    return drawn


def _size(drawn: Drawn) -> tuple[int, int, int]:
    main = drawn.model.subgraphs[0]
    return len(drawn.calls), len(main.outputs), len(main.nodes)


def _best(drawn: Drawn, attempts: Callable[[Drawn], Sequence[Callable[[], Drawn]]], fails: Fails) -> Drawn:
    """Return what is left after all reductions that still fail, applied one after another."""
    number = 0
    while number < len(remaining := attempts(drawn)):
        with suppress(LiteclError, KeyError, IndexError):
            smaller = remaining[number]()
            if fails(smaller):
                drawn = smaller
                continue
        number += 1
    return drawn


def _without_denied(drawn: Drawn) -> list[Callable[[], Drawn]]:
    return [lambda: replace(drawn, deny=())] if drawn.deny else []


def _fewer_calls(drawn: Drawn) -> list[Callable[[], Drawn]]:
    calls, count = drawn.calls, len(drawn.calls)
    fewer = [calls[:i] + calls[i + 1 :] for i in reversed(range(count))] if count > 1 else []
    return [lambda c=c: replace(drawn, calls=c) for c in fewer]  # type: ignore[misc]


def _one_entry(drawn: Drawn) -> list[Callable[[], Drawn]]:
    if not drawn.model.signatures or any(call.entry for call in drawn.calls):
        return []
    kept = {0, *reached(drawn.model, drawn.model.subgraphs[0].nodes)}
    graphs = tuple(g if i in kept else Subgraph((), (), (), ()) for i, g in enumerate(drawn.model.subgraphs))
    return [lambda: replace(drawn, model=replace(drawn.model, subgraphs=graphs, signatures=()))]


def _ancestors(drawn: Drawn) -> list[Callable[[], Drawn]]:
    """Yield models that compute one node and only what it depends on; the first nodes first."""
    graph = drawn.model.subgraphs[0]
    if drawn.model.signatures or drawn.deny:
        return []
    return [lambda i=i: _with_main(drawn, _leading_to(graph, i)) for i in range(len(graph.nodes))]  # type: ignore[misc]


def _leading_to(graph: Subgraph, last: int) -> Subgraph:
    needed, nodes = {*graph.nodes[last].inputs}, [graph.nodes[last]]
    for node in reversed(graph.nodes[:last]):
        states = {node.inputs[p] for p in node.op.states} if isinstance(node.op, Op) else set()
        if needed.intersection(node.outputs) or needed & states or not node.outputs:
            nodes.insert(0, node)
            needed.update(node.inputs)
    smaller = replace(graph, outputs=graph.nodes[last].outputs, nodes=tuple(nodes))
    if len(nodes) == len(graph.nodes):
        raise LiteclError("no smaller")
    return smaller


def _fewer_outputs(drawn: Drawn) -> list[Callable[[], Drawn]]:
    graph = drawn.model.subgraphs[0]
    if drawn.model.signatures or len(graph.outputs) < 2:
        return []
    fewer = [graph.outputs[:i] + graph.outputs[i + 1 :] for i in range(len(graph.outputs))]
    return [lambda o=o: _with_main(drawn, replace(graph, outputs=o)) for o in fewer]  # type: ignore[misc]


def _without_nodes(drawn: Drawn) -> list[Callable[[], Drawn]]:
    """Yield models without one of the nodes that nothing reads."""
    graph = drawn.model.subgraphs[0]
    read = {*graph.outputs, *(t for node in graph.nodes for t in node.inputs)}
    unread = [i for i, node in enumerate(graph.nodes) if not read.intersection(node.outputs)]
    if drawn.deny:
        return []
    return [
        lambda i=i: _with_main(drawn, replace(graph, nodes=graph.nodes[:i] + graph.nodes[i + 1 :]))  # type: ignore[misc]
        for i in unread
    ]


def _cut_off(drawn: Drawn) -> list[Callable[[], Drawn]]:
    """Yield models without one node, with its results fed in its place."""
    graph = drawn.model.subgraphs[0]
    if drawn.deny or drawn.model.signatures:
        return []
    return [lambda i=i: _fed(drawn, i) for i in range(len(graph.nodes))]  # type: ignore[misc]


def _fed(drawn: Drawn, position: int) -> Drawn:
    graph = drawn.model.subgraphs[0]
    node = graph.nodes[position]
    if isinstance(node.op, Op) and node.op.states:
        raise LiteclError("its states would not be updated")
    if not node.outputs or node.op is VAR_HANDLE:
        raise LiteclError("its effect would be missing")
    values = _values(drawn, node)
    tensors = tuple(
        replace(spec, shape=values[0][node.outputs.index(t)].shape) if t in node.outputs else spec
        for t, spec in enumerate(graph.tensors)
    )
    nodes = graph.nodes[:position] + graph.nodes[position + 1 :]
    cut = replace(graph, tensors=tensors, inputs=graph.inputs + node.outputs, nodes=nodes)
    read = {*cut.outputs, *(t for n in nodes for t in n.inputs)}
    kept = [i for i, t in enumerate(cut.inputs) if t in read]
    calls = tuple(
        replace(call, feeds=tuple((*call.feeds, *more)[i] for i in kept))
        for call, more in zip(drawn.calls, values, strict=True)
    )
    return _with_main(replace(drawn, calls=calls), replace(cut, inputs=tuple(cut.inputs[i] for i in kept)))


def _values(drawn: Drawn, node: Node) -> list[list[Array]]:
    """Return a node's results in every call."""
    interpreter = Interpreter(drawn.model, experimental_preserve_all_tensors=True)
    return [_after(interpreter, drawn.model, call, node) for call in drawn.calls]


def _after(interpreter: Interpreter, model: Model, call: Call, node: Node) -> list[Array]:
    inputs = model.subgraphs[0].inputs
    for tensor, value in zip(inputs, call.feeds, strict=True):
        interpreter.resize_tensor_input(tensor, value.shape)
    interpreter.allocate_tensors()
    for tensor, value in zip(inputs, call.feeds, strict=True):
        interpreter.set_tensor(tensor, value)
    interpreter.invoke()
    return [interpreter.get_tensor(t) for t in node.outputs]


def _with_main(drawn: Drawn, graph: Subgraph) -> Drawn:
    return replace(drawn, model=replace(drawn.model, subgraphs=(graph, *drawn.model.subgraphs[1:])))


_ATTEMPTS = (_without_denied, _fewer_calls, _one_entry, _ancestors, _fewer_outputs, _without_nodes, _cut_off)


def listing(drawn: Drawn) -> str:
    """Return a model as text, one line per node."""
    lines = []
    for number, graph in enumerate(drawn.model.subgraphs):
        lines.append(f"subgraph {number} {graph.name}: {_named(graph, graph.inputs)} -> {_named(graph, graph.outputs)}")
        lines += [
            f"  {i} {node.op.name} {_named(graph, node.inputs)} -> {_named(graph, node.outputs)} {node.options}"
            for i, node in enumerate(graph.nodes)
        ]
    for call in drawn.calls:
        shapes = [feed.shape for feed in call.feeds]
        lines.append(f"call of subgraph {call.entry}{' after a reset' * call.reset}: {shapes}")
    return "\n".join([*lines, *([f"on the CPU: {drawn.deny}"] if drawn.deny else [])])


def _named(graph: Subgraph, tensors: Sequence[int]) -> str:
    return ", ".join("-" if t < 0 else _tensor(graph, t) for t in tensors)


def _tensor(graph: Subgraph, tensor: int) -> str:
    spec = graph.tensors[tensor]
    mark = "=" if spec.data is not None else "*" if spec.is_variable else ""
    return f"{tensor}{mark}:{spec.type.name}{list(spec.shape or ())}{'q' if spec.quantization is not None else ''}"
