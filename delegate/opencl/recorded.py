"""A plan whose launches are one command buffer, because the host decides nothing while they run."""

from collections.abc import Sequence
from math import inf

from litecl.delegate.backend.protocols import AtOnce
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.opencl.command_buffer import CommandBuffer, Functions
from litecl.delegate.opencl.device import Device
from litecl.delegate.opencl.errors import FAULTS, RUNNING, typed
from litecl.delegate.opencl.queued import MARK_AFTER, QueuedLaunches
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.steps import Branch, Loop, Part, Steps, Work, inside
from litecl.delegate.report import Counters, LaunchTime

_MOST_LAUNCHES = 4096  # of a command buffer; more take longer to run than the host to queue them


class RecordedLaunches:
    """The launches of a queue, recorded for either turn of the states. Raises DelegateError where that is refused."""

    at_once: AtOnce | None = None

    def __init__(self, plan: Plan, queued: QueuedLaunches, device: Device, functions: Functions) -> None:
        self._queued = queued
        turns = (False, True) if plan.states else (False,)
        self._buffers = {turned: CommandBuffer(device, queued.sequence(turned), functions) for turned in turns}
        self._now = self._buffers[False]
        self.renew, self.loop = queued.renew, queued.loop

    def turn(self, turned: bool) -> None:
        """See ``Execution.turn``."""
        self._now = self._buffers[turned]

    def run(self, counters: Counters) -> None:
        """Queue everything by one call."""
        self._now.enqueue()
        counters.kernel_launches += len(self._now)
        try:
            self._queued.check(counters)
        except FAULTS as error:
            raise typed(error, RUNNING) from error

    def times(self) -> Sequence[tuple[Work, LaunchTime]]:
        """Return no times: where they are taken, launches are queued one by one."""
        return ()


def is_straight(plan: Plan, queued: QueuedLaunches, options: CLOptions) -> bool:
    """Return whether all that the host does in a run is to queue launches, and not too many."""
    return _launches(plan.steps, queued, options.max_loop_iterations) <= _MOST_LAUNCHES


def _launches(steps: Steps, queued: QueuedLaunches, most: int | None) -> float:
    """Return how many launches the host queues for steps; infinity where it does more than that."""
    return sum((_launches_of(part, queued, most) for part in steps), 0.0)


def _launches_of(part: Part, queued: QueuedLaunches, most: int | None) -> float:
    if isinstance(part, Work) or queued.is_group(part):
        return 1
    if not isinstance(part, Loop):
        return isinstance(part, Branch) + sum((_launches(inner, queued, most) for inner in inside(part)), 0.0)
    if part.trips is None or part.trips >= MARK_AFTER or (most is not None and part.trips > most):
        return inf
    return part.trips * _launches(part.body, queued, most) if part.trips else 0
