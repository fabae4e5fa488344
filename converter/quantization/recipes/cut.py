"""One layer of which the first output channels are stored in more bits than the rest."""

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from litecl.converter.quantization.frontier import Cut
from litecl.converter.quantization.gptq import Moments
from litecl.converter.quantization.recipes.choices import Choice
from litecl.converter.quantization.recipes.layers import Layer, Place, Way
from litecl.converter.quantization.recipes.operands import can_be_joined, channels_of_weights
from litecl.converter.quantization.recipes.split import FEWEST, Split, channels_of, divided
from litecl.interpreter.graph import Model
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP


@dataclass(frozen=True)
class Divisible:
    """A layer that can be divided: the place of its only node, and its output channels.

    columns: whether these are columns of a table. joined: whether its weights are divided, not its nodes.
    """

    place: Place
    channels: int
    columns: bool = False
    joined: bool = False

    def takes(self, way: Way) -> bool:
        """Return whether parts may be stored in a way: blocks of a table's columns leave few places to divide it."""
        if self.joined:
            return can_be_joined(way)
        return not (self.columns and any(choice.form.block for choice in way.chosen.values()))

    def nearest(self, channels: float) -> int:
        """Return the number of channels below another that a part may have; 0 if there is none."""
        fewest = 1 if self.joined else FEWEST
        count = int(min(channels, self.channels - fewest))
        return count if count >= fewest else 0


def divisible(model: Model, layer: Layer) -> Divisible | None:
    """Return how a layer can be divided, None if it cannot be."""
    if layer.joins:
        return Divisible(layer.places[0], channels_of_weights(model, layer), joined=True)
    if len(layer.places) != 1:
        return None
    (place,) = layer.places
    graph, number = model.subgraphs[place[0]], place[1]
    node = graph.nodes[number]
    found = Divisible(place, channels_of(graph, node), node.op is EMBEDDING_LOOKUP)
    return found if found.nearest(found.channels) else None


def split(model: Model, of: Divisible, cut: Cut) -> Split:
    """Return a model with a layer divided."""
    return divided(model, {of.place: cut.channels})


def cut_choices(layers: Sequence[Layer], picked: Sequence[int], cut: Cut, made: Split) -> dict[Place, Choice]:
    """Return the choices of all nodes of a divided model."""
    chosen = {}
    for number, (layer, option) in enumerate(zip(layers, picked, strict=True)):
        for place, choice in layer.ways[option].chosen.items():
            chosen[made.places[place][-1]] = choice
        if number == cut.layer:
            for place, choice in layer.ways[cut.way].chosen.items():
                chosen[made.places[place][0]] = choice
    return chosen


def cut_moments(moments: Mapping[int, Mapping[int, Moments]], made: Split) -> dict[int, dict[int, Moments]]:
    """Return the moments of the inputs of all nodes of a divided model; both parts read the same."""
    found: dict[int, dict[int, Moments]] = {}
    for index, own in moments.items():
        for number, value in own.items():
            for i, n in made.places[index, number]:
                found.setdefault(i, {})[n] = value
    return found


def cut_entries(layer: Layer, option: int, cut: Cut) -> list[dict[str, Any]]:
    """Return the entries of a divided layer: one that divides it, which the peer reads as one for the whole, and one
    for each part.
    """
    (whole,) = layer.ways[option].entries
    made = copy.deepcopy(whole)
    parameters = made["op_config"]["weight_tensor_config"].setdefault("algorithm_params", {})
    parameters["split"] = cut.channels
    first = [_of_part(entry, "first") for entry in layer.ways[cut.way].entries]
    return [made, *first, _of_part(whole, "rest")]


def _of_part(entry: dict[str, Any], name: str) -> dict[str, Any]:
    suffix = re.escape(";") + "$"
    assert entry["regex"].endswith(suffix)
    return {**entry, "regex": f"{entry['regex'].removesuffix(suffix)}/{name}{suffix}"}
