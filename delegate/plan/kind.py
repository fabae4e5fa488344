"""The steps of planning that a kind of device may do in its own way (``Target.own``), as a CPU does them."""

from collections.abc import Callable, Mapping

from litecl.delegate.cl_op import Operand
from litecl.delegate.plan.steps import Slot, Steps
from litecl.delegate.plan.values import Planning

Place = Callable[[Operand], tuple[Operand, int]]


def narrowed(planning: Planning, subgraph: int) -> Planning:
    """Adapt the planning to the subgraph of a loop or a branch."""
    return planning


def gathered(steps: Steps, slots: Mapping[Operand, Slot], place: Place) -> Steps:
    """Group a plan's steps. slots, place: the positions of loop variables, and the function that returns an operand's
    memory.
    """
    return steps
