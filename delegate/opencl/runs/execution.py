"""A plan bound to an OpenCL device: its memory, its queue, and its launches, as one kernel or queued one by one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

from litecl.delegate.backend.protocols import AtOnce
from litecl.delegate.cl_op import Operand
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.opencl.devices.device import Device
from litecl.delegate.opencl.enqueue import finisher
from litecl.delegate.opencl.errors import typed_errors
from litecl.delegate.opencl.memory.memory import Memory
from litecl.delegate.opencl.memory.user_buffer import CLUserBuffer
from litecl.delegate.opencl.runs.queued import QueuedLaunches
from litecl.delegate.opencl.runs.region_kernel import RegionKernel
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.steps import Loop, Work, groups_of, may_be_long
from litecl.delegate.report import Counters, LaunchTime, Manner, summary
from litecl.interpreter import limits
from litecl.interpreter.buffers import Buffer
from litecl.interpreter.errors import KernelBuildError

# With fewer launches, a program for the region pays only if it has control flow.
_REGION_LAUNCHES = 4
_NOT_A_CPU = "the device is not a CPU"


class Launches(Protocol):
    """A way to run a plan's steps; see ``Execution`` in ``delegate/backend/protocols.py``."""

    def turn(self, turned: bool) -> None: ...

    def renew(self) -> None: ...

    def run(self, counters: Counters) -> None: ...

    @property
    def at_once(self) -> AtOnce | None: ...

    def loop(self, loop: Loop) -> str: ...

    def times(self) -> Sequence[tuple[Work, LaunchTime]]: ...


class CLExecution:
    """A plan with its own memory and queue. ``run`` and others are bound to the runner's methods, to save a call.

    memory: with the buffers in use. Every set of operands in buffers rather than the arena has its own runner, made
    when first used.
    """

    at_once_on_buffers = False
    run: Callable[[Counters], None]
    at_once: AtOnce | None
    finish: Callable[[], None]
    turn: Callable[[bool], None]

    def __init__(self, plan: Plan, device: Device, options: CLOptions) -> None:
        with typed_errors("preparing a region"):
            own = device.with_own_queue()
            self.memory = Memory(plan, own)
            self._launches, self.manner = _launches(plan, own, self.memory, options)
            self.run, self.at_once, self.turn = self._launches.run, self._launches.at_once, self._launches.turn
            self._made_of = plan, own, options
            self._ways = {frozenset[Operand](): (self._launches, self.memory)}
            self.finish = finisher(own.queue, self.memory.under_way, self.memory.landed, short=not device.needs_threads)

    def use(self, buffers: Mapping[Operand, Buffer]) -> None:
        """See ``TakesBuffers``."""
        plan, device, options = self._made_of
        own = {root: cast(CLUserBuffer, buffer) for root, buffer in buffers.items()}
        with typed_errors("running a region on buffers"):
            if (key := frozenset(own) - plan.apart) not in self._ways:
                memory = self._ways[frozenset()][1].with_own(own)
                self._ways[key] = _launches(plan, device, memory, options)[0], memory
            self._launches, self.memory = self._ways[key]
            if own and self.memory.users != own:
                self.memory.use(own)
                self._launches.renew()
        self.run, self.turn = self._launches.run, self._launches.turn

    def fill(self, operand: Operand, buffer: Buffer) -> None:
        """See ``TakesBuffers``."""
        self.memory.fill(operand, cast(CLUserBuffer, buffer))

    def loop(self, loop: Loop) -> str:
        """Describe how a loop runs."""
        return self._launches.loop(loop)

    def times(self) -> Sequence[tuple[Work, LaunchTime]]:
        """Return the launch times from events."""
        with typed_errors("reading the times of launches"):
            return self._launches.times()


def _launches(plan: Plan, device: Device, memory: Memory, options: CLOptions) -> tuple[Launches, Manner]:
    """Bind a plan to one kernel, or to a queue if that is better or linking fails (an error if ``strict``)."""
    return (_on_cpu if device.target.memory == "host" else _on_gpu)(plan, device, memory, options)


def _on_cpu(plan: Plan, device: Device, memory: Memory, options: CLOptions) -> tuple[Launches, Manner]:
    manner = Manner("queued", _why_queued(plan, device, options, shares_memory=_shares_memory(plan)))
    if not manner.reason:
        try:
            return RegionKernel(plan, device, memory, options.max_loop_iterations), Manner("one kernel")
        except KernelBuildError as error:
            manner = _unlinked(error, options)
    return QueuedLaunches(plan, device, memory, options.max_loop_iterations), manner


def _on_gpu(plan: Plan, device: Device, memory: Memory, options: CLOptions) -> tuple[Launches, Manner]:
    """Bind a plan to a queue, with one kernel for each group of small loops."""
    has_groups, most = next(groups_of(plan.steps), None) is not None, options.max_loop_iterations
    manner = Manner("queued", _why_queued(plan, device, options) if has_groups else _NOT_A_CPU)
    if not manner.reason:
        try:
            return QueuedLaunches(plan, device, memory, most, one_by_one=False), Manner("queued", _NOT_A_CPU)
        except KernelBuildError as error:
            manner = _unlinked(error, options)
    return QueuedLaunches(plan, device, memory, most), manner


def _shares_memory(plan: Plan) -> bool:
    """Return whether a launch needs barriers or local memory, which a CPU's region kernel lacks."""
    return any(work.launch.waits or work.launch.local_bytes for work in plan.works)


def _why_queued(plan: Plan, device: Device, options: CLOptions, *, shares_memory: bool = False) -> str:
    """Return why launches are queued one by one; empty if a kernel may run all of them or those of small loops."""
    reasons = (
        (device.profile, "profile=True, and launches have times of their own"),
        (options.queue_loops, "queue_loops=True"),
        (limits.timed() and may_be_long(plan.steps), "time_limit does not interrupt a running kernel"),
        (shares_memory, "work-items share local memory"),
        (len(plan.works) < _REGION_LAUNCHES and not plan.predicates, f"fewer than {_REGION_LAUNCHES} launches"),
    )
    return next((reason for holds, reason in reasons if holds), "")


def _unlinked(error: KernelBuildError, options: CLOptions) -> Manner:
    """Return the manner of a plan that could not be linked. Raises the error if ``strict``."""
    if options.strict:
        raise error
    return Manner("queued", "it could not be linked", summary(error))  # if a kernel doesn't build, queueing fails too
