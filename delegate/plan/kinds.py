"""The parts of planning that depend on the kind of device: all others treat CPUs and GPUs alike."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from litecl.delegate.cl_op import Operand, Target
from litecl.delegate.ops.gpu import cells
from litecl.delegate.plan.gpu import one_group
from litecl.delegate.plan.graph import RegionGraph
from litecl.delegate.plan.pipeline import Observer, fused
from litecl.delegate.plan.steps import Slot, Steps
from litecl.delegate.plan.values import Planning
from litecl.delegate.recurrent import lstm_cell


@dataclass(frozen=True)
class Kind:
    """fused: a graph after all passes, with an observer of them. narrowed: the planning of a loop's or a branch's
    subgraph. gathered: a plan's steps, with where the variables of loops lie, and the operand that contains one.
    run_cell: how cells run.
    """

    fused: Callable[[RegionGraph, Observer | None], RegionGraph]
    narrowed: Callable[[Planning, int], Planning]
    gathered: Callable[[Steps, Mapping[Operand, Slot], one_group.Place], Steps]
    run_cell: lstm_cell.Run


_CPU = Kind(fused, lambda planning, subgraph: planning, lambda steps, slots, place: steps, lstm_cell.run)
_GPU = Kind(partial(fused, gpu=True), one_group.narrowed, one_group.gathered, cells.run)


def kind_of(target: Target) -> Kind:
    """Return the kind of a device."""
    return target.either(_CPU, _GPU)
