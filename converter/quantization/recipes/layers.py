"""Finds the layers whose bits to search, and the recipe entries that store each in some number of bits."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from litecl.converter.quantization.moments import has_moments
from litecl.converter.quantization.recipes.choices import Choice, choice_of, choices, scope_of
from litecl.converter.quantization.recipes.names import entry
from litecl.converter.quantization.recipes.read import recipe_of
from litecl.converter.quantization.recipes.recipe import Recipe
from litecl.converter.quantization.stored_weights import stateful
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Subgraph
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED

Place = tuple[int, int]
"""A subgraph index and a node number."""

_FORMS: tuple[tuple[int, int], ...] = ((8, 0), (4, 32), (4, 64), (4, 128), (4, 0), (2, 0))
_NAMES = {"TRANSPOSE_CONV": "CONV_2D_TRANSPOSE"}


@dataclass(frozen=True)
class Way:
    """A way to store a layer's weights: recipe entries, and their effect on each node.

    mixed: whether operands are stored differently.
    """

    name: str
    entries: tuple[dict[str, Any], ...]
    chosen: Mapping[Place, Choice]
    mixed: bool = False


@dataclass(frozen=True)
class Layer:
    """Nodes that must be stored alike because they share weights or names, and the ways to store them.

    by_operand: whether each operand may be stored in its own way.
    """

    places: tuple[Place, ...]
    name: str
    ways: tuple[Way, ...]
    by_operand: bool


def layers_of(model: Model, *, widened: bool) -> list[Layer]:
    """Return the layers of a model that have weights. Each one's first way leaves it in float.

    widened: whether to dequantize all weights, or only those that no kernel multiplies as integers.
    """
    return [layer for group in _groups(model) if len((layer := _layer(model, group, widened)).ways) > 1]


def _groups(model: Model) -> Iterator[list[Place]]:
    """Yield the nodes that have weights, grouped if they share a tensor or a scope."""
    bytes_ = recipe_of([entry(8, widened=True)])
    groups: list[tuple[set[object], list[Place]]] = []
    for index, graph in enumerate(model.subgraphs):
        for number in choices(graph, bytes_):
            node = graph.nodes[number]
            keys: set[object] = {(node.op.name, scope_of(graph, node))}
            constants = (graph.tensors[t].data for t in node.inputs if t != ABSENT)
            keys |= {address_of(data) for data in constants if data is not None and data.size > 1}
            places = [(index, number)]
            for others in [group for group in groups if group[0] & keys]:
                groups.remove(others)
                keys |= others[0]
                places = [*others[1], *places]
            groups.append((keys, places))
    yield from (places for _, places in groups)


def _layer(model: Model, places: list[Place], widened: bool) -> Layer:
    nodes = [(model.subgraphs[i], model.subgraphs[i].nodes[n]) for i, n in places]
    ways = [Way("float", (), {})]
    safe = not any(stateful(graph) for graph, _ in nodes)
    if safe:
        halves = way_of(model, places, "float16", tuple(entry_for(graph, node, 16) for graph, node in nodes))
        if halves.chosen.keys() == set(places):
            ways.append(halves)
    for bits, block in _FORMS:
        for wide in (True,) * safe if widened else (False, True)[: 1 + safe]:
            entries = tuple(entry_for(graph, node, bits, block, wide) for graph, node in nodes)
            way = way_of(
                model, places, f"int{bits}{f' by {block}' if block else ''}{' widened' if wide else ''}", entries
            )
            if way.chosen.keys() == set(places) and all(c.form.block == block for c in way.chosen.values()):
                ways.append(way)
                break
    return Layer(tuple(places), _scope(nodes[0]), tuple(ways), safe)


def way_of(model: Model, places: Sequence[Place], name: str, entries: Iterable[dict[str, Any]]) -> Way:
    """Return the way that the entries describe."""
    unique = tuple({str(e): e for e in entries}.values())
    recipe: Recipe = recipe_of(list(unique))
    choices = {(i, n): choice_of(model.subgraphs[i], model.subgraphs[i].nodes[n], recipe) for i, n in places}
    return Way(name, unique, {place: choice for place, choice in choices.items() if choice is not None})


def entry_for(graph: Subgraph, node: Node, bits: int, block: int = 0, wide: bool = True) -> dict[str, Any]:
    """Return the entry for a node. The peer reads it too, except that it ignores ``compensate``.

    bits: 16 for float16. wide: whether weights are dequantized.
    """
    if bits == 16:
        return _half(_regex(graph, node), _name(node))
    plain = bits == 8 or node.op is BATCH_MATMUL
    algorithm = "GPTQ" if node.op is FULLY_CONNECTED else "min_max_uniform_quantize" if plain else "MSE"
    stored = entry(bits, block, algorithm, regex=_regex(graph, node), operation=_name(node), widened=wide)
    if node.op is CONV_2D and has_moments(graph, node):
        stored["op_config"]["weight_tensor_config"]["algorithm_params"] = {"compensate": True}
    return stored


def _half(regex: str, operation: str) -> dict[str, Any]:
    halves = entry(8, algorithm="float_casting", regex=regex, operation=operation, widened=True)
    halves["op_config"]["weight_tensor_config"] = {"num_bits": 16, "dtype": "FLOAT"}
    return halves


def address_of(data: Array) -> int:
    """Return the address of an array's data: subgraphs that share a buffer have different array objects."""
    return int(data.__array_interface__["data"][0]) if not data.dtype.hasobject else id(data)


def _regex(graph: Subgraph, node: Node) -> str:
    return f"^{re.escape(scope_of(graph, node))}$"


def _name(node: Node) -> str:
    return _NAMES.get(node.op.name, node.op.name)


def _scope(of: tuple[Subgraph, Node]) -> str:
    return f"{of[1].op.name} {scope_of(*of).rstrip(';')}"
