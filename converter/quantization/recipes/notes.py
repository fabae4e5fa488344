"""Notes recipe entries without effect."""

from collections import Counter
from collections.abc import Iterator

from litecl.converter.quantization.recipes.choices import entry_of, fits
from litecl.converter.quantization.recipes.recipe import ALL, INPUT, OUTPUT, Entry, Mode, Recipe
from litecl.interpreter.graph import Model


def unused(model: Model, recipe: Recipe) -> Iterator[str]:
    """Yield a note on each entry without effect in a model, and one if none has any."""
    graphs = model.subgraphs
    fitting = Counter(entry.number for graph in graphs for entry, _ in fits(graph, recipe))
    counting: Counter[int] = Counter()
    for graph in graphs:
        for node in graph.nodes:
            entry = entry_of(graph, node, recipe)
            if entry is not None:
                counting[entry.number] += 1
    for entry in recipe.entries:
        borders = (INPUT, OUTPUT) if entry.config.mode is Mode.STATIC else ()
        if entry.operation not in borders and entry.config.mode is not None and not counting[entry.number]:
            yield f"entry {entry.number} ({entry}) {_why(entry, fitting[entry.number])}"
    if not counting:
        yield "the recipe quantizes nothing of this model"


def _why(entry: Entry, count: int) -> str:
    if not count:
        return "fits no operator"
    operators = "operators" if entry.operation == ALL else entry.operation
    kinds = "activations" if entry.config.mode is Mode.STATIC else "weights"
    fits = f"counts for none of the {count} {operators} that it fits"
    return f"{fits}: later entries do, or there are no kernels of such {kinds}"
