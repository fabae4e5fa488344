"""Reasons not to run control flow, calls or variable operators on the device. Pure functions of data."""

from collections.abc import Callable, Sequence

from litecl.delegate.analysis.explicit import Explicit
from litecl.delegate.analysis.loop_variables import live_nodes
from litecl.delegate.claim.region import FOLDED
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import ABSENT, Model, Node, Shape, Subgraph, TensorSpec, acts, callees_of
from litecl.interpreter.op import ControlOp
from litecl.interpreter.ops.control import CALL, CALL_ONCE, IF, STABLEHLO_COMPOSITE, WHILE
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, name_of
from litecl.interpreter.run.shapes import propagate
from litecl.interpreter.schema import TensorType

CONTROL_OPS = (IF, WHILE, CALL, STABLEHLO_COMPOSITE)
"""Control operators that a region may absorb, with all subgraphs that they reach."""

VARIABLE_OPS = (READ_VARIABLE, ASSIGN_VARIABLE, CALL_ONCE)
"""The operators that only move variables; they need no launch in a region."""

Specs = Sequence[Sequence[TensorSpec]]
WhyNot = Callable[[int, int], str | None]


def refusal(index: int, position: int, source: Explicit, why_not: WhyNot) -> str | None:
    """Return why a control node of subgraph ``index`` stays on the CPU; None if the device runs everything it reaches.

    why_not: returns the same for any node, by its subgraph and position.
    """
    model, specs = source.model, source.specs
    node = model.subgraphs[index].nodes[position]
    name = node.op.name
    if node.op in (READ_VARIABLE, ASSIGN_VARIABLE):
        return _variable(node, specs[index])
    if node.op is CALL_ONCE:
        return _initialiser(index, position, source)
    if (index, position) in source.refused:
        return f"{name}: {source.refused[index, position]}"
    if node.op not in CONTROL_OPS:
        return f"{name} runs on the CPU; static parts of its subgraphs are claimed as regions of their own"
    reason = (
        _shapes(index, node, model, specs)
        or next((r for callee in callees_of(node) if (r := _subgraph(callee, model, specs, why_not))), None)
        or _condition(index, node, model, specs)
    )
    return None if reason is None else f"{name}: {reason}"


def _subgraph(index: int, model: Model, specs: Specs, why_not: WhyNot) -> str | None:
    """Return why a region cannot absorb a subgraph: a node that stays on the CPU, or a CALL_ONCE; None if it can."""
    graph = model.subgraphs[index]
    for position in live_nodes(graph):
        node, reason = graph.nodes[position], why_not(index, position)
        if reason not in (None, FOLDED):
            where = f"{node.op.name} in subgraph {index}"
            return reason if isinstance(node.op, ControlOp) else f"{where} stays on the CPU: {reason}"
        if node.op is CALL_ONCE:
            return f"{node.op.name} in subgraph {index}, which may run more than once"
    return None


def _variable(node: Node, specs: Sequence[TensorSpec]) -> str | None:
    """Return why a node's variable isn't explicit: its input is then still a handle. None if it is explicit."""
    spec = specs[node.inputs[0]]
    if spec.type != TensorType.RESOURCE:
        return None
    if spec.data is None:
        return f"{node.op.name}: which variable it is is known only at run time"
    name = name_of(spec.data)
    return f"{node.op.name}: variable {name!r} has not one known shape and type wherever it is read and assigned"


def _initialiser(index: int, position: int, source: Explicit) -> str | None:
    """Return why the host cannot give variables their first values before a region runs; None if it can."""
    model, specs = source.model, source.specs
    nodes = model.subgraphs[index].nodes
    name, first = nodes[position].op.name, callees_of(nodes[position])[0]
    if any(acts(model, node) and node.op is not CALL_ONCE for node in nodes[:position]):
        return f"{name}: something is assigned before it"
    for node in model.subgraphs[first].nodes:
        inputs = [
            t for t in node.inputs if node.op is not ASSIGN_VARIABLE or specs[first][t].type != TensorType.RESOURCE
        ]
        known = all(t == ABSENT or specs[first][t].data is not None for t in inputs)
        if not known or (acts(model, node) and node.op is not ASSIGN_VARIABLE):
            return f"{name}: {node.op.name} in subgraph {first} is more than the first value of a variable"
    return None


