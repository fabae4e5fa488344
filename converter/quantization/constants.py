"""Folds weights that a model computes from constants, such as the filter that cuts an image into patches."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace

from litecl.converter.quantization.rules import RULES
from litecl.interpreter.graph import ABSENT, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.quantize import FAKE_QUANT
from litecl.interpreter.run.shapes import outputs_of


def with_constant_weights(model: Model) -> Model:
    """Return a model whose weights are constants where they follow from constants alone.

    Conversion leaves large constants made from few numbers to run time, but integer kernels need constants.
    """
    return replace(model, subgraphs=tuple(map(_folded, model.subgraphs)))


def _folded(graph: Subgraph) -> Subgraph:
    makers = {tensor: number for number, node in enumerate(graph.nodes) for tensor in node.outputs}
    needed: set[int] = set()
    for tensor in _weights(graph):
        needed |= _makers(graph, makers, tensor) or set()
    tensors, nodes = list(graph.tensors), []
    for number, node in enumerate(graph.nodes):
        if number in needed:
            _compute(tensors, node)
        if number not in needed or any(tensors[t].data is None for t in node.outputs):
            nodes.append(node)
    return replace(graph, tensors=tuple(tensors), nodes=tuple(nodes)) if needed else graph


def _weights(graph: Subgraph) -> Iterator[int]:
    """Yield operands that must be constants to quantize, but aren't."""
    for node in graph.nodes:
        rule = RULES.get(node.op)
        for position in (*rule.weights, *rule.sums) if rule is not None else ():
            tensor = node.inputs[position] if position < len(node.inputs) else ABSENT
            if tensor != ABSENT and graph.tensors[tensor].data is None:
                yield tensor


def _makers(graph: Subgraph, makers: Mapping[int, int], tensor: int) -> set[int] | None:
    """Return the nodes that compute a tensor from constants alone; None if it depends on anything else."""
    numbers: set[int] = set()
    pending = [tensor]
    while pending:
        number = makers.get(pending.pop())
        if number is None or not _is_foldable(graph, graph.nodes[number]):
            return None
        if number not in numbers:
            numbers.add(number)
            inputs = (t for t in graph.nodes[number].inputs if t != ABSENT)
            pending += [t for t in inputs if graph.tensors[t].data is None]
    return numbers


def _is_foldable(graph: Subgraph, node: Node) -> bool:
    """Return whether a node is pure; FAKE_QUANT stays, since it tells how training rounded."""
    pure = isinstance(node.op, Op) and node.op.pure and not node.op.states and node.op is not FAKE_QUANT
    return pure and not set(node.outputs) & set(graph.outputs)


def _compute(tensors: list[TensorSpec], node: Node) -> None:
    inputs = [None if t == ABSENT else tensors[t] for t in node.inputs]
    results = outputs_of(node, inputs, [tensors[t] for t in node.outputs], sys.maxsize)
    for tensor, result in zip(node.outputs, results, strict=True):
        tensors[tensor] = result
