"""Values that a loop or a branch passes on, and that LiteRT overwrites before reading them.

LiteRT's WHILE keeps the inputs of its body in the memory of its own outputs, and copies the body's outputs there one by
one: a body that returns an input at a later position returns a value that was just overwritten. A branch of IF that
returns one tensor twice writes only to the memory of the last of the outputs. litecl keeps the values.
"""

from collections.abc import Iterator

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Model, Subgraph, callees_of

_LOOPS, _BRANCHES = ("WHILE",), ("IF", "STABLEHLO_CASE")


@dataclass(frozen=True)
class HandedOn:
    """An output of a subgraph that needs memory of its own.

    source: the position of the input that it equals; in a branch, of the output that returned the tensor first.
    """

    subgraph: int
    output: int
    source: int
    in_loop: bool

    @property
    def is_overwritten(self) -> bool:
        """False if LiteRT computes it correctly too, as long as shapes do not change."""
        return self.source < self.output

    def describe(self, model: Model) -> str:
        """Describe the output in a message."""
        graph = model.subgraphs[self.subgraph]
        name = graph.tensors[graph.outputs[self.output]].name
        returned = f"returns its input {self.source} as output {self.output}"
        again = f"returns one tensor as outputs {self.source} and {self.output}"
        part = f"the body of a WHILE {returned}" if self.in_loop else f"a branch {again}"
        return f"{part} ({name!r}, subgraph {self.subgraph})"


def handed_on(model: Model) -> Iterator[HandedOn]:
    """Yield outputs of loops' bodies that are inputs of other positions, and tensors that branches return twice.

    A body may return an input in place and at other positions too.
    """
    seen: set[int] = set()
    for node in (node for graph in model.subgraphs for node in graph.nodes):
        in_loop = node.op.name in _LOOPS
        called = callees_of(node)[1:] if in_loop else callees_of(node) if node.op.name in _BRANCHES else ()
        for index in called:
            if index not in seen:
                seen.add(index)
                graph = model.subgraphs[index]
                pairs = _moved(graph) if in_loop else _repeated(graph)
                yield from (HandedOn(index, output, source, in_loop) for output, source in pairs)


def _moved(body: Subgraph) -> Iterator[tuple[int, int]]:
    changed = {t: i for i, (t, result) in enumerate(zip(body.inputs, body.outputs, strict=False)) if t != result}
    return ((i, changed[t]) for i, t in enumerate(body.outputs) if t in changed)


def _repeated(branch: Subgraph) -> Iterator[tuple[int, int]]:
    first: dict[int, int] = {}
    for i, t in enumerate(branch.outputs):
        if first.setdefault(t, i) != i and t not in branch.inputs and branch.tensors[t].data is None:
            yield i, first[t]


def difference(model: Model) -> str | None:
    """Return how LiteRT computes a model differently, and how to fix that; None for most models."""
    lost = [one.describe(model) for one in handed_on(model) if one.is_overwritten]
    if not lost:
        return None
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    return (
        f"LiteRT computes something else for this model than litecl: {lost[0]}{more}, which LiteRT overwrites too "
        "early. Converter.from_tflite (litecl convert MODEL -o OUT) writes a file that is right in both"
    )
