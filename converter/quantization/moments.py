"""The mean products of the inputs of dense layers, measured on representative data."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from litecl.converter.quantization.data import Sample
from litecl.converter.quantization.gptq import Moments
from litecl.converter.quantization.watch import Look, Runner
from litecl.interpreter.graph import Array, Model

_AT_ONCE_BYTES = 1 << 30


def moments(
    model: Model, wanted: Mapping[int, Sequence[int]], samples: Sequence[Sample]
) -> dict[int, dict[int, Moments]]:
    """Return the mean of ``x[i] * x[j]`` over the rows ``x`` that dense layers read, by subgraph and node.

    wanted: the nodes, by subgraph; those in subgraphs that no sample enters, as in bodies of loops, have none.
    """
    entries = {signature.subgraph for signature, _ in samples}
    nodes = [(index, n) for index, numbers in wanted.items() if index in entries for n in numbers]
    found: dict[int, dict[int, Moments]] = {index: {} for index in wanted}
    for group in _groups(model, nodes):
        sums = {place: _Sum() for place in group}
        looks: dict[int, dict[int | None, list[tuple[list[int], Look]]]] = {index: {} for index, _ in group}
        for index, n in group:
            x, weights = model.subgraphs[index].nodes[n].inputs[:2]
            looks[index][n] = [([x], _seeing(sums[index, n], model.subgraphs[index].tensors[weights].static_shape[-1]))]
        run = Runner(model, looks)
        for sample in samples:
            run(sample)
        for (index, n), total in sums.items():
            if total.count:
                found[index][n] = Moments(np.asarray(total.sum) / total.count)
    return found


class _Sum:
    """Products of rows, added up."""

    def __init__(self) -> None:
        self.sum: Array | float = 0.0
        self.count = 0

    def see(self, x: Array, depth: int) -> None:
        """Add the rows of an input, of ``depth`` elements each."""
        rows = x.reshape(-1, depth).astype(np.float64)
        self.sum = self.sum + rows.T @ rows
        self.count += len(rows)


def _seeing(total: _Sum, depth: int) -> Look:
    return lambda values: total.see(values[0], depth)


def _groups(model: Model, places: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """Return the nodes in groups whose sums fit into memory together."""
    group: list[tuple[int, int]] = []
    size = 0
    for index, n in places:
        graph = model.subgraphs[index]
        own = graph.tensors[graph.nodes[n].inputs[1]].static_shape[-1] ** 2 * 8
        if group and size + own > _AT_ONCE_BYTES:
            yield group
            group, size = [], 0
        group.append((index, n))
        size += own
    if group:
        yield group
