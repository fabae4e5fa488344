"""A region's graph as text, one node per line, to show the effect of a pass."""

from collections.abc import Iterator

from litecl.delegate.cl_op import Activation, Pads
from litecl.delegate.plan.graph import NONE, ElementwiseStep, RegionGraph, RegionNode
from litecl.interpreter.graph import ABSENT, Shape


def describe(graph: RegionGraph) -> str:
    """Return a graph as text: ``%`` marks tensors by number, ``#`` the positions of the nodes fused into a line, its
    own first.
    """
    inputs = sorted(t for t in graph.readers if graph.value(t) is None and graph.producer(t) is None)
    lines = [f"subgraph {graph.subgraph}({', '.join(_tensor(graph, t) for t in inputs)})"]
    lines += [f"  {line}" for node in graph.nodes for line in _node(graph, node)]
    return "\n".join([*lines, f"  return {', '.join(f'%{t}' for t in sorted(graph.kept))}"]) + "\n"


def _node(graph: RegionGraph, node: RegionNode) -> Iterator[str]:
    results = ", ".join(_tensor(graph, t) for t in node.outputs)
    operands = ", ".join(_operand(graph, t) for t in node.inputs)
    name = "chain" if node.steps else node.node.op.name
    positions = " ".join(_origin(graph, part.position) for part in (node, *node.fused))
    yield ", ".join([f"{results} = {name}({operands})", *_fused(graph, node), positions])


def _origin(graph: RegionGraph, position: int) -> str:
    """Return a node's origin: its position, after the subgraph if it was inlined."""
    subgraph, node = graph.origins[position]
    return f"#{node}" if subgraph == graph.subgraph else f"#{subgraph}:{node}"


def _fused(graph: RegionGraph, node: RegionNode) -> Iterator[str]:
    """Yield what passes have added to a node."""
    yield from (_step(graph, step) for step in node.steps)
    if node.pads != Pads():
        yield f"pads {node.pads.top} {node.pads.bottom} {node.pads.left} {node.pads.right}"
    if node.residual is not None:
        yield f"plus %{node.residual}"
    if node.activation != NONE:
        yield _activation(node.activation)
    if node.in_place:
        yield "in place"


def _step(graph: RegionGraph, step: ElementwiseStep) -> str:
    if step.tensor is None:
        return _activation(step.activation) if step.activation != NONE else step.name
    after = "" if step.activation == NONE else f" {_activation(step.activation)}"
    return f"{step.name} {_operand(graph, step.tensor)}{after}"


def _activation(activation: Activation) -> str:
    bounds = f" {activation.low:g} to {activation.high:g}" if activation.function == "CLAMP" else ""
    return activation.function + bounds


def _tensor(graph: RegionGraph, tensor: int) -> str:
    """Return a tensor with its type and shape, and its position if it is part of another."""
    spec, place = graph.specs[tensor], graph.places.get(tensor)
    text = f"%{tensor}:{spec.type.name.lower()}{_shape(spec.shape)}"
    if place is None:
        return text
    rows = "" if place.row_step is None else f" in rows {place.row_step} apart"
    return f"{text} at byte {place.offset} of %{place.whole}{rows}"


def _operand(graph: RegionGraph, tensor: int) -> str:
    if tensor == ABSENT:
        return "-"
    value = graph.value(tensor)
    if value is None:
        return f"%{tensor}"
    return str(value.tolist()) if value.size <= 8 else f"constant{_shape(value.shape)}"


def _shape(shape: Shape | None) -> str:
    return "[?]" if shape is None else f"[{','.join(map(str, shape))}]"
