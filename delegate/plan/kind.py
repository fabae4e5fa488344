"""The parts of planning that differ between CPUs and GPUs."""

from collections.abc import Callable, Mapping

from litecl.delegate.cl_op import Operand
from litecl.delegate.plan.graph import RegionGraph
from litecl.delegate.plan.pipeline import Observer
from litecl.delegate.plan.request import Request
from litecl.delegate.plan.steps import Slot, Steps
from litecl.delegate.recurrent import lstm_cell
from litecl.interpreter.dataclass import dataclass

Place = Callable[[Operand], tuple[Operand, int]]


@dataclass(frozen=True)
class Kind:
    """Planning for a kind of device.

    fused: runs all passes over a graph. narrowed: adapts the request to a subgraph of a loop or a branch. gathered:
    groups a plan's steps, given the slots of loop variables and the function that returns an operand's place. run_cell:
    runs LSTM cells. lends: whether the host reads outputs in place: they must not share the memory of an input or a
    state, which it writes to between runs.
    """

    fused: Callable[[RegionGraph, Observer | None], RegionGraph]
    narrowed: Callable[[Request, int], Request]
    gathered: Callable[[Steps, Mapping[Operand, Slot], Place], Steps]
    run_cell: lstm_cell.Run
    lends: bool
