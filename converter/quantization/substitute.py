"""Replaces operators without integer kernels by equivalent ones that have them."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from litecl.converter.tensors import Tensors
from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.binary import MUL, SQUARED_DIFFERENCE, SUB, MulOptions, SubOptions
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.quantize import DEQUANTIZE
from litecl.interpreter.ops.reduce import MEAN, SUM, axes_of
from litecl.interpreter.ops.unary import NEG, SQUARE
from litecl.interpreter.schema import TensorType


def _square(tensors: Tensors, node: Node) -> list[Node] | None:
    (x,) = node.inputs
    return [Node(MUL, (x, x), node.outputs, MulOptions())]


def _negative(tensors: Tensors, node: Node) -> list[Node] | None:
    (x,) = node.inputs
    minus_one = tensors.constant(f"{tensors[node.outputs[0]].name}/minus_one", np.float32(-1))
    return [Node(MUL, (x, minus_one), node.outputs, MulOptions())]


def _sum(tensors: Tensors, node: Node) -> list[Node] | None:
    """Return a mean times the number of elements: LiteRT's reference kernel for SUM doesn't rescale integers."""
    x, axes = (tensors[t] for t in node.inputs)
    if axes.data is None or x.shape is None:
        return None
    declared = x.shape_signature or x.shape
    sizes = [declared[axis] for axis in axes_of(axes.data.ravel().tolist(), len(declared))]
    if any(size < 1 for size in sizes):
        return None
    (output,) = node.outputs
    name = tensors[output].name
    mean = tensors.push(replace(tensors[output], name=f"{name}/mean"))
    count = tensors.constant(f"{name}/count", np.float32(np.prod(sizes, dtype=np.int64)))
    return [Node(MEAN, node.inputs, (mean,), node.options), Node(MUL, (mean, count), node.outputs, MulOptions())]


def _lookup(tensors: Tensors, node: Node) -> list[Node] | None:
    ids, table = node.inputs
    return [Node(GATHER, (table, ids), node.outputs, GatherOptions(axis=0))]


def _squared_difference(tensors: Tensors, node: Node) -> list[Node] | None:
    (output,) = node.outputs
    difference = tensors.push(replace(tensors[output], name=f"{tensors[output].name}/difference"))
    return [
        Node(SUB, node.inputs, (difference,), SubOptions()),
        Node(MUL, (difference, difference), node.outputs, MulOptions()),
    ]


_Substitute = Callable[[Tensors, Node], list[Node] | None]
_Substitutes = Mapping[Op | ControlOp, _Substitute]
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
    tensors = Tensors(graph.tensors)
    chosen = [substitutes.get(node.op) if node.outputs and node.outputs[0] in wanted else None for node in graph.nodes]
    nodes = [new for node, by in zip(graph.nodes, chosen, strict=True) for new in _nodes(tensors, node, by)]
    return replace(graph, tensors=tuple(tensors), nodes=tuple(nodes))


def _nodes(tensors: Tensors, node: Node, substitute: _Substitute | None) -> Iterator[Node]:
    floats = all(tensors[t].type == TensorType.FLOAT32 for t in node.outputs)
    substitutes = substitute(tensors, node) if substitute is not None and floats else None
    if substitutes is None:
        yield node
        return
    for new in substitutes:
        yield tensors.versioned(new)


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
