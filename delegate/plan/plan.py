"""Plans a region: steps over operands, with assigned memory."""

from collections.abc import Collection, Mapping
from dataclasses import field

from litecl.delegate.analysis.explicit import Explicit
from litecl.delegate.cl_op import DeviceOp, Operand, Target
from litecl.delegate.claim.partition import Region
from litecl.delegate.plan import halves
from litecl.delegate.plan.graph import RegionGraph, region_graph
from litecl.delegate.plan.grouping import gathered
from litecl.delegate.plan.inline import Origin, inlined
from litecl.delegate.plan.lowering import lower
from litecl.delegate.plan.memory import Arena, Usage, lifetimes, place, slots_of
from litecl.delegate.plan.pipeline import Observer
from litecl.delegate.plan.request import Request
from litecl.delegate.plan.results import results, variables
from litecl.delegate.plan.steps import (
    Branch,
    Loop,
    Slot,
    State,
    Steps,
    Within,
    Work,
    control_of,
    numbered,
    place_of,
    works_of,
)
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
    lstms: tuple[Origin, ...]
    arena: Arena
    usages: tuple[Usage, ...] = ()
    merged: Mapping[Origin, Origin] = field(default_factory=dict)
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
        return tuple(part for part in self.control if isinstance(part, Loop))

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
    in_float: Collection[Origin] = (),
    in_halves: bool = False,
) -> Plan:
    """Fuse and lower a region's nodes, with the subgraphs that they run, and assign memory.

    owned: inputs that may be overwritten. in_halves: ``Request.halves``. The others: see ``Request``.
    """
    request = Request(source.model, source.specs, target, alignment, cl_ops, observe, in_float, in_halves)
    old, new = variables(request, region)
    graph = _graph(request, region, {v.before: x for v, x in old.items() if v.before is not None} | new, owned)
    lowered = lower(request, graph, new.values())
    read = {t: lowered.operands.get(t) or Operand(graph.specs[t]) for t in region.inputs}
    narrow = source.halves[region.subgraph] if source.halves else frozenset()
    first = (region.subgraph, region.nodes[0])
    inputs, loads = halves.entering(read, narrow, lowered.operands, first, target)
    states, outputs, copies = results(request, region, lowered, inputs, old, new)
    outputs, stores = halves.leaving(outputs, region.outputs, narrow, lowered.last, target)
    steps = numbered([*loads, *lowered.steps, *copies, *stores])
    aliases, slots = lowered.aliases, slots_of(steps, states, alignment)
    steps = own(target, gathered)(steps, slots, lambda operand: place_of(operand, aliases))
    overwritten = frozenset(lowered.overwritten).intersection(region.inputs) - narrow
    apart = frozenset(operand for t in overwritten if lowered.root(operand := inputs[t]) is operand)
    lives = lifetimes(steps, [*inputs.values(), *old.values()], outputs, aliases, slots)
    usages = tuple(usage for usage in lives if usage.key not in apart)
    return Plan(
        region,
        steps,
        tuple(works_of(steps)),
        tuple(inputs.values()),
        outputs,
        states,
        aliases,
        slots,
        tuple(lowered.lstms),
        place(usages, alignment),
        usages,
        lowered.merged,
        overwritten,
        apart,
    )


def _graph(request: Request, region: Region, given: Mapping[int, Operand], owned: Collection[int]) -> RegionGraph:
    """Return the graph of a region's live nodes, with calls inlined."""
    inner = inlined(request.model, request.specs, region.subgraph, {*region.nodes})
    kept = {*region.outputs, *(v.after for v in region.variables if v.after is not None)}
    nodes = inner.live(region.nodes, kept)
    return region_graph(region.subgraph, inner, nodes, kept, request.cl_ops, request.alignment, given, owned)
