"""Plans a region: steps over operands, with assigned memory."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from litecl.delegate.analysis.explicit import Explicit
from litecl.delegate.cl_op import DeviceOp, Operand, Scratch, Target
from litecl.delegate.claim.partition import Region
from litecl.delegate.plan import states
from litecl.delegate.plan.graph import region_graph
from litecl.delegate.plan.grouping import gathered, narrowed
from litecl.delegate.plan.inline import inlined
from litecl.delegate.plan.lowering import lower
from litecl.delegate.plan.memory import Arena, Usage, place
from litecl.delegate.plan.pipeline import Observer, fused
from litecl.delegate.plan.steps import (
    Branch,
    Loop,
    OneGroup,
    Part,
    Slot,
    State,
    Steps,
    Within,
    Work,
    control_of,
    place_of,
    works_of,
)
from litecl.delegate.plan.values import Planning, Values
from litecl.delegate.target import own
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.op import Op


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a runner needs to run a region.

    ``works`` are all launches of ``steps``. ``aliases`` are the positions of operands without memory of their own.
    ``slots`` are the positions of loop variables and states that lie in their loop's sets. ``lstms`` are the loops
    (subgraph and node) that run as an LSTM. ``arena`` has the offsets of the sets and of all other operands and scratch
    except constants; ``usages`` are their lifetimes. ``merged`` maps nodes (subgraph and position) that are fused into
    another one to that one. ``overwritten`` are the region's inputs whose memory a run writes to; ``apart`` are those
    of their operands that are not in the arena: the caller of the region provides the memory.
    """

    region: Region
    steps: Steps
    works: tuple[Work, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    states: tuple[State, ...]
    aliases: Mapping[Operand, Within]
    slots: Mapping[Operand, Slot]
    lstms: tuple[tuple[int, int], ...]
    arena: Arena
    usages: tuple[Usage, ...] = ()
    merged: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    overwritten: frozenset[int] = frozenset()
    apart: frozenset[Operand] = frozenset()

    @property
    def flops(self) -> int:
        """The arithmetic operations of all launches, counting a loop's body once."""
        return sum(work.launch.flops for work in self.works)

    @property
    def has_kernels_of_users(self) -> bool:
        """Return whether it launches users' kernels."""
        return any(work.launch.is_users for work in self.works)

    @property
    def control(self) -> tuple[Branch | Loop, ...]:
        """Every branch and loop."""
        return tuple(control_of(self.steps))

    @property
    def loops(self) -> tuple[Loop, ...]:
        """Every loop, by number."""
        return tuple(sorted((p for p in self.control if isinstance(p, Loop)), key=lambda loop: loop.number))

    @property
    def turns(self) -> int:
        """The loop number that ``slots`` use for the states' two sets."""
        return len(self.loops)

    @property
    def predicates(self) -> tuple[Operand, ...]:
        """The predicates of loops and branches."""
        return tuple(part.predicate for part in self.control)

    def place(self, operand: Operand) -> tuple[Operand, int]:
        """Return the operand whose memory contains this one, and the offset in bytes."""
        return place_of(operand, self.aliases)

    def root(self, operand: Operand) -> Operand:
        """Return the operand whose memory contains this one."""
        return self.place(operand)[0]


def plan(
    region: Region,
    source: Explicit,
    target: Target,
    alignment: int,
    cl_ops: Mapping[Op, DeviceOp],
    observe: Observer | None = None,
    owned: Collection[int] = (),
    in_float: Collection[tuple[int, int]] = (),
    halves: bool = False,
) -> Plan:
    """Fuse and lower a region's nodes, with the subgraphs that they run, and assign memory.

    observe: called after every pass over every graph. owned: inputs that may be overwritten. halves: whether
    large weights of products are stored as fp16, except those of the nodes (subgraph and position) ``in_float``.
    """
    planning = Planning(source.model, source.specs, target, alignment, cl_ops, observe, in_float, halves)
    planning.graphs[region.subgraph] = inlined(source.model, source.specs, region.subgraph, {*region.nodes})
    before, pinned = states.places(planning, region)
    kept = {*region.outputs, *(v.after for v in region.variables if v.after is not None)}
    nodes = planning.graph(region.subgraph).live(region.nodes, kept)
    steps, values = _run(planning, region.subgraph, nodes, before, pinned, owned, kept)
    found, copies = states.states(values, region, before)
    outputs, more = _outputs(values, region, found)
    parts = own(target, gathered)([*steps, *copies, *more], planning.slots, planning.place)
    unplaced = Plan(
        region,
        parts,
        tuple(works_of(parts)),
        tuple(values.operand(t) for t in region.inputs),
        tuple(outputs),
        found,
        planning.aliases,
        planning.slots,
        tuple(planning.lstms),
        Arena({}, 0),
        merged=planning.merged,
        overwritten=frozenset(values.overwritten).intersection(region.inputs),
    )
    apart = _apart(unplaced)
    usages = tuple(usage for usage in _usages(unplaced) if usage.key not in apart)
    return replace(unplaced, arena=place(usages, alignment), usages=usages, apart=apart)


def _run(
    planning: Planning,
    subgraph: int,
    nodes: Sequence[int],
    given: Mapping[int, Operand],
    pinned: Mapping[int, Operand],
    owned: Collection[int] = (),
    kept: Collection[int] | None = None,
) -> tuple[list[Part], Values]:
    """Return the steps of nodes of an inlined subgraph, and the operands of its tensors; see ``control.Run``.

    kept: the tensors read after the nodes have run; None for a callee: its outputs.
    """
    if kept is None:
        planning = own(planning.target, narrowed)(planning, subgraph)
    inner = planning.graph(subgraph)
    read = inner.source.outputs if kept is None else kept
    settled = {**given, **pinned}
    graph = region_graph(subgraph, inner, nodes, read, planning.cl_ops, planning.alignment, settled, owned)
    graph = own(planning.target, fused)(graph, planning.observe)
    planning.merged |= {graph.origins[p.position]: graph.origins[n.position] for n in graph.nodes for p in n.fused}
    values = Values(planning, graph, pinned.values())
    return lower(values, partial(_run, planning)), values


def _outputs(values: Values, region: Region, states: Sequence[State]) -> tuple[list[Operand], list[Part]]:
    """Return the operands of a region's outputs, and copies for those whose memory may change before they are read."""
    planning = values.planning
    written = [state.before for state in states]
    written += [values.operand(t) for t in region.inputs if t not in values.overwritten]
    # The host reads a CPU's outputs in place, and writes to inputs and states between runs.
    lent = {planning.place(operand)[0] for operand in written} if planning.target.memory == "host" else set()
    outputs: list[Operand] = []
    copies: list[Part] = []
    for operand in (values.newest(t) for t in region.outputs):
        outputs.append(operand)
        if planning.place(operand)[0] in planning.slots.keys() | lent:
            outputs[-1] = Operand(operand.spec)
            copies.append(values.copy(values.graph.nodes[-1].position, operand, outputs[-1]))
    return outputs, copies


def _apart(unplaced: Plan) -> frozenset[Operand]:
    """Return the overwritten inputs that have memory of their own."""
    inputs = zip(unplaced.region.inputs, unplaced.inputs, strict=True)
    found = {operand for tensor, operand in inputs if tensor in unplaced.overwritten}
    return frozenset(
        operand for operand in found if unplaced.root(operand) is operand and operand not in unplaced.slots
    )


def _usages(unplaced: Plan) -> list[Usage]:
    """Return lifetimes in steps. Inputs and states live for the whole run, outputs from their first write to its end.

    A tensor computed before a loop and read in it lives until the loop ends, as every iteration reads it.
    """
    numbered = _Numbering(unplaced)
    end = numbered.steps(unplaced.steps, 0)
    kept = [*unplaced.inputs, *(state.before for state in unplaced.states)]
    always = [item for operand in kept if (item := numbered.memory(operand)) is not None]
    first: dict[Operand | Scratch, int] = dict.fromkeys(always, 0)
    last: dict[Operand | Scratch, int] = dict.fromkeys(always, end)
    for item, steps in numbered.uses.items():
        first.setdefault(item, steps[0])
        last[item] = max(last.get(item, 0), _last(steps, numbered.loops))
    last |= {root: end for o in unplaced.outputs if (root := unplaced.root(o)) in first}
    return [Usage(item, item.size_bytes, first[item], last[item]) for item in first]


def _last(steps: Sequence[int], loops: Sequence[tuple[int, int]]) -> int:
    """Return the end of a lifetime, given the steps of its uses. loops: inner ones first."""
    last = steps[-1]
    for start, end in loops:
        if steps[0] < start and any(start <= step <= end for step in steps):
            last = max(last, end)
    return last


class _Numbering:
    """Numbers the steps of a plan in order. uses: the steps that use each memory. loops: the first and last step of
    each, inner ones first.
    """

    def __init__(self, unplaced: Plan) -> None:
        self._plan = unplaced
        self.uses: dict[Operand | Scratch, list[int]] = {}
        self.loops: list[tuple[int, int]] = []

    def steps(self, steps: Steps, at: int) -> int:
        """Number a sequence from ``at`` on; return the next number."""
        for part in steps:
            if isinstance(part, Work):
                for item in self._named(part):
                    self.uses.setdefault(item, []).append(at)
            elif isinstance(part, OneGroup):
                at = self.steps(part.steps, at) - 1
            else:
                at = self._loop(part, at) if isinstance(part, Loop) else self._branch(part, at)
            at += 1
        return at

    def _loop(self, loop: Loop, start: int) -> int:
        at = self.steps(loop.condition, start)
        self._use(loop.predicate, at)
        at = self.steps(loop.body, at + 1)
        self.loops.append((start, at))
        return at

    def _branch(self, branch: Branch, at: int) -> int:
        self._use(branch.predicate, at)
        return self.steps(branch.otherwise, self.steps(branch.then, at + 1))

    def _use(self, operand: Operand, at: int) -> None:
        item = self.memory(operand)
        if item is not None:
            self.uses.setdefault(item, []).append(at)

    def _named(self, work: Work) -> Iterator[Operand | Scratch]:
        for arg in work.launch.args:
            item = arg if isinstance(arg, Scratch) else self.memory(arg) if isinstance(arg, Operand) else None
            if item is not None:
                yield item

    def memory(self, operand: Operand) -> Operand | Scratch | None:
        """Return the memory that an operand uses: its sets or its root; None for a constant."""
        root = self._plan.root(operand)
        if root in self._plan.slots:
            return self._plan.slots[root].sets
        return None if root.data is not None else root
