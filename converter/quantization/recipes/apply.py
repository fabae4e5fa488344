"""Applies a recipe to a model: first integer activations, then stored weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from litecl.converter.quantization.cells import cells
from litecl.converter.quantization.data import Sample
from litecl.converter.quantization.formats import Format
from litecl.converter.quantization.gptq import Moments
from litecl.converter.quantization.moments import has_moments, moments
from litecl.converter.quantization.recipes.choices import choices, entry_of, integer_form
from litecl.converter.quantization.recipes.recipe import Mode, Recipe
from litecl.converter.quantization.recipes.weights import narrowed
from litecl.converter.quantization.report import StoredWeights
from litecl.interpreter.graph import Model, Subgraph

_LEFT = "the recipe leaves it in float"


@dataclass(frozen=True)
class Selection:
    """The nodes to quantize with integer activations, by the first tensor they write.

    forms: their weights' formats. measured: those that need moments of their inputs. count: the subgraph's number of
    tensors when the recipe was applied; later tensors belong to substitutes of such nodes.
    """

    forms: Mapping[int, Format]
    measured: frozenset[int]
    count: int

    def __contains__(self, tensor: object) -> bool:
        return tensor in self.forms or (isinstance(tensor, int) and tensor >= self.count)

    def refused(self, graph: Subgraph) -> dict[int, str]:
        """Return the nodes that stay in float, by number."""
        left = {n for n, node in enumerate(graph.nodes) if node.outputs and node.outputs[0] not in self}
        for number, cell in cells(graph).items():
            if number not in left:
                left -= set(cell.writers)
        return dict.fromkeys(sorted(left), _LEFT)


def selections(model: Model, recipe: Recipe) -> list[Selection]:
    """Return the nodes of each subgraph that a recipe wants on integers."""
    return [_selection(graph, recipe) for graph in model.subgraphs]


def _selection(graph: Subgraph, recipe: Recipe) -> Selection:
    forms, measured = {}, set()
    for node in graph.nodes:
        entry = entry_of(graph, node, recipe)
        if entry is not None and entry.config.mode is Mode.STATIC and node.outputs:
            forms[node.outputs[0]] = integer_form(node, entry)
            if entry.compensates and has_moments(graph, node):
                measured.add(node.outputs[0])
    return Selection(forms, frozenset(measured), len(graph.tensors))


def moments_of(model: Model, chosen: Sequence[Selection], used: Sequence[Sample]) -> list[dict[int, Moments]]:
    """Return the moments of inputs of integer nodes, by subgraph and the node's first result."""
    numbers = {
        index: {
            n: node.outputs[0]
            for n, node in enumerate(graph.nodes)
            if node.outputs[:1] and node.outputs[0] in of.measured
        }
        for index, (graph, of) in enumerate(zip(model.subgraphs, chosen, strict=True))
    }
    by_number = moments(model, {index: list(of) for index, of in numbers.items()}, used)
    return [{numbers[index][n]: array for n, array in by_number[index].items()} for index in numbers]


def with_narrow_weights(
    model: Model, recipe: Recipe, used: Sequence[Sample]
) -> tuple[Model, tuple[StoredWeights, ...], tuple[str, ...]]:
    """Return a model with weights stored as a recipe says for float activations, rows on stored weights, and notes."""
    chosen = [choices(graph, recipe) for graph in model.subgraphs]
    wanted = {
        index: [
            n
            for n, choice in of.items()
            if choice.entry.measures and has_moments(model.subgraphs[index], model.subgraphs[index].nodes[n])
        ]
        for index, of in enumerate(chosen)
    }
    measured = moments(model, wanted, used) if used else {}
    notes = [
        f"{model.subgraphs[index].nodes[n].op.name} {_name(model.subgraphs[index], n)!r}: rounded without its inputs, "
        "which no sample reaches"
        for index, numbers in wanted.items()
        for n in numbers
        if n not in measured.get(index, {})
    ]
    narrow = [
        narrowed(graph, of, measured.get(i, {}))
        for i, (graph, of) in enumerate(zip(model.subgraphs, chosen, strict=True))
    ]
    rows = tuple(row for one in narrow for row in one.rows)
    return (
        replace(model, subgraphs=tuple(one.graph for one in narrow)),
        rows,
        (*notes, *(n for o in narrow for n in o.notes)),
    )


def _name(graph: Subgraph, number: int) -> str:
    return graph.tensors[graph.nodes[number].outputs[0]].name