def _condition(index: int, node: Node, model: Model, specs: Specs) -> str | None:
    """Return why the condition cannot be used as a predicate; None if it can."""
    if node.op is IF:
        spec = specs[index][node.inputs[0]]
    elif node.op is WHILE:
        graph = callees_of(node)[0]
        spec = specs[graph][model.subgraphs[graph].outputs[0]]
    else:
        return None
    if spec.type == TensorType.BOOL and spec.shape is not None and spec.size == 1:
        return None
    return f"the condition is {spec.type.name}{_text(spec.shape)}, expected one BOOL"


def _shapes(index: int, node: Node, model: Model, specs: Specs) -> str | None:
    """Return which operand or result of a node has no static shape, or differs between branches; else None."""
    for position, tensor in enumerate(node.inputs):
        if tensor == ABSENT or specs[index][tensor].shape is None:
            return f"input {position} has a shape that is known only at run time"
    if node.op is WHILE:
        return _loop_shapes(index, node, model, specs)
    callees = [model.subgraphs[callee] for callee in callees_of(node)]
    known = [[specs[c][t] for t in g.outputs] for c, g in zip(callees_of(node), callees, strict=True)]
    for position, results in enumerate(zip(*known, strict=True)):
        shapes = [spec.shape for spec in results]
        if None in shapes:
            return f"output {position} has a shape that is known only at run time"
        if len(set(shapes)) > 1:
            return f"output {position} has the shape {' in one branch and '.join(map(_text, shapes))} in the other"
        if len({spec.type for spec in results}) > 1:
            return f"output {position} has different types in the branches"
    return _arguments(index, node, node.inputs[1:] if node.op is IF else node.inputs, model, specs)


def _loop_shapes(index: int, node: Node, model: Model, specs: Specs) -> str | None:
    """Return the first loop variable whose shape or type an iteration changes; None if there is none."""
    body = callees_of(node)[1]
    graph = model.subgraphs[body]
    given = [specs[index][t] for t in node.inputs]
    if all(specs[body][t].shape is not None for t in graph.inputs):
        after: Sequence[Shape | None] = [specs[body][t].shape for t in graph.outputs]
    else:
        after = _after_one_iteration(body, given, model)
    for position, (before, result, tensor) in enumerate(zip(given, after, graph.outputs, strict=True)):
        if result != before.shape and specs[body][graph.inputs[position]].shape is None:
            return f"output {position} of the body changes shape {_text(before.shape)} -> {_text(result)}"
        if specs[body][tensor].type != before.type:
            return f"output {position} of the body changes type to {specs[body][tensor].type.name}"
    return _arguments(index, node, node.inputs, model, specs)


def _arguments(index: int, node: Node, given: Sequence[int], model: Model, specs: Specs) -> str | None:
    """Return why a callee doesn't take these arguments: several shapes, or another type; None if it does."""
    for callee in callees_of(node):
        for position, (tensor, inner) in enumerate(zip(given, model.subgraphs[callee].inputs, strict=True)):
            outer, known = specs[index][tensor], specs[callee][inner]
            if known.shape is None:
                return f"input {position} of subgraph {callee} has more than one shape"
            if known.type != outer.type:
                return f"input {position} of subgraph {callee} is {known.type.name}, got {outer.type.name}"
    return None


def _after_one_iteration(body: int, given: Sequence[TensorSpec], model: Model) -> list[Shape | None]:
    """Return the loop variables' shapes after the first iteration, None where unknown."""
    graph: Subgraph = model.subgraphs[body]
    try:
        specs = propagate(model, {body: [spec.static_shape for spec in given]})[body]
    except LiteclError:
        return [None] * len(given)
    return [specs[t].shape for t in graph.outputs]


def _text(shape: Shape | None) -> str:
    return "?" if shape is None else str(list(shape))
