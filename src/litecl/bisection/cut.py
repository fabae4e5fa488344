"""Extracts parts of a model as separate models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Subgraph, TensorSpec, acts, reached, updated_by
from litecl.interpreter.schema import TensorType

_HANDLES = (TensorType.RESOURCE, TensorType.VARIANT)


@dataclass(frozen=True)
class Cut:
    """Nodes of a subgraph as a model. inputs, outputs: its tensors, as indices in the subgraph."""

    model: Model
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def cut(model: Model, subgraph: int, nodes: Sequence[int], values: Mapping[int, Array]) -> Cut:
    """Return a model of some nodes. Its inputs are the tensors they read, its outputs the results that others read.

    values: of tensors, which give them their shapes. Raises ModelError for nodes that can't run apart from the others
    because they share or change a resource. Variables private to a node of the first subgraph are allowed, and start
    from their initial values.
    """
    graph = model.subgraphs[subgraph]
    inner = [graph.nodes[i] for i in nodes]
    computed = [t for node in inner for t in node.outputs]
    own, chosen = {ABSENT, *computed}, {*nodes}
    read = dict.fromkeys(t for node in inner for t in node.inputs if t not in own)
    inputs = tuple(t for t in read if _is_given(graph.tensors[t]))
    plain = inner if subgraph else [node for node in inner if not _has_own_states(graph, node)]
    _require_separable(model, graph, plain, (*inputs, *computed))
    others = {t for i, node in enumerate(graph.nodes) if i not in chosen for t in node.inputs} | {*graph.outputs}
    outputs = tuple(t for t in computed if t in others) or tuple(computed)
    return Cut(_model(model, graph, inner, inputs, outputs, values), inputs, outputs)


def body(model: Model, subgraph: int, values: Mapping[int, Array]) -> Cut:
    """Return a model of a whole subgraph, with its own inputs and outputs. Raises ModelError as ``cut`` does."""
    graph = model.subgraphs[subgraph]
    if subgraph:  # the first one may use resources: it starts with the model
        _require_separable(model, graph, graph.nodes, graph.inputs)
    return Cut(
        _model(model, graph, graph.nodes, graph.inputs, graph.outputs, values), tuple(graph.inputs), graph.outputs
    )


def _is_given(spec: TensorSpec) -> bool:
    return spec.data is None and not spec.is_variable


def _has_own_states(graph: Subgraph, node: Node) -> bool:
    """Return whether a node has results and updates variables that no other node reads and that aren't outputs."""
    states = {*updated_by(node)}
    others = {t for other in graph.nodes if other is not node for t in other.inputs} | {*graph.outputs}
    return bool(states) and bool(node.outputs) and not states & others


def _require_separable(model: Model, graph: Subgraph, nodes: Sequence[Node], tensors: Sequence[int]) -> None:
    inner = [node for callee in reached(model, nodes) for node in model.subgraphs[callee].nodes]
    if any(graph.tensors[t].type in _HANDLES for t in tensors) or any(acts(model, node) for node in (*nodes, *inner)):
        raise ModelError("nodes that share or change a resource do not run apart from the others")


def _model(
    model: Model,
    graph: Subgraph,
    nodes: Sequence[Node],
    inputs: Sequence[int],
    outputs: Sequence[int],
    values: Mapping[int, Array],
) -> Model:
    """Return a model whose first subgraph has these nodes and the tensors that they need."""
    named = [t for node in nodes for t in (*node.inputs, *node.outputs, *node.intermediates) if t != ABSENT]
    used = sorted({*named, *inputs, *outputs})
    numbers = {t: position for position, t in enumerate(used)} | {ABSENT: ABSENT}
    first = Subgraph(
        tuple(_shaped(graph.tensors[t], values.get(t)) for t in used),
        tuple(numbers[t] for t in inputs),
        tuple(numbers[t] for t in outputs),
        tuple(node.moved(numbers) for node in nodes),
        "main",
    )
    needed = reached(model, nodes)
    empty = Subgraph((), (), (), ())  # a placeholder keeps the other subgraphs' indices
    most = max(needed, default=0)
    others = (model.subgraphs[i] if i in needed else empty for i in range(1, most + 1))
    return Model((first, *others))


def _shaped(spec: TensorSpec, value: Array | None) -> TensorSpec:
    """Return a tensor with the shape of its value, unless that is unknown or the tensor is a constant."""
    if spec.data is not None or value is None:
        return spec
    return replace(spec, shape=value.shape, shape_signature=None)
