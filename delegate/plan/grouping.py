"""Groups of launches that run as one: none on a CPU. A GPU has its own (``delegate/gpu/one_group.py``)."""

from collections.abc import Callable, Mapping

from litecl.delegate.cl_op import Operand
from litecl.delegate.plan.request import Request
from litecl.delegate.plan.steps import Slot, Steps

Place = Callable[[Operand], tuple[Operand, int]]


def narrowed(request: Request, subgraph: int) -> Request:
    """Adapt a request to the subgraph of a loop or a branch, so that its launches may be in a group."""
    return request


def gathered(steps: Steps, slots: Mapping[Operand, Slot], place: Place) -> Steps:
    """Return a plan's steps in groups. slots, place: the plan's positions of loop variables, and its function that
    returns an operand's memory.
    """
    return steps
