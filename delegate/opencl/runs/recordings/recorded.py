"""Plans, and iterations of loops, whose launches are recorded, because the host decides nothing in them."""

from collections.abc import Sequence
from functools import partial
from math import inf

from litecl.delegate.backend.protocols import AtOnce
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.opencl.errors import FAULTS, RUNNING, typed
from litecl.delegate.opencl.runs.bindings import Bindings
from litecl.delegate.opencl.runs.queued import MARK_AFTER, QueuedLaunches
from litecl.delegate.opencl.runs.recordings.recorder import Recorder, Recording
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.steps import Branch, Loop, Part, Steps, Work, inside
from litecl.delegate.report import Counters, LaunchTime

_MOST_LAUNCHES = 4096  # of a recording; more take longer to run than the host to queue them


class RecordedLaunches:
    """The launches of a queue, recorded for either turn of the states. Raises DelegateError where that is refused."""

    at_once: AtOnce | None = None

    def __init__(self, plan: Plan, queued: QueuedLaunches, device: Device, recorder: Recorder) -> None:
        self._queued = queued
        turns = (False, True) if plan.states else (False,)
        launches = {turned: queued.sequence(partial(queued.queue, turned)) for turned in turns}
        self._buffers = {turned: recorder.record(device, found) for turned, found in launches.items()}
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


class RecordedIterations:
    """Iterations that are recorded, of the loops that the host repeats and of which it decides nothing else.
    Raises DelegateError where the first is refused.
    """

    def __init__(
        self, plan: Plan, queued: QueuedLaunches, device: Device, recorder: Recorder, options: CLOptions
    ) -> None:
        self._device, self._recorder = device, recorder
        self._buffers: dict[tuple[int, int | None, frozenset[int]], tuple[Recording, frozenset[int]]] = {}
        most = options.max_loop_iterations
        # An iteration holds none of these loops: what is being recorded queues nothing.
        repeated = [
            loop for loop, _ in queued.loops(plan.steps, None) if _launches([loop], queued.kernels, most) == inf
        ]
        launches = {
            id(loop): sum(_launches(steps, queued.kernels, most) for steps in inside(loop)) for loop in repeated
        }
        self._loops = {loop for loop, count in launches.items() if count <= _MOST_LAUNCHES}
        for loop, guard in queued.loops(plan.steps, None):
            if self.holds(loop) and not self._buffers:
                self._recorded(queued, loop, guard, frozenset())

    def holds(self, loop: Loop) -> bool:
        """See ``Iterations``."""
        return id(loop) in self._loops

    def enqueue(self, queued: QueuedLaunches, loop: Loop, guard: int | None, swapped: set[int]) -> int:
        """See ``Iterations``."""
        buffer, after = self._recorded(queued, loop, guard, frozenset(swapped))
        buffer.enqueue()
        swapped.clear()
        swapped |= after
        return len(buffer)

    def _recorded(
        self, queued: QueuedLaunches, loop: Loop, guard: int | None, swapped: frozenset[int]
    ) -> tuple[Recording, frozenset[int]]:
        """Return an iteration, and the sets that are swapped after it."""
        key = id(loop), guard, swapped
        if key not in self._buffers:
            after = set(swapped)
            launches = queued.sequence(lambda: queued.iteration(loop, guard, after))
            buffer = self._recorder.record(self._device, launches, overlapping=True)
            self._buffers[key] = buffer, frozenset(after)
        return self._buffers[key]


def is_straight(plan: Plan, queued: QueuedLaunches, options: CLOptions, least: int) -> bool:
    """Return whether all that the host does in a run is to queue launches, not too many and at least so many."""
    return least <= _launches(plan.steps, queued.kernels, options.max_loop_iterations) <= _MOST_LAUNCHES


def _launches(steps: Steps, kernels: Bindings, most: int | None) -> float:
    """Return how many launches the host queues for steps; infinity where it does more than that."""
    return sum((_launches_of(part, kernels, most) for part in steps), 0.0)


def _launches_of(part: Part, kernels: Bindings, most: int | None) -> float:
    if isinstance(part, Work) or kernels.is_group(part):
        return 1
    if not isinstance(part, Loop):
        return isinstance(part, Branch) + sum((_launches(inner, kernels, most) for inner in inside(part)), 0.0)
    if part.trips is None or part.trips >= MARK_AFTER or (most is not None and part.trips > most):
        return inf
    return part.trips * _launches(part.body, kernels, most) if part.trips else 0
