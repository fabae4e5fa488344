"""Launches one by one in an in-order queue: for GPUs, for runtimes that cannot link, and for profiling.

Launches that depend on a predicate are queued too, as kernels that first check a flag on the device. So the host queues
several iterations of a loop ahead, more each time, and reads the flag once for all of them, while the device is busy
with the next ones. If the model determines the trip count, exactly that many iterations are queued without a flag.
Loops that one group runs are a single launch, unless all launches are queued one by one.
"""

import time
from collections.abc import Collection
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.backend.errors import too_many_iterations
from litecl.delegate.backend.protocols import AtOnce
from litecl.delegate.backend.stack import ample, elsewhere, stack
from litecl.delegate.cl_op import Operand
from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.opencl.enqueue import BoundKernel
from litecl.delegate.opencl.errors import FAULTS, RUNNING, typed
from litecl.delegate.opencl.memory.memory import Memory
from litecl.delegate.opencl.runs.bindings import Bindings
from litecl.delegate.opencl.runs.group_kernel import LoopCounts
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.region_tables import BranchFlag, LoopFlag
from litecl.delegate.plan.steps import Branch, Loop, OneGroup, Steps, Work
from litecl.delegate.report import Counters, LaunchTime
from litecl.interpreter import limits
from litecl.interpreter.graph import Array

_MOST_AHEAD = 16  # iterations queued between two checks of the flag
_LONG_S = 0.1  # if queued iterations take longer, fewer are queued, so that Ctrl-C soon takes effect
_MARK_AFTER = 64  # iterations of a counted loop; the host is at most twice as many ahead of the device

_State = tuple[Array, Any]
"""A loop's flag and count, and the event that signals their arrival."""


