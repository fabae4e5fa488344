"""Compares two models: their nodes, tensors, and results on the same inputs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

from litecl.diff.describe import of_node, of_signatures
from litecl.diff.ends import aligned, of_ends, paired
from litecl.diff.facts import Facts
from litecl.diff.merge import Merged, merged
from litecl.diff.pair import Pair, pairs
from litecl.diff.values import error, real_inputs, values_of
from litecl.interpreter import Interpreter
from litecl.interpreter.data_frame import Library, frame
from litecl.interpreter.dynamic_range import DynamicRange
from litecl.interpreter.file.reader import read
from litecl.interpreter.graph import Array, Model, Shape, callees_of
from litecl.interpreter.html import block, paragraph, table
from litecl.interpreter.numbers import Numbers
from litecl.perf.feeds import labels

Source = str | PathLike[str] | bytes | Model


@dataclass(frozen=True)
class Changed:
    """A node that both models have. a, b: its number in each. what: the differences, each as "field: one -> other".

    subgraphs: the node's subgraph in each model.
    """

    a: int
    b: int
    op: str
    name: str
    what: tuple[str, ...]
    subgraphs: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Replaced:
    """Nodes of one model that correspond to nodes of the other: fused, split, or computed differently."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    ops_a: tuple[str, ...]
    ops_b: tuple[str, ...]
    subgraphs: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Layer:
    """A node of both models with everything fused into it. relative: the RMS of the difference of its first results,
    relative to the RMS of the first model's. Quantized results are compared as real numbers.
    """

    a: int
    b: int
    op: str
    name: str
    relative: float


@dataclass(frozen=True)
class Difference:
    """The comparison of two models. only_a, only_b: nodes that only one of them has, as "operator name" by number, with
    a prefix in subgraphs after the first ("1:4"). replaced: nodes with different counterparts. counts: of operators
    whose counts differ. layers: of the first subgraph. outputs: the error of each output, as ``Layer.relative``. ends:
    differences of inputs, outputs and signatures.
    """

    only_a: Mapping[str, str]
    only_b: Mapping[str, str]
    replaced: tuple[Replaced, ...]
    changed: tuple[Changed, ...]
    counts: Mapping[str, tuple[int, int]]
    layers: tuple[Layer, ...]
    outputs: tuple[float, ...]
    ends: tuple[str, ...]

    @property
    def same_structure(self) -> bool:
        """True if nodes, tensors and constants are the same."""
        return not (self.only_a or self.only_b or self.replaced or self.changed or self.ends)

    def is_within(self, relative: float) -> bool:
        """Return whether the structure is the same and no output's error exceeds ``relative``."""
        return self.same_structure and all(error <= relative for error in self.outputs)

    def frame(self, rows: Literal["layers", "changed"] = "layers", library: Library | None = None) -> Any:
        """Return rows as a pandas or polars data frame (``frames.frame``). Raises MissingExtra without either."""
        return frame(getattr(self, rows), library)

    def _repr_html_(self) -> str:
        """Return the comparison as HTML for notebooks."""
        ones = [("first", n, name) for n, name in self.only_a.items()]
        ones += [("second", n, name) for n, name in self.only_b.items()]
        return block(
            paragraph(f"The structures are {'equal' if self.same_structure else 'different'}."),
            *map(paragraph, self.ends),
            table(("only in the", "node", "operator"), ones),
            table(
                ("node", "of the other", "operator", "name", "differs"),
                ((c.a, c.b, c.op, c.name, "\n".join(c.what)) for c in self.changed),
            ),
            table(("output", "relative error"), ((n, f"{e:.3g}") for n, e in enumerate(self.outputs))),
            table(
                ("node", "of the other", "operator", "name", "relative error"),
                ((x.a, x.b, x.op, x.name, f"{x.relative:.3g}") for x in self.layers),
            ),
        )


def diff_models(
    a: Source,
    b: Source,
    inputs: Mapping[str, Array] | None = None,
    *,
    shapes: Mapping[str, Shape] | None = None,
    seed: int = 0,
    dynamic_range: DynamicRange | None = None,
    numbers: Numbers = "reference",
) -> Difference:
    """Compare two models, node by node, then layer by layer on the same inputs.

    Matches nodes by the structure before and after them, then by names. inputs: of the first model, by name, as it
    takes them; the others are random, by ``seed``, of these shapes. The second model gets the same real numbers, in
    its own input types; random ones are within their range. dynamic_range, numbers: for both, as for ``Interpreter``.

    Raises ModelError for files that aren't models, and ShapeError if the models' inputs differ in shape or number.
    """
    first, second = (source if isinstance(source, Model) else read(source) for source in (a, b))
    ends = {kind: paired(first, second, kind) for kind in ("inputs", "outputs")}
    models = [aligned(first, 0, ends), aligned(second, 1, ends)]
    runtimes = [
        Interpreter(model, experimental_preserve_all_tensors=True, dynamic_range=dynamic_range, numbers=numbers)
        for model in models
    ]
    details = runtimes[0].get_input_details()
    for name, detail in zip(labels(details), details, strict=True):
        if shapes and name in shapes:
            runtimes[0].resize_tensor_input(detail["index"], shapes[name])
    given = real_inputs(models, runtimes, inputs or {}, seed)
    values = [values_of(*each) for each in zip(models, runtimes, given, strict=True)]
    compared = list(_compared(models, values))
    outputs = zip(*(model.subgraphs[0].outputs for model in models), strict=False)
    counts = [Counter(node.op.name for graph in model.subgraphs for node in graph.nodes) for model in models]
    return Difference(
        only_a=dict(named for part in compared for named in part.only(0)),
        only_b=dict(named for part in compared for named in part.only(1)),
        replaced=tuple(row for part in compared for row in part.replaced()),
        changed=tuple(row for part in compared for row in part.changed()),
        counts={op: (counts[0][op], counts[1][op]) for op in counts[0] | counts[1] if counts[0][op] != counts[1][op]},
        layers=tuple(compared[0].layers(values)),
        outputs=tuple(error(values[0].get(s), values[1].get(t)) for s, t in outputs),
        ends=(*of_ends(first, second, ends), *of_signatures(first, second)),
    )


