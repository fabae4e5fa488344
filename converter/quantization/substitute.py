"""Replaces operators without integer kernels by equivalent ones that have them."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from litecl.converter.versions import version_of
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.binary import MUL, SQUARED_DIFFERENCE, SUB, MulOptions, SubOptions
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.quantize import DEQUANTIZE
from litecl.interpreter.ops.reduce import MEAN, SUM, axes_of
from litecl.interpreter.ops.unary import NEG, SQUARE
from litecl.interpreter.schema import TensorType


@dataclass
class _Graph:
    """A subgraph's tensors, with additions."""

    tensors: list[TensorSpec]

    def constant(self, name: str, value: float) -> int:
        data: Array = np.asarray(value, np.float32)
        return self.push(TensorSpec(TensorType.FLOAT32, (), name, data))

    def push(self, spec: TensorSpec) -> int:
        self.tensors.append(spec)
        return len(self.tensors) - 1


def _square(graph: _Graph, node: Node) -> list[Node] | None:
    (x,) = node.inputs
    return [Node(MUL, (x, x), node.outputs, MulOptions())]


def _negative(graph: _Graph, node: Node) -> list[Node] | None:
    (x,) = node.inputs
    minus_one = graph.constant(f"{graph.tensors[node.outputs[0]].name}/minus_one", -1.0)
    return [Node(MUL, (x, minus_one), node.outputs, MulOptions())]


def _sum(graph: _Graph, node: Node) -> list[Node] | None:
    """Return a mean times the number of elements: LiteRT's reference kernel for SUM doesn't rescale integers."""
    x, axes = (graph.tensors[t] for t in node.inputs)
    if axes.data is None or x.shape is None:
        return None
    declared = x.shape_signature or x.shape
    sizes = [declared[axis] for axis in axes_of(axes.data.ravel().tolist(), len(declared))]
    if any(size < 1 for size in sizes):
        return None
    (output,) = node.outputs
    name = graph.tensors[output].name
    mean = graph.push(replace(graph.tensors[output], name=f"{name}/mean"))
    count = graph.constant(f"{name}/count", float(np.prod(sizes, dtype=np.int64)))
    return [Node(MEAN, node.inputs, (mean,), node.options), Node(MUL, (mean, count), node.outputs, MulOptions())]


def _lookup(graph: _Graph, node: Node) -> list[Node] | None:
    ids, table = node.inputs
    return [Node(GATHER, (table, ids), node.outputs, GatherOptions(axis=0))]


def _squared_difference(graph: _Graph, node: Node) -> list[Node] | None:
    (output,) = node.outputs
    difference = graph.push(replace(graph.tensors[output], name=f"{graph.tensors[output].name}/difference"))
    return [
        Node(SUB, node.inputs, (difference,), SubOptions()),
        Node(MUL, (difference, difference), node.outputs, MulOptions()),
    ]


_Substitutes = Mapping[Op | ControlOp, Callable[[_Graph, Node], list[Node] | None]]
_SUBSTITUTES: _Substitutes = {
    SQUARE: _square,
    NEG: _negative,
    SUM: _sum,
    EMBEDDING_LOOKUP: _lookup,
}


_OF_TYPE: Mapping[TensorType, _Substitutes] = {
    TensorType.INT8: _SUBSTITUTES,
    TensorType.INT16: {**_SUBSTITUTES, SQUARED_DIFFERENCE: _squared_difference},
}


def has_substitute(op: Op | ControlOp, type_: TensorType) -> bool:
    """Return whether an operator may be replaced by operators with kernels for a type."""
    return op in _OF_TYPE[type_]


def with_integer_kernels(model: Model, type_: TensorType, wanted: Sequence[Container[int]] | None = None) -> Model:
    """Return an equivalent model that uses operators with kernels for a type where possible.

    wanted: the tensors whose operators to replace, by subgraph; None for all.
    """
    every = wanted or [range(len(graph.tensors)) for graph in model.subgraphs]
    graphs = (_substituted(graph, _OF_TYPE[type_], of) for graph, of in zip(model.subgraphs, every, strict=True))
    return replace(model, subgraphs=tuple(graphs))


def _substituted(graph: Subgraph, substitutes: _Substitutes, wanted: Container[int]) -> Subgraph:
    work = _Graph(list(graph.tensors))
    chosen = [substitutes.get(node.op) if node.outputs and node.outputs[0] in wanted else None for node in graph.nodes]
    nodes = [new for node, by in zip(graph.nodes, chosen, strict=True) for new in _nodes(work, node, by)]
    return replace(graph, tensors=tuple(work.tensors), nodes=tuple(nodes))


def _nodes(graph: _Graph, node: Node, substitute: Callable[[_Graph, Node], list[Node] | None] | None) -> Iterator[Node]:
    floats = all(graph.tensors[t].type == TensorType.FLOAT32 for t in node.outputs)
    substitutes = substitute(graph, node) if substitute is not None and floats else None
    if substitutes is None:
        yield node
        return
    for new in substitutes:
        specs = [None if t == ABSENT else graph.tensors[t] for t in new.inputs]
        yield replace(new, version=version_of(new, specs))


def with_wide_constants(model: Model) -> Model:
    """Return a model whose float16 constants are stored in float32, in place of the DEQUANTIZEs that widen them."""
    return replace(model, subgraphs=tuple(map(_widened, model.subgraphs)))


def _widened(graph: Subgraph) -> Subgraph:
    tensors, nodes = list(graph.tensors), []
    for node in graph.nodes:
        source = graph.tensors[node.inputs[0]] if node.inputs and node.inputs[0] != ABSENT else None
        if node.op is not DEQUANTIZE or source is None or source.data is None or source.type != TensorType.FLOAT16:
            nodes.append(node)
            continue
        (target,) = node.outputs
        tensors[target] = replace(tensors[target], data=source.data.astype(np.float32))
    return replace(graph, tensors=tuple(tensors), nodes=tuple(nodes))
