"""Surveys the effect of half precision on each operator of a model, and which nodes must stay in float32."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from litecl.bisection.keep import fewest
from litecl.bisection.tolerance import Tolerance, size_of, worst
from litecl.delegate.claim.options import KeptNode
from litecl.halves import Emulation, Mode, Ran
from litecl.halves.kernels import WITHOUT
from litecl.halves.sums import LEAST_NORMAL, largest_lost, rounded
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Model
from litecl.perf.feeds import outputs_of, prepare

Place = tuple[int, int]


@dataclass(frozen=True)
class Finding:
    """The effect of halves on a node given right inputs, over all its runs.

    result, sum, operand: the largest result, partial sum and operand that overflow a half (beyond 65504); 0 if none
    does. elements: number of nonzero results; below: of those below 6.1e-5, where halves lose digits; vanished: of
    those that become 0. error: the largest error, relative to the largest magnitude of the result.
    """

    subgraph: int
    node: int
    op: str
    name: str
    result: float = 0.0
    sum: float = 0.0
    operand: float = 0.0
    elements: int = 0
    below: int = 0
    vanished: int = 0
    error: float = 0.0

    @property
    def place(self) -> Place:
        """The node's subgraph and position there."""
        return self.subgraph, self.node

    @property
    def overflows(self) -> bool:
        """True if an operand, partial sum or result overflows a half, or if the error isn't finite."""
        return max(self.result, self.sum, self.operand) > 0 or not np.isfinite(self.error)

    def what(self, share: float) -> tuple[str, ...]:
        """Describe the problems. share: the tolerated error, and the tolerated share of numbers that become 0."""
        passing = (("a result", self.result), ("a partial sum", self.sum), ("an operand", self.operand))
        problems = [f"{name} of {value:,.6g} passes 65,504" for name, value in passing if value]
        if self.vanished > share * self.elements:
            problems.append(f"{self.vanished:,} of {self.elements:,} numbers become 0")
        if not problems and not np.isfinite(self.error):
            problems.append("the result is not finite")
        if self.error > share and np.isfinite(self.error):
            problems.append(f"loses {self.error:.2%}")
        return tuple(problems)


@dataclass(frozen=True)
class Survey:
    """The result of running a model in halves.

    share: the tolerated error, relative to the largest magnitude of a tensor. findings: for every float node, in file
    order. error: of the model's worst output. keep_float: the nodes that must stay in float32 for right outputs, for
    ``CLDelegate(keep_float=...)``; empty if the outputs are right anyway; kept_error: the outputs' error with them.
    notes: the emulation's omissions.
    """

    mode: Mode
    share: float
    findings: tuple[Finding, ...]
    error: float
    keep_float: tuple[KeptNode, ...] = ()
    kept_error: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[Finding, ...]:
        """The nodes with problems: overflows and losses. If outputs are wrong, also nodes with many results that become
        0, which is common and often harmless, for example in probabilities.
        """
        suspicious = (finding for finding in self.findings if finding.what(self.share))
        return tuple(f for f in suspicious if f.overflows or max(f.error, self.error) > self.share)


def survey(
    content: bytes,
    model: Model,
    given: Mapping[str, Array],
    mode: Mode,
    tolerance: Tolerance,
    keep_float: Collection[KeptNode] = (),
    tick: Callable[[str], None] = lambda text: None,
) -> Survey:
    """Run a model in halves, each node with right inputs and then the whole, and find the nodes to keep in float32.

    content: the model file. given: inputs by label. tolerance: for floats in all tensors, for integers in the model's
    outputs. keep_float: nodes that already stay in float32; the result omits them. Raises LiteclError if the model
    doesn't run.
    """
    share = tolerance.relative
    tick("every node in halves")
    seen = _Seen(model, is_stored=mode != "sums")
    expected = _run(content, given, Emulation(mode, keep_float, look=seen.add))

    def error(kept: Sequence[Place]) -> float:
        tick(f"the model in halves, {len(kept)} nodes in float32" if kept else "the model in halves")
        got = _run(content, given, Emulation(mode, (*keep_float, *kept)))
        beyond = worst(got, expected, Tolerance(0.0, tolerance.steps))
        return 0.0 if beyond is None else beyond.size

    findings, whole = seen.findings(), error(())
    result = Survey(mode, share, findings, whole, notes=_notes(model, mode))
    if whole <= share:
        return result
    needed = [finding.place for finding in findings if finding.overflows]
    others = sorted((f for f in findings if not f.overflows), key=lambda f: f.error, reverse=True)
    kept = fewest(needed, [f.place for f in others], lambda places: error(places) <= share)
    names = tuple(_called(model, place) for place in sorted(kept))
    return Survey(mode, share, findings, whole, names, error(kept), result.notes)


def _run(content: bytes, given: Mapping[str, Array], emulation: Emulation) -> list[Array]:
    interpreter = Interpreter(model_content=content, delegates=[emulation])
    prepare(interpreter, given)
    interpreter.invoke()
    return outputs_of(interpreter)


def _called(model: Model, place: Place) -> KeptNode:
    """Return a node's name for ``keep_float``: its first result if that is unique, else its place."""
    subgraph, position = place
    names = Counter(graph.tensors[t].name for graph in model.subgraphs for node in graph.nodes for t in node.outputs)
    node = model.subgraphs[subgraph].nodes[position]
    name = model.subgraphs[subgraph].tensors[node.outputs[0]].name if node.outputs else ""
    return name if name and names[name] == 1 else place


def _notes(model: Model, mode: Mode) -> tuple[str, ...]:
    if mode == "storage":
        return ()
    names = sorted({node.op.name for graph in model.subgraphs for node in graph.nodes if node.op in WITHOUT})
    return (f"{', '.join(names)}: sums within are emulated in float32",) if names else ()


@dataclass
class _Seen:
    """Collects findings over all runs of nodes. is_stored: whether results are stored as halves."""

    model: Model
    is_stored: bool
    by_place: dict[Place, Finding] = field(default_factory=dict)

    def add(self, ran: Ran) -> None:
        """Add a run of a node."""
        place = ran.subgraph, ran.node
        graph = self.model.subgraphs[ran.subgraph]
        node = graph.nodes[ran.node]
        name = graph.tensors[node.outputs[0]].name if node.outputs else ""
        before = self.by_place.get(place) or Finding(*place, node.op.name, name)
        floats = [(a, b) for a, b in zip(ran.exact, ran.halves, strict=True) if a.dtype == np.float32]
        lost = [largest_lost(a, rounded(a)) for a, _ in floats] if self.is_stored else []
        self.by_place[place] = replace(
            before,
            result=max(before.result, *lost, 0.0),
            sum=max(before.sum, ran.sums),
            operand=max(before.operand, ran.reads),
            elements=before.elements + sum(_count(a != 0) for a, _ in floats),
            below=before.below + sum(_count((a != 0) & (np.abs(a) < LEAST_NORMAL)) for a, _ in floats),
            vanished=before.vanished + sum(_count((a != 0) & (b == 0)) for a, b in floats),
            error=max(before.error, *(size_of(b, a) for a, b in floats), 0.0),
        )

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings in file order."""
        return tuple(self.by_place[place] for place in sorted(self.by_place))


def _count(which: Array) -> int:
    return int(np.count_nonzero(which))
