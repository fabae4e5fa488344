"""Small loops and branches on a GPU: one work-group runs all of their launches in one launch.

Between two of them, the group waits at a barrier for dozens of cycles; queueing takes microseconds. So one compute unit
runs work that is too small to keep the GPU busy.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import prod

from litecl.delegate.analysis.cost import node_flops
from litecl.delegate.cl_op import Operand
from litecl.delegate.plan.grouping import Place
from litecl.delegate.plan.request import Request
from litecl.delegate.plan.steps import Branch, Loop, OneGroup, Part, Slot, Steps, Work, control_of, mapped, works_of
from litecl.interpreter.graph import callees_of
from litecl.interpreter.op import ControlOp

# A compute unit takes about as long for this as a queue from one launch to the next.
_MOST_ITEMS, _MOST_FLOPS = 1 << 13, 2e5


def narrowed(request: Request, subgraph: int) -> Request:
    """Adapt a request to a loop's or a branch's subgraph: if it is small, launches mustn't use local memory, as
    work-items that wait for each other can't run in turns.
    """
    small = _is_small(request, subgraph)
    return replace(request, target=replace(request.target, local_mem_bytes=0)) if small else request


def _is_small(request: Request, subgraph: int) -> bool:
    """Return whether all nodes of a subgraph and of its callees are small."""
    graph, specs = request.model.subgraphs[subgraph], request.specs[subgraph]
    for node in graph.nodes:
        if isinstance(node.op, ControlOp):
            if not all(_is_small(request, callee) for callee in callees_of(node)):
                return False
        elif node_flops(node.inputs, node.outputs, specs) > _MOST_FLOPS:
            return False
    return True


def gathered(steps: Steps, slots: Mapping[Operand, Slot], place: Place) -> Steps:
    """Group small loops and branches with the small launches around them, for one work-group; also within larger ones.

    slots, place: the plan's positions of loop variables, and its function that returns an operand's place.
    """
    users: dict[int, list[Work]] = {}
    for work in works_of(steps):
        for number in _sets_of(work, slots, place):
            users.setdefault(number, []).append(work)
    return list(_gathered(steps, users))


def _gathered(steps: Steps, users: Mapping[int, Sequence[Work]]) -> Iterator[Part]:
    def within(inner: Steps) -> Steps:
        return list(_gathered(inner, users))

    for fits, run in groupby(steps, _fits):
        parts = list(run)
        if fits and any(isinstance(part, Branch | Loop) for part in parts) and _is_closed(parts, users):
            yield OneGroup(parts)
        else:
            yield from (mapped(part, within) for part in parts)


def _fits(part: Part) -> bool:
    return all(_is_light(work) for work in works_of([part]))


def _is_light(work: Work) -> bool:
    launch = work.launch
    return launch.apart and launch.flops <= _MOST_FLOPS and prod(launch.global_size) <= _MOST_ITEMS


def _is_closed(parts: Steps, users: Mapping[int, Collection[Work]]) -> bool:
    """Return whether nothing else uses the sets of the loops in these parts, which alone know the current one."""
    own = set(works_of(parts))
    loops = [part for part in control_of(parts) if isinstance(part, Loop)]
    return all(own.issuperset(users.get(loop.number, ())) for loop in loops)


def _sets_of(work: Work, slots: Mapping[Operand, Slot], place: Place) -> set[int]:
    roots = (place(arg)[0] for arg in work.launch.args if isinstance(arg, Operand))
    return {slots[root].loop for root in roots if root in slots}
