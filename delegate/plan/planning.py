"""Plans a region: steps over operands, with assigned memory."""

from collections.abc import Collection, Mapping

from litecl.delegate.analysis.explicit import Explicit
from litecl.delegate.cl_op import DeviceOp, Operand, Target
from litecl.delegate.claim.region import Region
from litecl.delegate.plan import halves
from litecl.delegate.plan.graph import RegionGraph, region_graph
from litecl.delegate.plan.grouping import gathered
from litecl.delegate.plan.inline import Origin, inlined
from litecl.delegate.plan.lowering import lower
from litecl.delegate.plan.memory import lifetimes, place, slots_of
from litecl.delegate.plan.pipeline import Observer
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.request import Request
from litecl.delegate.plan.results import results, variables
from litecl.delegate.plan.steps import numbered, place_of, works_of
from litecl.delegate.target import own
from litecl.interpreter.op import Op


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
        region=region,
        steps=steps,
        works=tuple(works_of(steps)),
        inputs=tuple(inputs.values()),
        outputs=outputs,
        states=states,
        aliases=aliases,
        slots=slots,
        lstms=tuple(lowered.lstms),
        arena=place(usages, alignment),
        usages=usages,
        merged=lowered.merged,
        overwritten=overwritten,
        apart=apart,
    )


def _graph(request: Request, region: Region, given: Mapping[int, Operand], owned: Collection[int]) -> RegionGraph:
    """Return the graph of a region's live nodes, with calls inlined."""
    inner = inlined(request.model, request.specs, region.subgraph, {*region.nodes})
    kept = {*region.outputs, *(v.after for v in region.variables if v.after is not None)}
    nodes = inner.live(region.nodes, kept)
    return region_graph(region.subgraph, inner, nodes, kept, request.cl_ops, request.alignment, given, owned)
