"""Layers whose weights are stored in several ways: each operand in its own, or the first output channels apart."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from litecl.converter.quantization.formats import TYPES, Format
from litecl.converter.quantization.recipes.choices import channels_at
from litecl.converter.quantization.recipes.knapsack import Option, choices_of
from litecl.converter.quantization.recipes.layers import Layer, Place, Way, entry_for, way_of
from litecl.converter.quantization.recipes.recipe import FORMS
from litecl.interpreter.graph import Model, Node, Subgraph
from litecl.interpreter.schema import TensorType

FLOAT = "float32"
_MIXES = 96  # of operands, over all sizes
_BITS = {type_: bits for bits, type_ in TYPES.items()} | {TensorType.FLOAT16: 16}
_NAMES = {key: name for name, key in FORMS.items()}


def positions_of(layer: Layer) -> Sequence[int]:
    """Return the positions of the weights of a layer that is one node with several, as a recurrent one; else none."""
    found = [choice.forms for way in layer.ways for choice in way.chosen.values()] if layer.joins else []
    return [*found[0]] if len(layer.places) == 1 and found and len(found[0]) > 1 else []


def mixed(model: Model, layer: Layer, forms: Mapping[int, str]) -> Way:
    """Return the way that stores each operand in a form of its own, by position; those without stay in float."""
    (place,) = layer.places
    counts = Counter(forms.values())
    some = [f"{name} for {counts[name]}" for name in FORMS if counts[name] and name != FLOAT]
    entries = [_entry(*_at(model, place), {p: name for p, name in forms.items() if name != FLOAT})]
    return way_of(model, layer.places, f"{', '.join(some)} of {len(positions_of(layer))} operands", entries)


def mixes(items: Sequence[Sequence[Option]]) -> list[tuple[int, ...]]:
    """Return the best options of operands, for budgets of all sizes."""
    choices = choices_of(items)
    budgets = (choices.floor * (1 - number / _MIXES) for number in range(_MIXES))
    found = (choices.within(max(budget, choices.floor)) for budget in budgets)
    return [*dict.fromkeys(tuple(picked) for picked in found if picked is not None)]


def joined(model: Model, layer: Layer, ways: tuple[Way, Way], share: float) -> Way:
    """Return the way in which a share of the weights, as few operands as hold it, is stored in the second of two ways.

    Of one operand at most, the first output channels alone are.
    """
    made = [_joined(model, place, ways, share) for place in layer.places]
    entries = [_entry(*_at(model, place), own) for place, own in zip(layer.places, made, strict=True)]
    rows = [how for how in made[0].values() if not isinstance(how, str)]
    return way_of(model, layer.places, "".join(f"{first} for {n} channels, {rest}" for first, n, rest in rows), entries)


def _joined(model: Model, place: Place, ways: tuple[Way, Way], share: float) -> dict[int, Any]:
    """Return the forms of a node's operands by position, of one of them as a recipe says it of its channels."""
    graph, node = _at(model, place)
    rest, first = (_forms(way, place) for way in ways)
    changed = [p for p in sorted({*rest, *first}) if rest.get(p) != first.get(p)]
    sizes = {p: prod(graph.tensors[node.inputs[p]].static_shape) for p in changed}
    left, own = share * sum(sizes.values()), dict[int, Any](rest)
    for position in changed:
        channels = channels_at(graph, node, position)
        count = int(min(left / sizes[position], 1.0) * channels + 1e-9)
        left -= sizes[position]
        if count == channels:
            own[position] = first.get(position, FLOAT)
        elif count > 0:
            own[position] = [first.get(position, FLOAT), count, rest.get(position, FLOAT)]
    return {position: how for position, how in own.items() if how != FLOAT}


def can_be_joined(way: Way) -> bool:
    """Return whether all weights of a way are floats or are widened to floats."""
    return all(choice.widened for choice in way.chosen.values())


def channels_of_weights(model: Model, layer: Layer) -> int:
    """Return how many output channels the weights of a layer have in sum; a part begins at any of them."""
    graph, node = _at(model, layer.places[0])
    found = [way.chosen[layer.places[0]].forms for way in layer.ways if layer.places[0] in way.chosen]
    return sum(channels_at(graph, node, position) for position in found[0])


def _forms(way: Way, place: Place) -> dict[int, str]:
    return {p: _NAMES[_key(form)] for p, form in _stored(way, place) if isinstance(form, Format)}


def _stored(way: Way, place: Place) -> Iterator[tuple[int, Any]]:
    yield from way.chosen[place].forms.items() if place in way.chosen else ()


def _key(form: Format) -> tuple[int, bool]:
    bits = _BITS[form.type]
    return bits, bits < 16 and form.axis is not None


def _entry(graph: Subgraph, node: Node, operands: Mapping[int, Any]) -> dict[str, Any]:
    """Return the entry for a node: of the fewest bits, by which the peer stores all operands."""
    names = [name for how in operands.values() for name in ([how] if isinstance(how, str) else (how[0], how[2]))]
    made = entry_for(graph, node, min((FORMS[name][0] for name in names if name != FLOAT), default=16))
    weights = made["op_config"]["weight_tensor_config"]
    named = {str(position): how for position, how in operands.items()}
    weights["algorithm_params"] = weights.get("algorithm_params", {}) | {"operands": named}
    return made


def _at(model: Model, place: Place) -> tuple[Subgraph, Node]:
    graph = model.subgraphs[place[0]]
    return graph, graph.nodes[place[1]]
