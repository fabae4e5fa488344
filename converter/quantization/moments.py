"""Measures the mean products of inputs of dense layers and convolutions on representative data."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np

from litecl.converter.quantization.data import Sample
from litecl.converter.quantization.gptq import Moments
from litecl.converter.quantization.watch import Look, Runner
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Subgraph
from litecl.interpreter.kit import window
from litecl.interpreter.ops.conv_2d import CONV_2D, windows
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED

_AT_ONCE_BYTES = 1 << 30
_DEEPEST_PATCH = 2304  # elements of a patch, such as 3 by 3 of 256 channels; beyond, factorizing takes seconds
_MOST_ROWS = 2048  # per sample; of more, evenly spaced ones are used


def has_moments(graph: Subgraph, node: Node) -> bool:
    """Return whether a node multiplies rows, or not too large patches, by weights."""
    if node.op is FULLY_CONNECTED:
        return True
    if node.op is not CONV_2D or ABSENT in node.inputs[:2]:
        return False
    x, weights = (graph.tensors[t] for t in node.inputs[:2])
    one_group = x.shape is not None and x.shape[-1] == weights.static_shape[-1]
    return one_group and prod(weights.static_shape[1:]) <= _DEEPEST_PATCH


def moments(
    model: Model, wanted: Mapping[int, Sequence[int]], samples: Sequence[Sample]
) -> dict[int, dict[int, Moments]]:
    """Return the mean of ``x[i] * x[j]`` over the rows or patches ``x`` that nodes multiply, by subgraph and node.

    wanted: the nodes, by subgraph; those in subgraphs that no sample enters, such as loop bodies, get none.
    """
    entries = {signature.subgraph for signature, _ in samples}
    nodes = [(index, n) for index, numbers in wanted.items() if index in entries for n in numbers]
    means: dict[int, dict[int, Moments]] = {index: {} for index in wanted}
    for group in _groups(model, nodes):
        sums = {operand: _Sum() for operand in group}
        looks: dict[int, dict[int | None, list[tuple[list[int], Look]]]] = {index: {} for index, _ in group}
        for index, n in group:
            graph = model.subgraphs[index]
            looks[index][n] = [([graph.nodes[n].inputs[0]], _seeing(sums[index, n], graph, graph.nodes[n]))]
        run = Runner(model, looks)
        for sample in samples:
            run(sample)
        for (index, n), total in sums.items():
            if total.count:
                means[index][n] = Moments(np.asarray(total.sum) / total.count)
    return means


class _Sum:
    """A sum of products of rows."""

    def __init__(self) -> None:
        self.sum: Array | float = 0.0
        self.count = 0

    def see(self, rows: Array) -> None:
        """Add rows [n, depth]; of many, evenly spaced ones."""
        some = rows[:: -(-len(rows) // _MOST_ROWS) or 1].astype(np.float64)
        self.sum = self.sum + some.T @ some
        self.count += len(some)


def _seeing(total: _Sum, graph: Subgraph, node: Node) -> Look:
    """Return a look that adds the rows of a node's input, with elements in the order of its weights."""
    shape = graph.tensors[node.inputs[1]].static_shape

    def take(patches: Array) -> Array:
        total.see(patches)
        return np.zeros((len(patches), 1), np.float32)

    def look(values: Sequence[Array]) -> None:
        (x,) = values
        if node.op is FULLY_CONNECTED:
            total.see(x.reshape(-1, shape[-1]))
        else:
            window.convolve(x, take, windows(node.options, x.shape, shape))

    return look


def _groups(model: Model, places: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Yield nodes in groups whose sums fit into memory together."""
    group: list[tuple[int, int]] = []
    size = 0
    for index, n in places:
        graph = model.subgraphs[index]
        own = prod(graph.tensors[graph.nodes[n].inputs[1]].static_shape[1:]) ** 2 * 8
        if group and size + own > _AT_ONCE_BYTES:
            yield group
            group, size = [], 0
        group.append((index, n))
        size += own
    if group:
        yield group
