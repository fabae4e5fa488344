"""Stores the operands of one layer in different ways."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from litecl.converter.quantization.recipes.knapsack import Option, choices_of
from litecl.converter.quantization.recipes.layers import Layer, Place, Way, entry_for, way_of
from litecl.converter.quantization.recipes.recipe import FORMS
from litecl.interpreter.graph import Model, Node, Subgraph

FLOAT = "float32"
_MIXES = 96  # of operands, over all sizes


def positions_of(layer: Layer) -> Sequence[int]:
    """Return the weight positions of a layer that is one node with several weights, e.g. recurrent; else none."""
    forms = [choice.forms for way in layer.ways for choice in way.chosen.values()] if layer.by_operand else []
    return [*forms[0]] if len(layer.places) == 1 and forms and len(forms[0]) > 1 else []


def mixed(model: Model, layer: Layer, forms: Mapping[int, str]) -> Way:
    """Return the way that stores each operand in its own form, by position; the others stay in float."""
    (place,) = layer.places
    counts = Counter(forms.values())
    some = [f"{name} for {counts[name]}" for name in FORMS if counts[name] and name != FLOAT]
    entries = [_entry(*_at(model, place), {p: name for p, name in forms.items() if name != FLOAT})]
    return way_of(model, layer.places, f"{', '.join(some)} of {len(positions_of(layer))} operands", entries)


def mixes(items: Sequence[Sequence[Option]]) -> list[tuple[int, ...]]:
    """Return the best options of operands, for budgets of all sizes."""
    choices = choices_of(items)
    budgets = (choices.floor * (1 - number / _MIXES) for number in range(_MIXES))
    picks = (choices.within(max(budget, choices.floor)) for budget in budgets)
    return [*dict.fromkeys(tuple(picked) for picked in picks if picked is not None)]


def _entry(graph: Subgraph, node: Node, operands: Mapping[int, str]) -> dict[str, Any]:
    """Return the entry for a node, with the fewest bits of any operand, which the peer uses for all."""
    widest = entry_for(graph, node, min((FORMS[name][0] for name in operands.values()), default=16))
    weights = widest["op_config"]["weight_tensor_config"]
    named = {str(position): name for position, name in operands.items()}
    weights["algorithm_params"] = weights.get("algorithm_params", {}) | {"operands": named}
    return widest


def _at(model: Model, place: Place) -> tuple[Subgraph, Node]:
    graph = model.subgraphs[place[0]]
    return graph, graph.nodes[place[1]]
