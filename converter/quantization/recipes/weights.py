"""Stores a subgraph's weights as a recipe says, next to float activations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from litecl.converter.quantization.difference import Difference
from litecl.converter.quantization.folding import divided
from litecl.converter.quantization.formats import Format, stored, widened
from litecl.converter.quantization.gptq import Moments
from litecl.converter.quantization.inserted import Inserted
from litecl.converter.quantization.recipes.choices import Choice
from litecl.converter.quantization.recipes.recipe import Algorithm
from litecl.converter.quantization.report import StoredWeights
from litecl.converter.quantization.rotation import rotated, rotated_moments, rotation_size
from litecl.converter.quantization.scaling import factors, scaled
from litecl.converter.quantization.stored_weights import Use, check_states, with_stored_weights
from litecl.interpreter.file.storage import stored_bytes
from litecl.interpreter.graph import Node, Subgraph, TensorSpec
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.ops.quantize import DEQUANTIZE


@dataclass(frozen=True)
class Narrowed:
    """A subgraph with stored weights, rows on them, and notes on what could not be followed in a recipe."""

    graph: Subgraph
    rows: tuple[StoredWeights, ...]
    notes: tuple[str, ...]


Store = Callable[[TensorSpec, Format, Moments | None], TensorSpec]
"""Makes a stored constant, like ``formats.stored``."""


def narrowed(
    graph: Subgraph, chosen: Mapping[int, Choice], moments: Mapping[int, Moments], store: Store = stored
) -> Narrowed:
    """Return a subgraph whose weights are stored as chosen, by node number.

    moments: of the inputs of nodes, by number.
    """
    work = _Weights(graph, chosen, moments, store)
    return work.narrowed()


class _Weights:
    def __init__(
        self, graph: Subgraph, chosen: Mapping[int, Choice], moments: Mapping[int, Moments], store: Store
    ) -> None:
        self._graph, self._chosen, self._stored = graph, chosen, store
        self._inserted = Inserted(graph)
        self._moments: dict[int, Moments] = {}  # of inputs after rotation and scaling, by number
        self._rows: dict[tuple[int, Format], StoredWeights] = {}
        self._notes: list[str] = []
        for number, choice in chosen.items():
            self._prepare(number, graph.nodes[number], choice, moments.get(number))
        self._scale()

    def _prepare(self, number: int, node: Node, choice: Choice, moments: Moments | None) -> None:
        """Rotate a node's weights and input if its entry says so."""
        wanted = choice.entry.config.block
        if wanted and not choice.form.block:
            name = self._inserted.tensors[node.outputs[0]].name
            shape = list(self._inserted.tensors[node.inputs[1]].static_shape)
            self._notes.append(f"{node.op.name} {name!r}: a scale for each row, as {shape} has no blocks of {wanted}")
        if choice.entry.algorithm.rotates and node.op in (FULLY_CONNECTED, EMBEDDING_LOOKUP):
            moments = self._rotate(number, node, choice, moments)
        if moments is not None:
            self._moments[number] = moments

    def _rotate(self, number: int, node: Node, choice: Choice, moments: Moments | None) -> Moments | None:
        spec = self._inserted.tensors[node.inputs[1]]
        size = rotation_size(spec.static_shape[-1], choice.entry.config.largest_rotation)
        dense = node.op is FULLY_CONNECTED
        changed = self._inserted.nodes[number].inputs[0] if dense else node.outputs[0]
        if size == 1 or len(spec.static_shape) != 2 or not self._inserted.can_rotate(changed, size):
            self._notes.append(f"{node.op.name} {self._inserted.tensors[node.outputs[0]].name!r}: cannot be rotated")
            return moments
        self._inserted.replace_weights(number, rotated(spec, size), f"rotated{size}")
        custom = choice.entry.algorithm is Algorithm.HADAMARD
        if dense:
            self._inserted.rotate_input(number, size, custom=custom)
        else:
            self._inserted.rotate_output(number, size, custom=custom)
        return None if moments is None else rotated_moments(moments, size)

    def _scale(self) -> None:
        """Scale the weights of dense layers and divide their inputs, with the same factors for all readers."""
        groups: dict[int, list[int]] = {}
        for number in self._moments:
            node = self._graph.nodes[number]
            x, weights = (self._inserted.tensors[t] for t in node.inputs[:2])
            fits = x.shape is not None and x.shape[-1:] == weights.static_shape[-1:]
            if node.op is FULLY_CONNECTED and self._chosen[number].entry.algorithm.scales and fits:
                groups.setdefault(node.inputs[0], []).append(number)
        for tensor, numbers in groups.items():
            self._scale_group(tensor, numbers)

    def _scale_group(self, tensor: int, numbers: list[int]) -> None:
        weights = [self._inserted.tensors[self._inserted.nodes[n].inputs[1]] for n in numbers]
        layers = [(spec, self._chosen[n].form) for spec, n in zip(weights, numbers, strict=True)]
        scale = factors(layers, self._moments[numbers[0]])
        if scale is None:
            return
        for spec, number in zip(weights, numbers, strict=True):
            changed, self._moments[number] = scaled(spec, scale, self._moments[number])
            self._inserted.replace_weights(number, changed, f"scaled{tensor}")
        if not divided(self._inserted, self._graph, tensor, numbers, scale):
            self._inserted.scale_input(numbers, (1 / scale).astype(np.float32))

    def narrowed(self) -> Narrowed:
        """Return the subgraph with stored weights."""
        graph, places = self._inserted.finished()
        reads = [
            (number, (places[number], position), Use(form, choice.widened))
            for number, choice in self._chosen.items()
            for position, form in choice.forms.items()
        ]
        moments, readers = dict[int, Moments](), dict[int, Node]()
        for number, (place, position), _ in reads:
            weights = graph.nodes[place].inputs[position]
            readers[weights] = self._graph.nodes[number]
            if (own := self._moments.get(number)) is not None:
                known = moments.get(weights)
                moments[weights] = own if known is None else Moments(known.products + own.products)

        def store(tensor: int, form: Format) -> TensorSpec:
            spec = graph.tensors[tensor]
            narrow = self._stored(spec, form, moments.get(tensor))
            self._rows[tensor, form] = _row(readers[tensor], spec, narrow, form)
            return narrow

        if any(use.widened for *_, use in reads) or any(node.op is DEQUANTIZE for node in graph.nodes):
            check_states(graph, "weights that are widened")
        done = with_stored_weights(graph, {place: use for _, place, use in reads}, store)
        return Narrowed(done, tuple(self._rows.values()), tuple(self._notes))


def _row(node: Node, spec: TensorSpec, narrow: TensorSpec, form: Format) -> StoredWeights:
    assert spec.data is not None
    difference = Difference()
    difference.add(spec.data, widened(narrow))
    count = stored_bytes(narrow.type, narrow.size) or 0
    scales = 0 if narrow.quantization is None else narrow.quantization.scale.nbytes
    return StoredWeights(node.op.name, spec.name, str(form), spec.data.nbytes, count + scales, difference.sqnr_db)
