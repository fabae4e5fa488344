"""The protocols of a back end, which finds devices, opens them and binds plans to them (docs/backends.md).

These protocols are all that code outside of back ends' folders knows about devices. Memory is named by a plan's
operands: no handle of a runtime crosses these protocols. A back end raises every failure as a DelegateError
(OutOfDeviceMemory, KernelBuildError); the CPU then runs the region, with variables as they were before the run.
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
"""Runs a plan, all of it by the time that it returns. It returns None, or what is faster for all later runs."""


@dataclass(frozen=True)
class Faster:
    """A faster function to run a plan. alone: whether it uses no runtime, so that it cannot fail and needs only its
    interpreter's lock. turns: functions that do the same, but with states as after ``Execution.turn`` of False, and of
    True, whatever it was called with; None for a plan without states.
    """

    run: AtOnce
    alone: bool = False
    turns: "tuple[AtOnce, AtOnce] | None" = None


class Memory(Protocol):
    """The device memory of one plan: its arena, laid out by ``plan.arena``, and its constants.

    Constants are uploaded when the memory is made, and the data of every ``Const`` is then released (None). Copies are
    queued: they happen in the order of the calls, among the launches of the execution, and are done when its ``finish``
    returns. A state lies in two sets (``plan.slots``): turned says in which order.
    """

    @property
    def constant_bytes(self) -> int:
        """Return the size of all constants."""

    def view(self, operand: Operand, turned: bool = False) -> Array | None:
        """Return the memory of an operand as a host array; None where the host must copy.

        The host reads and writes it only while nothing is queued.
        """

    def upload(self, operand: Operand, value: Array, turned: bool = False) -> None:
        """Queue a copy from the host, which does not change ``value`` before ``finish``."""

    def download(self, operand: Operand, into: Array, turned: bool = False) -> None:
        """Queue a copy to the host. The operand may be a constant."""

    def copy(self, state: Operand, turned: bool) -> None:
        """Queue a copy of a state (``State.before``), from where it lies otherwise to where it lies so turned."""


@runtime_checkable
class SharesConstants(Protocol):
    """A memory whose constants other plans share: their parts, with the size of each in bytes."""

    @property
    def constant_parts(self) -> Mapping[int, int]: ...


class Execution(Protocol):
    """A plan bound to a device, to be run any number of times, by one thread at a time.

    It shares no queue with other executions. memory: the plan's. manner: how it runs, for the report.
    """

    @property
    def memory(self) -> Memory: ...

    @property
    def manner(self) -> Manner: ...

    def loop(self, loop: Loop) -> str:
        """Describe in a few words how a loop runs."""

    def turn(self, turned: bool) -> None:
        """Let the runs that follow read states in the one set and write them in the other, or the other way round."""

    def run(self, counters: Counters) -> None:
        """Queue every launch of the plan, and count it. Raises ModelError if a loop exceeds its limit of iterations."""

    @property
    def at_once(self) -> AtOnce | None:
        """Return a function to call instead of ``run`` and ``finish``, if a plan can be run so; else None. It raises
        what they raise.
        """

    def finish(self) -> None:
        """Wait until everything queued is done. It must be safe to call it again after an error."""

    def times(self) -> Sequence[tuple[Work, LaunchTime]]:
        """Return the device time of each launch of the last run, if the device was opened for profiling."""


@runtime_checkable
class TakesBuffers(Protocol):
    """The further methods of an execution whose inputs and outputs may be in buffers.

    They are a user's, or made by a device that ``KeepsTensors``.
    """

    def use(self, buffers: Mapping[Operand, Buffer]) -> None:
        """Let these operands, which have memory of their own, lie in these buffers, and all others in the arena again,
        in the runs that follow. Operands that lie apart (``plan.apart``), in no arena, are among them in every run.
        States are turned before every run. Raises DelegateError.
        """

    @property
    def at_once_on_buffers(self) -> bool:
        """Return whether ``at_once`` runs the plan on the buffers in use; else it does so in the arena alone."""

    def fill(self, operand: Operand, buffer: Buffer) -> None:
        """Queue a copy of a buffer to where an operand now lies."""


@runtime_checkable
class KeepsTensors(Protocol):
    """The further methods of a device whose executions take buffers, so that tensors may stay there between runs."""

    def new_buffer(self, size_bytes: int) -> Buffer:
        """Allocate memory, for somebody to write to before it is read. Raises OutOfDeviceMemory."""

    def takes(self, buffer: Buffer) -> bool:
        """Return whether programs of the device can use a buffer: in OpenCL, whether it is of the device's context."""


class Identified(Protocol):
    """The identity of a device.

    name: for people. identity: texts that differ for any other platform, device, driver or processor; they go into the
    names of cached files. needs_runtime: whether it calls a runtime, which threads of a process share, so that a child
    of ``fork`` loses it if one of them was just calling it; regions are run where there is stack enough for one
    (stack.py). needs_threads: whether that runs kernels in its own threads, so that a child of ``fork`` always loses
    it.
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

    target: what lowerings may know. alignment: of offsets in an arena, in bytes. cache_hits: the number of programs
    loaded rather than built.
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
        """Raise DelegateError if the first run of an execution, before anything is queued, is bound to fail."""

    def save(self) -> None:
        """Save what was built for the next process, after the first run of an execution. A failure is not an error."""


@dataclass(frozen=True)
class Description:
    """The description of a device that ``litecl devices`` shows.

    type: "CPU", "GPU", "accelerator" or "other". processor: the name of the processor that its compiler targets, if
    known.
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
    """A device that was found and is not open yet. Equal ones (with equal hashes) are opened once."""

    def describe(self) -> Description:
        """Return its description for people."""

    def target(self, directory: Path | None = None) -> Target:
        """Return what a lowering may know of the device. directory: where facts about it are cached. Raises
        KernelBuildError if the device's compiler cannot build anything.
        """

    def open(self, *, profile: bool, directory: Path | None) -> Device:
        """Open the device. profile: measure launches. directory: where to cache programs; None means nowhere."""


class Backend(Protocol):
    """Finds devices of one kind. All methods may raise DelegateError."""

    def devices(self, directory: Path | None = None) -> Sequence[FoundDevice]:
        """Return every device, always in the same order. directory: where facts about devices are cached."""

    def candidates(
        self,
        demand: Demand,
        tuned: Callable[[FoundDevice], Tuning],
        directory: Path | None = None,
        platform: str = "",
    ) -> Iterator[FoundDevice]:
        """Yield the device for a model, then those to try if it cannot be used.

        directory: where facts about devices are cached. platform: a part of the name of the runtime that a user asks
        for; nothing is yielded where that is another one.
        """

    def of(self, device: object) -> FoundDevice | None:
        """Return the device that an object of the runtime's own library represents, such as pyopencl's Device;
        else None.
        """

    def buffer(self, handle: object) -> Buffer | None:
        """Return the buffer that an object of the runtime's own library represents, such as pyopencl's Buffer; else
        None.
        """
