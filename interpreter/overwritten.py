"""Values that LiteRT overwrites before it has read them, where a loop or a branch hands them on.

LiteRT's WHILE keeps the inputs of its body in the memory of its own outputs, and copies the body's outputs there one by
one, so a body that returns an input at a later position returns what has just been copied over it. A branch of IF that
returns one tensor twice writes it to the memory of the last of the outputs only. litecl keeps the values.
"""

from collections.abc import Iterator

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Model, Subgraph, callees_of

_LOOPS, _BRANCHES = ("WHILE",), ("IF", "STABLEHLO_CASE")


@dataclass(frozen=True)
class HandedOn:
    """An output of a subgraph that needs memory of its own.

    source: the position of the input that it is; of the output, for a tensor that a branch returns before.
    """

    subgraph: int
    output: int
    source: int
    in_loop: bool

    @property
    def is_overwritten(self) -> bool:
        """False if LiteRT computes it too, as long as shapes stay as they are."""
        return self.source < self.output

    def describe(self, model: Model) -> str:
        """Say what returns what."""
        graph = model.subgraphs[self.subgraph]
        name = graph.tensors[graph.outputs[self.output]].name
        returned = f"returns its input {self.source} as output {self.output}"
        again = f"returns one tensor as outputs {self.source} and {self.output}"
        part = f"the body of a WHILE {returned}" if self.in_loop else f"a branch {again}"
        return f"{part} ({name!r}, subgraph {self.subgraph})"


def handed_on(model: Model) -> Iterator[HandedOn]:
    """Return the outputs of loops' bodies that are inputs of other positions, and what branches return twice.

    Inputs that a body returns unchanged in their places may be returned in others too.
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
    """Return what LiteRT computes otherwise, and what to do about it; None of most models."""
    lost = [one.describe(model) for one in handed_on(model) if one.is_overwritten]
    if not lost:
        return None
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    return (
        f"LiteRT computes something else for this model than litecl: {lost[0]}{more}, which LiteRT overwrites too "
        "early. Converter.from_tflite (litecl convert MODEL -o OUT) writes a file that is right in both"
    )
