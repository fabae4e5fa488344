"""Measures tensor ranges on representative data with the interpreter."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from litecl.converter.quantization.cells import cells, watching
from litecl.converter.quantization.data import Sample
from litecl.converter.quantization.formats import Format
from litecl.converter.quantization.gptq import Moments
from litecl.converter.quantization.observers import Observer, Range
from litecl.converter.quantization.scales import Affine
from litecl.converter.quantization.watch import After, Look, Runner
from litecl.interpreter.errors import ConversionError, ModelError
from litecl.interpreter.graph import Array, Model, Subgraph
from litecl.interpreter.schema import TensorType

Ranges = Mapping[int, Range]
"""By tensor, of one subgraph; tensors that never had values are missing."""


@dataclass
class Known:
    """The facts about one subgraph that quantization to integers needs.

    ranges: by tensor. scales: by tensor, if they don't follow from the ranges. forms, moments: of weights and of the
    inputs they are multiplied with, by the node's first result. refused: nodes that a recipe leaves in float, by
    number, with the reason.
    """

    ranges: dict[int, Range] = field(default_factory=dict)
    scales: dict[int, Affine] = field(default_factory=dict)
    forms: Mapping[int, Format] = field(default_factory=dict)
    moments: Mapping[int, Moments] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)


def calibrate(model: Model, samples: Sequence[Sample], make: Callable[[], Observer]) -> list[Ranges]:
    """Return the ranges of float tensors, by subgraph; empty for subgraphs that samples don't enter."""
    entries = {signature.subgraph for signature, _ in samples}
    seen: dict[int, dict[int, Observer]] = {index: {} for index in entries}
    looks = {index: _looks(model.subgraphs[index], seen[index], make) for index in entries}
    run = Runner(model, looks)
    for number, sample in enumerate(samples):
        try:
            run(sample)
        except ModelError as error:
            raise ConversionError(f"quantize: the model cannot be run on sample {number}: {error}") from error
    return [_ranges(seen.get(index, {})) for index in range(len(model.subgraphs))]


def _looks(graph: Subgraph, seen: dict[int, Observer], make: Callable[[], Observer]) -> After:
    def looking(tensors: Sequence[int]) -> list[tuple[Sequence[int], Look]]:
        floats = [t for t in tensors if graph.tensors[t].type == TensorType.FLOAT32 and graph.tensors[t].data is None]
        return [([t], _seeing(seen.setdefault(t, make()))) for t in floats]

    after: dict[int | None, Sequence[tuple[Sequence[int], Look]]] = {None: looking(graph.inputs)}
    after |= {number: looking(node.outputs) for number, node in enumerate(graph.nodes)}
    for number, cell in cells(graph).items():
        look = watching(graph, number, seen.setdefault(cell.memory, make()))
        after[number] = [*after[number], ([graph.nodes[number].inputs[0]], look)]
    return after


def _seeing(observer: Observer) -> Look:
    def look(values: Sequence[Array]) -> None:
        observer.see(values[0])

    return look


def _ranges(seen: Mapping[int, Observer]) -> Ranges:
    ranges = {tensor: observer.range() for tensor, observer in seen.items()}
    return {tensor: values for tensor, values in ranges.items() if values is not None}
