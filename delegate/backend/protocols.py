"""The protocols of a back end, which finds devices, opens them and binds plans to them (docs/backends.md).

Code outside the back ends' folders uses devices only through these protocols. A plan's operands name memory: no runtime
handle crosses a protocol. A back end raises every failure as a DelegateError (OutOfDeviceMemory, KernelBuildError); the
CPU then runs the region, with variables as they were before the run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from litecl.delegate.cl_op import Operand, Target
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.steps import Loop, Work
from litecl.delegate.report import Counters, LaunchTime, Manner
from litecl.delegate.tuning import Demand, Tuning
from litecl.interpreter.buffers import Buffer
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array

AtOnce = Callable[[], "Faster | None"]
"""Runs a plan to completion. Returns None, or a faster function for all later runs."""


@dataclass(frozen=True)
class Faster:
    """A faster function to run a plan. alone: whether it uses no runtime, so that it cannot fail and needs only its
    interpreter's lock. turns: variants with states as after ``Execution.turn(False)`` and ``Execution.turn(True)``,
    regardless of the last call to it; None for a plan without states.
    """

    run: AtOnce
    alone: bool = False
    turns: "tuple[AtOnce, AtOnce] | None" = None


class Memory(Protocol):
    """The device memory of one plan: its arena, laid out by ``plan.arena``, and its constants.

    Creating it uploads the constants and releases the data of every ``Const`` (None). Copies are queued: they run in
    call order, among the execution's launches, and are complete when its ``finish`` returns. A state lies in two sets
    (``plan.slots``): turned says in which order.
    """

    @property
    def constant_bytes(self) -> int:
        """Return the size of all constants, in bytes."""

    def view(self, operand: Operand, turned: bool = False) -> Array | None:
        """Return an operand's memory as a host array; None if the host must copy instead.

        The host accesses it only while nothing is queued.
        """

    def upload(self, operand: Operand, value: Array, turned: bool = False) -> None:
        """Queue a copy from the host. The caller must not change ``value`` before ``finish``."""

    def download(self, operand: Operand, into: Array, turned: bool = False) -> None:
        """Queue a copy to the host. The operand may be a constant."""

    def copy(self, state: Operand, turned: bool) -> None:
        """Queue a copy of a state (``State.before``) to its place for ``turned``, from its place for the other turn."""


@runtime_checkable
class SharesConstants(Protocol):
    """A memory that shares constants with other plans. constant_parts: the size of each part, in bytes."""

    @property
    def constant_parts(self) -> Mapping[int, int]: ...


class Execution(Protocol):
    """A plan bound to a device. Runs any number of times, in one thread at a time.

    Shares no queue with other executions. memory: the plan's. manner: how it runs, for the report.
    """

    @property
    def memory(self) -> Memory: ...

    @property
    def manner(self) -> Manner: ...

    def loop(self, loop: Loop) -> str:
        """Describe briefly how a loop runs."""

    def turn(self, turned: bool) -> None:
        """Let following runs read states from the first set (False) or the second (True), and write the other."""

    def run(self, counters: Counters) -> None:
        """Queue and count every launch of the plan. Raises ModelError if a loop exceeds its limit of iterations."""

    @property
    def at_once(self) -> AtOnce | None:
        """Return a function that replaces ``run`` and ``finish``, and raises the same errors; None if the plan can't
        run that way.
        """

    def finish(self) -> None:
        """Wait until everything queued is done. Must be safe to call again after an error."""

    def times(self) -> Sequence[tuple[Work, LaunchTime]]:
        """Return the device time of each launch of the last run, if the device was opened for profiling."""


@runtime_checkable
class TakesBuffers(Protocol):
    """Further methods of an execution whose inputs and outputs may lie in buffers.

    The buffers are a user's, or from a device that ``KeepsTensors``.
    """

    def use(self, buffers: Mapping[Operand, Buffer]) -> None:
        """Place these operands, which have memory of their own, in buffers for the following runs; all others lie in
        the arena again. Always includes the operands apart (``plan.apart``), which the arena doesn't hold. States are
        turned before every run. Raises DelegateError.
        """

    @property
    def at_once_on_buffers(self) -> bool:
        """Return whether ``at_once`` uses the current buffers; if not, it works only in the arena."""

    def fill(self, operand: Operand, buffer: Buffer) -> None:
        """Queue a copy of a buffer to an operand's current memory."""


