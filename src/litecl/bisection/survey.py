"""The effect of half precision on each operator of a model, and the nodes that must stay in float32."""

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
    """The effect of halves on a node that is given right inputs, in all of its runs.

    result, sum, operand: the largest number of its results, of its partial sums and of its operands that a half does
    not hold (beyond 65504); 0 where there is none. elements: results that are not 0; below: those of them below 6.1e-5,
    of which halves have fewer digits; vanished: those that become 0. error: the largest error, relative to the
    largest magnitude of the result.
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
        """Its subgraph, and its position there."""
        return self.subgraph, self.node

    @property
    def overflows(self) -> bool:
        """True if a half does not hold a number that it reads, adds up or computes, or its result is not finite."""
        return max(self.result, self.sum, self.operand) > 0 or not np.isfinite(self.error)

    def what(self, share: float) -> tuple[str, ...]:
        """Return what is wrong, in words. share: the error, and the share of numbers that become 0, that are not."""
        passing = (("a result", self.result), ("a partial sum", self.sum), ("an operand", self.operand))
        said = [f"{what} of {value:,.6g} passes 65,504" for what, value in passing if value]
        if self.vanished > share * self.elements:
            said.append(f"{self.vanished:,} of {self.elements:,} numbers become 0")
        if not said and not np.isfinite(self.error):
            said.append("the result is not finite")
        if self.error > share and np.isfinite(self.error):
            said.append(f"loses {self.error:.2%}")
        return tuple(said)


@dataclass(frozen=True)
class Survey:
    """A model in halves on some inputs.

    share: the error, relative to the largest magnitude of a tensor, that is none. findings: of every node of floats, in
    the order of the file. error: the worst of the model's outputs. keep_float: the nodes that must stay in float32 for
    the outputs to be right, for ``CLDelegate(keep_float=...)``: none where they are; kept_error: the outputs' error
    with them. notes: what the emulation leaves out.
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
        """The nodes with which something is wrong: overflows and losses, and where outputs are wrong also nodes of
        whose results many become 0, which is common and does no harm to probabilities, say.
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

    content: the file of the model. given: its inputs, by label. tolerance: the error that is none, of floats in all
    tensors, of integers in the model's outputs. keep_float: nodes that are in float32 already, which are not among
    those that are found. Raises LiteclError where it does not run.
    """
    share = tolerance.relative
    tick("every node in halves")
    seen = _Seen(model, is_stored=mode != "sums")
    expected = _run(content, given, Emulation(mode, keep_float, look=seen.add))

    def error(kept: Sequence[Place]) -> float:
        tick(f"the model in halves, {len(kept)} nodes in float32" if kept else "the model in halves")
        got = _run(content, given, Emulation(mode, (*keep_float, *kept)))
        found = worst(got, expected, Tolerance(0.0, tolerance.steps))
        return 0.0 if found is None else found.size

    findings, whole = seen.findings(), error(())
    found = Survey(mode, share, findings, whole, notes=_notes(model, mode))
    if whole <= share:
        return found
    needed = [finding.place for finding in findings if finding.overflows]
    others = sorted((f for f in findings if not f.overflows), key=lambda f: f.error, reverse=True)
    kept = fewest(needed, [f.place for f in others], lambda places: error(places) <= share)
    names = tuple(_called(model, place) for place in sorted(kept))
    return Survey(mode, share, findings, whole, names, error(kept), found.notes)


def _run(content: bytes, given: Mapping[str, Array], emulation: Emulation) -> list[Array]:
    interpreter = Interpreter(model_content=content, delegates=[emulation])
    prepare(interpreter, given)
    interpreter.invoke()
    return outputs_of(interpreter)


def _called(model: Model, place: Place) -> KeptNode:
    """Return how a user names a node: by its first result if only this node has that name, else by its place."""
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
    """The findings of nodes, of all their runs. is_stored: whether their results are halves."""

    model: Model
    is_stored: bool
    found: dict[Place, Finding] = field(default_factory=dict)

    def add(self, ran: Ran) -> None:
        """Add a run of a node."""
        place = ran.subgraph, ran.node
        graph = self.model.subgraphs[ran.subgraph]
        node = graph.nodes[ran.node]
        name = graph.tensors[node.outputs[0]].name if node.outputs else ""
        before = self.found.get(place) or Finding(*place, node.op.name, name)
        floats = [(a, b) for a, b in zip(ran.exact, ran.halves, strict=True) if a.dtype == np.float32]
        lost = [largest_lost(a, rounded(a)) for a, _ in floats] if self.is_stored else []
        self.found[place] = replace(
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
        """Return what was found, in the order of the file."""
        return tuple(self.found[place] for place in sorted(self.found))


def _count(which: Array) -> int:
    return int(np.count_nonzero(which))
