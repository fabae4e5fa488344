"""The parts of planning that depend on the kind of device: all others treat CPUs and GPUs alike."""

from collections.abc import Callable, Mapping

from litecl.delegate.cl_op import Operand
from litecl.delegate.plan.graph import RegionGraph
from litecl.delegate.plan.pipeline import Observer
from litecl.delegate.plan.steps import Slot, Steps
from litecl.delegate.plan.values import Planning
from litecl.delegate.recurrent import lstm_cell
from litecl.interpreter.dataclass import dataclass

Place = Callable[[Operand], tuple[Operand, int]]


@dataclass(frozen=True)
class Kind:
    """fused: a graph after all passes, with an observer of them. narrowed: the planning of a loop's or a branch's
    subgraph. gathered: a plan's steps, with where the variables of loops lie, and the operand that contains one.
    run_cell: how cells run. lends: whether the host reads outputs where they are, so that they may not lie in the
    memory of an input or a state, which it writes to between runs.
    """

    fused: Callable[[RegionGraph, Observer | None], RegionGraph]
    narrowed: Callable[[Planning, int], Planning]
    gathered: Callable[[Steps, Mapping[Operand, Slot], Place], Steps]
    run_cell: lstm_cell.Run
    lends: bool