@runtime_checkable
class KeepsTensors(Protocol):
    """Further methods of a device whose executions take buffers, so that tensors may stay there between runs."""

    def new_buffer(self, size_bytes: int) -> Buffer:
        """Allocate uninitialized memory. Raises OutOfDeviceMemory."""

    def takes(self, buffer: Buffer) -> bool:
        """Return whether the device's programs can use a buffer: in OpenCL, whether it is in the device's context."""


class Identified(Protocol):
    """The identity of a device.

    name: for people. identity: texts that differ for any other platform, device, driver or processor; they go into the
    names of cached files. needs_runtime: whether it calls a runtime, which a process's threads share, so that a child
    of ``fork`` loses the device if a thread was inside the runtime; its regions run on an ample stack (stack.py).
    needs_threads: whether the runtime runs kernels in its own threads, so that a child of ``fork`` always loses the
    device.
    """

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> Sequence[str]: ...

    @property
    def needs_runtime(self) -> bool: ...

    @property
    def needs_threads(self) -> bool: ...


class Device(Identified, Protocol):
    """An open device, which regions and models share.

    target: the properties that lowerings may use. alignment: of offsets in an arena, in bytes. cache_hits: the number
    of programs loaded rather than built.
    """

    @property
    def target(self) -> Target: ...

    @property
    def alignment(self) -> int: ...

    @property
    def cache_hits(self) -> int: ...

    def bind(self, plan: Plan, options: CLOptions) -> Execution:
        """Allocate the memory of a plan, upload its constants and build its kernels.

        Raises KernelBuildError and OutOfDeviceMemory; the CPU then runs the region.
        """

    def check(self) -> None:
        """Raise DelegateError if the first run of an execution is bound to fail; called before it queues anything."""

    def save(self) -> None:
        """Save built programs for the next process; called after an execution's first run. Failing is not an error."""


@runtime_checkable
class KeepsPlans(Device, Protocol):
    """A device whose plans follow from the model, the options, its target and its identity alone."""

    @property
    def plans(self) -> Path | None:
        """Return the folder for its plans; None keeps none."""


@dataclass(frozen=True)
class Description:
    """The description of a device that ``litecl devices`` shows.

    type: "CPU", "GPU", "accelerator" or "other". processor: the processor that its compiler targets, if known.
    version, platform_version: as the device and its platform report them.
    """

    platform: str
    driver: str
    type: str
    compute_units: int
    memory_bytes: int
    max_buffer_bytes: int
    processor: str | None = None
    version: str = ""
    platform_version: str = ""


@runtime_checkable
class FoundDevice(Identified, Protocol):
    """A device that isn't open yet. litecl opens equal ones (with equal hashes) once."""

    def describe(self) -> Description:
        """Return its description for people."""

    def target(self, directory: Path | None = None) -> Target:
        """Return the device properties that a lowering may use. directory: the cache of device facts. Raises
        KernelBuildError if the device's compiler cannot build anything.
        """

    def open(self, *, profile: bool, directory: Path | None) -> Device:
        """Open the device. profile: measure launches. directory: where to cache programs; None means nowhere."""


class Backend(Protocol):
    """Finds devices of one kind. All methods may raise DelegateError."""

    def devices(self, directory: Path | None = None) -> Sequence[FoundDevice]:
        """Return every device, always in the same order. directory: the cache of device facts."""

    def candidates(
        self,
        demand: Demand,
        tuned: Callable[[FoundDevice], Tuning],
        directory: Path | None = None,
        platform: str = "",
    ) -> Iterator[FoundDevice]:
        """Yield the device for a model, then the fallbacks.

        directory: the cache of device facts. platform: part of the name of the runtime that the user asks for; yield
        nothing for any other.
        """

    def of(self, device: object) -> FoundDevice | None:
        """Return the device that an object of the runtime's own library represents, such as pyopencl's Device;
        else None.
        """

    def buffer(self, handle: object) -> Buffer | None:
        """Return the buffer that an object of the runtime's own library represents, such as pyopencl's Buffer; else
        None.
        """
