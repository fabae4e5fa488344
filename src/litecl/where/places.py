"""Says of every node of a model what each runtime of the table does with it, and what to change."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import ABSENT, Model, Subgraph, reached
from litecl.where import edgetpu
from litecl.where.kinds import WITH_OTHERS, Kind, kind_of
from litecl.where.table import DIFFERS, LEFT, REFUSES, UNKNOWN, Runtime, Table, Verdict, is_lacked, kinds_of, verdict

_MOST_CHANGES = 2
_CONSTANTS = "it reads constants alone, which runtimes may compute at once"
_FOLDED = "refused alone; an operand follows from constants, and a runtime may compute it at once"
_NOT_TAKEN = REFUSES, UNKNOWN
_INNER = "its subgraphs have nodes that are refused or not known"
_SIZES = "it follows from fixed sizes, which a compiler may compute at once"


@dataclass(frozen=True)
class Place:
    """A node, and what each runtime does with it.

    changes: by runtime, what to change where it refuses the node or computes it otherwise: the differences to the
    nearest kinds of node that it runs.
    """

    subgraph: int
    node: int
    kind: Kind
    verdicts: Mapping[str, Verdict]
    changes: Mapping[str, tuple[str, ...]]

    @property
    def label(self) -> str:
        """The node's number, after the subgraph's and a slash unless that is the first."""
        return f"{self.subgraph}/{self.node}" if self.subgraph else f"{self.node}"


def where(model: Model, table: Table, runtimes: Sequence[str] = ()) -> tuple[Place, ...]:
    """Return the places of all nodes, as the table and published lists have them. runtimes: of ``runtimes_of``; all by
    default.
    """
    names = runtimes or [*runtimes_of(table)]
    shaped = _shaped(model)
    places = [
        _place(shaped, number, at, table, names, fixed)
        for number, graph in enumerate(shaped.subgraphs)
        for fixed in [_fixed(graph)]
        for at in range(len(graph.nodes))
    ]
    return tuple(_with_inner(shaped, place, places) for place in places)


def _with_inner(model: Model, place: Place, places: Sequence[Place]) -> Place:
    """Return the place of a node that may run subgraphs: what is said of it holds if all nodes in these are taken."""
    called = reached(model, [model.subgraphs[place.subgraph].nodes[place.node]])
    if not called:
        return place
    inner = [other for other in places if other.subgraph in called]
    verdicts = {
        name: verdict
        if verdict.status in _NOT_TAKEN or not any(other.verdicts[name].status in _NOT_TAKEN for other in inner)
        else Verdict(UNKNOWN, _INNER)
        for name, verdict in place.verdicts.items()
    }
    return replace(place, verdicts=verdicts)


def _fixed(graph: Subgraph) -> set[int]:
    """Return the tensors that follow from constants and from the sizes of others."""
    fixed = {ABSENT, *(t for t, spec in enumerate(graph.tensors) if spec.data is not None)}
    for node in graph.nodes:
        if node.op.name in ("SHAPE", "RANK") or (node.inputs and fixed.issuperset(node.inputs)):
            fixed.update(node.outputs)
    return fixed


def runtimes_of(table: Table) -> dict[str, Runtime]:
    """Return the runtimes of a table, and those that published what they run."""
    return {**table.runtimes, edgetpu.RUNTIME.name: edgetpu.RUNTIME}


def _place(model: Model, subgraph: int, at: int, table: Table, names: Sequence[str], fixed: Set[int]) -> Place:
    graph = model.subgraphs[subgraph]
    node = graph.nodes[at]
    kind = kind_of(model, graph, node)
    if node.op.name not in WITH_OTHERS and all(text == "-" or "=" in text for text in kind.operands):
        verdicts = dict.fromkeys(names, Verdict(UNKNOWN, _CONSTANTS))
    else:
        verdicts = {name: table.verdict(name, kind, node.version) for name in names if name in table.runtimes}
        if edgetpu.RUNTIME.name in names:
            verdicts[edgetpu.RUNTIME.name] = edgetpu.verdict(graph, node)
        if node.outputs and {*node.outputs} <= fixed:
            verdicts = {n: Verdict(UNKNOWN, _SIZES) if v.status == LEFT else v for n, v in verdicts.items()}
        if any(graph.tensors[t].data is None for t in ({*node.inputs} & fixed) - {ABSENT}):
            verdicts = {n: _unless_folded(v, kind) for n, v in verdicts.items()}
    bad = [name for name, verdict in verdicts.items() if verdict.status in (REFUSES, DIFFERS, LEFT)]
    return Place(subgraph, at, kind, verdicts, {name: changes(table, name, kind) for name in bad})


def _unless_folded(verdict: Verdict, kind: Kind) -> Verdict:
    """Return the verdict on a node that the runtime may know with constants for some of its operands."""
    if verdict.status != REFUSES or is_lacked(verdict.reason, kind):
        return verdict
    return replace(verdict, status=UNKNOWN, reason=f"{_FOLDED}: {verdict.reason}")


def _shaped(model: Model) -> Model:
    """Return the model with the shapes that the first subgraph's tensors have at the declared shapes of its inputs."""
    try:
        interpreter = Interpreter(model)
        interpreter.allocate_tensors()
        shapes = {detail["index"]: tuple(map(int, detail["shape"])) for detail in interpreter.get_tensor_details()}
    except LiteclError:
        return model
    first = model.subgraphs[0]
    tensors = tuple(
        replace(spec, shape=shapes[t]) if spec.data is None and spec.shape is not None and t in shapes else spec
        for t, spec in enumerate(first.tensors)
    )
    return replace(model, subgraphs=(replace(first, tensors=tensors), *model.subgraphs[1:]))


def changes(table: Table, runtime: str, kind: Kind) -> tuple[str, ...]:
    """Return how the nearest kinds that a runtime runs, without differing beyond rounding, differ from this one."""
    near: list[tuple[int, str]] = []
    for other, row in kinds_of(table, kind.op):
        record = row.get(runtime)
        if record is None or len(other.operands) != len(kind.operands):
            continue
        judged = verdict(record, 0)
        if judged.is_run and judged.status != DIFFERS:
            steps = _differences(kind, other)
            near.append((len(steps), ", ".join(steps)))
    if not near:
        return ()
    fewest = min(near)[0]
    return tuple(dict.fromkeys(text for count, text in sorted(near) if count == fewest))[:_MOST_CHANGES]


def _differences(kind: Kind, other: Kind) -> list[str]:
    """Return the parts of another kind that this one has otherwise."""
    texts = [
        f"{name} {i}: {theirs}"
        for name, ours_, theirs_ in (("input", kind.operands, other.operands), ("output", kind.results, other.results))
        for i, (ours, theirs) in enumerate(zip(ours_, theirs_, strict=False))
        if ours != theirs
    ]
    return texts + [option for option in other.options if option not in kind.options]
