"""Models of quantization-aware training: the scales given by their FAKE_QUANT nodes and rounded constants."""

from collections.abc import Mapping
from dataclasses import replace

from litecl.converter.quantization.calibrate import Known
from litecl.converter.quantization.observers import Range
from litecl.converter.quantization.rules import RULES
from litecl.converter.quantization.scales import nested, nudged
from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.ops.quantize import FAKE_QUANT
from litecl.interpreter.schema import TensorType

_BITS = {TensorType.INT8: 8, TensorType.INT16: 16}


def is_trained(model: Model) -> bool:
    """Return True if a model was trained for quantization: if it has FAKE_QUANT nodes."""
    return any(node.op is FAKE_QUANT for graph in model.subgraphs for node in graph.nodes)


def absorb(model: Model, type_: TensorType) -> tuple[Model, Mapping[int, Known]]:
    """Return the model without FAKE_QUANT nodes of a type's width, and the ranges that they give, by subgraph."""
    done = [_absorb(graph, type_) for graph in model.subgraphs]
    renamed = {i: names for i, (_, _, names) in enumerate(done)}
    signatures = tuple(
        replace(s, outputs={name: renamed[s.subgraph].get(t, t) for name, t in s.outputs.items()})
        for s in model.signatures
    )
    graphs = tuple(graph for graph, _, _ in done)
    return replace(model, subgraphs=graphs, signatures=signatures), {i: known for i, (_, known, _) in enumerate(done)}


def _absorb(graph: Subgraph, type_: TensorType) -> tuple[Subgraph, Known, Mapping[int, int]]:
    known, rounded = Known(), dict[int, int]()
    nodes: list[Node] = []
    for node in graph.nodes:
        node = replace(node, inputs=tuple(rounded.get(t, t) for t in node.inputs))
        if node.op is not FAKE_QUANT or node.options.num_bits != _BITS[type_]:
            nodes.append(node)
            if node.op is FAKE_QUANT and node.options.num_bits < _BITS[type_]:
                _keep_steps(known, node, type_)
            continue
        (source,), (target,) = node.inputs, node.outputs
        values = Range(node.options.min, node.options.max)
        if known.ranges.setdefault(source, values) != values:
            nodes.append(node)  # a tensor has one scale: a second range stays a node in float
            continue
        known.scales[source] = nudged(values, type_, node.options.narrow_range)
        rounded[target] = source
    outputs = tuple(rounded.get(t, t) for t in graph.outputs)
    graph = replace(graph, nodes=tuple(nodes), outputs=outputs)
    _spread(graph, known)
    return graph, known, rounded


def _keep_steps(known: Known, node: Node, type_: TensorType) -> None:
    """Give the result of a node that rounds to fewer bits, which stays in float, integers that keep its numbers."""
    values, target = Range(node.options.min, node.options.max), node.outputs[0]
    known.ranges[target] = values
    known.scales[target] = nested(values, node.options.num_bits, node.options.narrow_range, type_)


def _spread(graph: Subgraph, known: Known) -> None:
    """Find the ranges of tensors that share a scale with one whose range is known, or whose scale is prescribed."""
    for node in reversed(graph.nodes):
        if _shares(node):
            _take_over(graph, known, node.outputs, node.inputs)
    for node in graph.nodes:
        if _shares(node):
            _take_over(graph, known, node.inputs, node.outputs)


def _shares(node: Node) -> bool:
    return node.op in RULES and RULES[node.op].shared


def _take_over(graph: Subgraph, known: Known, sources: tuple[int, ...], targets: tuple[int, ...]) -> None:
    def computed(tensors: tuple[int, ...]) -> list[int]:
        return [t for t in tensors if t != ABSENT and _is_computed(graph.tensors[t])]

    if any(t not in known.ranges for t in computed(sources)) or not computed(sources):
        return
    whole = known.ranges[computed(sources)[0]]
    for tensor in computed(sources)[1:]:
        whole |= known.ranges[tensor]
    for tensor in computed(targets):
        known.ranges.setdefault(tensor, whole)


def _is_computed(spec: TensorSpec) -> bool:
    return spec.type == TensorType.FLOAT32 and spec.data is None


def without_grids(model: Model) -> Model:
    """Return a model whose constants in float no longer tell how training has rounded them."""
    graphs = (replace(g, tensors=tuple(map(_plain, g.tensors))) for g in model.subgraphs)
    return replace(model, subgraphs=tuple(graphs))


def _plain(spec: TensorSpec) -> TensorSpec:
    known = spec.quantization
    rounded = known is not None and not known.scale.size and spec.type == TensorType.FLOAT32
    return replace(spec, quantization=None) if rounded else spec