class QueuedLaunches:
    """A plan's launches, bound to kernels when first needed. In all methods, swapped are the loops whose two sets are
    swapped.
    """

    def __init__(
        self, plan: Plan, device: Device, memory: Memory, most_iterations: int | None, *, one_by_one: bool = True
    ) -> None:
        self._plan, self._device, self._memory, self._most = plan, device, memory, most_iterations
        self._counts = LoopCounts(plan, device, most_iterations)
        self._kernels = Bindings(plan, device, memory, self._counts, one_by_one=one_by_one)
        self.renew = self._kernels.renew
        self._flag = {id(part): 2 * i for i, part in enumerate(plan.control)}
        self._turns, self._turned = plan.turns, False
        self._counters = Counters()
        self._mark: Any = None
        self._events: list[tuple[Work, Any]] = []
        for part, guard in self._guarded(plan.steps, None):
            self._kernels.of(part, guard, ())

    def run(self, counters: Counters) -> None:
        """Queue all launches; wait only for loops' flags."""
        self._counters = counters
        self._mark = None
        self._events = []
        try:
            self._steps(self._plan.steps, None, self._at_first(self._turned))
            self.check(counters)
        except FAULTS as error:
            raise typed(error, RUNNING) from error

    def check(self, counters: Counters) -> None:
        """If iterations are limited, wait for the loops that groups run; raise ModelError if one ran too often."""
        if self._kernels.has_groups:
            self._counts.check(counters)

    @property
    def at_once(self) -> AtOnce | None:
        """Return a function that runs all launches, if queueing a launch runs it and none depends on a predicate."""
        if self._device.needs_threads or self._device.profile or self._plan.control:
            return None
        works = list(self._plan.works)
        launches = [
            [self._kernels.of(w, None, self._at_first(turned)).run_at_once for w in works] for turned in (False, True)
        ]

        def run() -> None:
            if not (stack.ample or ample()):
                elsewhere(run)
                return
            for run_at_once in launches[self._turned]:
                run_at_once()

        return run

    def turn(self, turned: bool) -> None:
        """See ``Execution.turn``."""
        self._turned = turned

    def _at_first(self, turned: bool) -> set[int]:
        """Return the sets that are swapped when a run starts."""
        return {self._turns} if turned else set()

    def loop(self, loop: Loop) -> str:
        """Describe how a loop runs."""
        if loop.number in self._kernels.in_groups:
            return "in one launch, by one group"
        if loop.trips is None:
            return f"queued under a flag on the device, up to {_MOST_AHEAD} iterations ahead"
        return f"queued, exactly {loop.trips} iterations"

    def times(self) -> list[tuple[Work, LaunchTime]]:
        """Return the time of each launch, from its event."""
        times = [(work, event.profile) for work, event in self._events]
        first = min((taken.queued for _, taken in times), default=0)
        return [
            (work, LaunchTime(*(ns * 1e-6 for ns in (t.end - t.start, t.queued - first, t.start - first))))
            for work, t in times
        ]

    def _guarded(self, steps: Steps, guard: int | None) -> list[tuple[Work | OneGroup, int | None]]:
        """Return every launch with the flag that it depends on."""
        guarded: list[tuple[Work | OneGroup, int | None]] = []
        for part in steps:
            if isinstance(part, Work):
                guarded.append((part, guard))
            elif isinstance(part, OneGroup):
                guarded += [(part, guard)] if self._kernels.is_group(part) else self._guarded(part.steps, guard)
            elif isinstance(part, Branch):
                flag = self._flag[id(part)]
                guarded += self._guarded(part.then, flag + BranchFlag.THEN)
                guarded += self._guarded(part.otherwise, flag + BranchFlag.OTHERWISE)
            else:
                inner = self._within(part, guard)
                guarded += [*self._guarded(part.condition, inner), *self._guarded(part.body, inner)]
        return guarded

    def _within(self, loop: Loop, guard: int | None) -> int | None:
        """Return the flag that launches in a loop depend on. guard: the flag that the loop itself depends on."""
        return guard if loop.trips is not None else self._flag[id(loop)] + LoopFlag.GOES_ON

    def _steps(self, steps: Steps, guard: int | None, swapped: set[int]) -> None:
        for part in steps:
            if isinstance(part, Work | OneGroup):
                self._launch(part, guard, swapped)
            elif isinstance(part, Branch):
                self._branch(part, guard, swapped)
            elif part.trips is not None:
                self._counted(part, part.trips, guard, swapped)
            else:
                self._loop(part, guard, swapped)

    def _branch(self, branch: Branch, guard: int | None, swapped: set[int]) -> None:
        flag = self._flag[id(branch)]
        parent = -1 if guard is None else guard
        self._control("decide_branch", (parent, flag), branch.predicate, swapped)
        self._steps(branch.then, flag + BranchFlag.THEN, swapped)
        self._steps(branch.otherwise, flag + BranchFlag.OTHERWISE, swapped)

    def _counted(self, loop: Loop, trips: int, guard: int | None, swapped: set[int]) -> None:
        if self._most is not None and trips > self._most:
            raise too_many_iterations(loop, self._most)
        for iteration in range(trips):
            self._iteration(loop, guard, swapped)
            if iteration % _MARK_AFTER == _MARK_AFTER - 1:
                self._keep_close()
                limits.tick()

    def _iteration(self, loop: Loop, guard: int | None, swapped: set[int]) -> None:
        """Queue an iteration: the condition, unless the trip count is known, and the body."""
        if loop.trips is None:
            self._steps(loop.condition, guard, swapped)
            self._control("decide_loop", (self._flag[id(loop)],), loop.predicate, swapped)
        self._steps(loop.body, guard, swapped)
        swapped ^= {loop.number}

    def _keep_close(self) -> None:
        """Wait until the device has reached the queue's end as of the last call."""
        queue, before = self._device.queue, self._mark
        self._mark = cl.enqueue_marker(queue)
        queue.flush()
        if before is not None:
            before.wait()

    def _loop(self, loop: Loop, guard: int | None, swapped: set[int]) -> None:
        flag, ahead, before = self._flag[id(loop)], 1, loop.number in swapped
        self._control("enter_loop", (-1 if guard is None else guard, flag))
        newest: _State | None = None
        while True:
            start_s = time.perf_counter()
            for _ in range(ahead):
                self._iteration(loop, self._within(loop, guard), swapped)
            state, newest = newest, self._state(flag)
            if state is None:
                continue  # queue more before waiting
            goes_on, count = self._read(state)
            if self._most is not None and count > self._most:
                raise too_many_iterations(loop, self._most)
            if not goes_on:
                break
            limits.tick()
            ahead = min(2 * ahead, _MOST_AHEAD) if time.perf_counter() - start_s < _LONG_S else max(1, ahead // 2)
        swapped.discard(loop.number)
        if before != bool(count % 2):
            swapped.add(loop.number)

    def _state(self, flag: int) -> _State:
        """Queue a copy of a loop's state after all launches queued so far."""
        values = np.empty(2, np.int32)
        copied = cl.enqueue_copy(
            self._device.queue, values, self._kernels.flags, src_offset=4 * flag, is_blocking=False
        )
        self._memory.under_way.append(copied)
        self._device.queue.flush()
        return values, copied

    def _read(self, state: _State) -> tuple[bool, int]:
        """Wait for a copy; return the loop's flag and iteration count."""
        values, copied = state
        copied.wait()
        self._counters.host_syncs += 1
        return bool(values[LoopFlag.GOES_ON]), int(values[LoopFlag.COUNT])

    def _launch(self, part: Work | OneGroup, guard: int | None, swapped: set[int]) -> None:
        if isinstance(part, Work) or self._kernels.is_group(part):
            self._enqueue(part, self._kernels.of(part, guard, swapped))
        else:
            self._steps(part.steps, guard, swapped)

    def _enqueue(self, part: Work | OneGroup, bound: BoundKernel) -> None:
        self._counters.kernel_launches += 1
        if self._device.profile and isinstance(part, Work):
            self._events.append((part, bound.enqueue_with_event()))
        else:
            bound.enqueue()

    def _control(
        self, entry: str, places: tuple[int, ...], predicate: Operand | None = None, swapped: Collection[int] = ()
    ) -> None:
        """Queue one of control.cl's kernels. places: the positions of flags."""
        self._counters.kernel_launches += 1
        self._kernels.control(entry, places, predicate, swapped).enqueue()