def _compared(models: Sequence[Model], values: Sequence[Mapping[int, Array]]) -> Iterator["_Graphs"]:
    """Compare the first subgraphs, those of shared signatures, and those that matched nodes run."""
    keys = [{s.key: s.subgraph for s in model.signatures} for model in models]
    waiting = [(0, 0), *((keys[0][key], keys[1][key]) for key in keys[0] if key in keys[1])]
    seen: set[Pair] = set()
    while waiting:
        numbers = waiting.pop(0)
        if numbers not in seen:
            seen.add(numbers)
            graphs = _Graphs(models, numbers, values if numbers == (0, 0) else ({}, {}))
            yield graphs
            waiting += graphs.called()


class _Graphs:
    """A subgraph of each model. numbers: the subgraphs' indices. values: of their tensors, as far as known."""

    def __init__(self, models: Sequence[Model], numbers: Pair, values: Sequence[Mapping[int, Array]]) -> None:
        self._numbers = numbers
        self._of = [Facts(model.subgraphs[number]) for model, number in zip(models, numbers, strict=True)]
        self._pairs = pairs(*self._of)
        self._merged = merged(self._of[0], self._of[1], self._pairs, values)

    def _node(self, side: int, number: int) -> Any:
        return self._of[side].graph.nodes[number]

    def called(self) -> list[Pair]:
        """Return the subgraphs that matched nodes run."""
        return [
            callees
            for i, j in self._pairs
            for callees in zip(callees_of(self._node(0, i)), callees_of(self._node(1, j)), strict=False)
        ]

    def only(self, side: int) -> Iterator[tuple[str, str]]:
        """Return the nodes that only one side has, with their places."""
        of, prefix = self._of[side], f"{self._numbers[side]}:" if self._numbers[side] else ""
        taken = {pair[side] for pair in self._pairs}
        taken |= {i for whole in self._merged for i in (whole.a, whole.b)[side]}
        for i, node in enumerate(of.graph.nodes):
            if i not in taken:
                yield f"{prefix}{i}", f"{node.op.name} {of.name(i)}".strip()

    def replaced(self) -> Iterator[Replaced]:
        """Return the nodes with different counterparts."""
        for whole in self._merged:
            of_a, of_b = (self._ops(side, own) for side, own in enumerate((whole.a, whole.b)))
            yield Replaced(whole.a, whole.b, of_a, of_b, self._numbers)

    def _ops(self, side: int, nodes: Sequence[int]) -> tuple[str, ...]:
        return tuple(self._node(side, i).op.name for i in nodes)

    def changed(self) -> Iterator[Changed]:
        """Return the matched nodes that differ in something."""
        a, b = (of.graph for of in self._of)
        for i, j in self._pairs:
            differences = tuple(of_node(a, a.nodes[i], b, b.nodes[j]))
            if differences:
                yield Changed(i, j, a.nodes[i].op.name, self._of[0].name(i), differences, self._numbers)

    def layers(self, values: Sequence[Mapping[int, Array]]) -> Iterator[Layer]:
        """Return the errors of results. Merged nodes are compared by their common results."""
        instead = {pair: whole for whole in self._merged for pair in self._pairs if _holds(whole, pair)}
        rows = [*self._pairs, *((w.a[-1], w.b[-1]) for w in self._merged if w not in instead.values())]
        replacing = {(w.a[-1], w.b[-1]): w for w in self._merged}
        for i, j in sorted(rows):
            whole = instead.get((i, j)) or replacing.get((i, j))
            results = self._results(i, j) if whole is None else whole.results
            if results is not None and results[0] in values[0] and results[1] in values[1]:
                relative = error(values[0][results[0]], values[1][results[1]])
                yield Layer(i, j, self._node(0, i).op.name, self._of[0].name(i), relative)

    def _results(self, i: int, j: int) -> Pair | None:
        a, b = self._node(0, i).outputs, self._node(1, j).outputs
        return (a[0], b[0]) if a and b else None


def _holds(whole: Merged, pair: Pair) -> bool:
    return pair[0] in whole.a and pair[1] in whole.b
