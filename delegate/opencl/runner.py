"""A plan bound to a device: memory, kernels with their arguments set once, and the run itself.

A region has all of this to itself, its queue too; it shares the context and the built programs with others. So one
thread at a time may run it, while others run other regions. What waits for the device lets other threads run meanwhile.
"""

import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
import pyopencl as cl

from litecl.delegate.cl_op import Operand
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.opencl import fork
from litecl.delegate.opencl.device import Device
from litecl.delegate.opencl.enqueue import finisher, is_short
from litecl.delegate.opencl.errors import typed_errors
from litecl.delegate.opencl.memory import Memory
from litecl.delegate.opencl.queued import QueuedLaunches, place, queued_as
from litecl.delegate.opencl.region_kernel import RegionKernel
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan.steps import Loop, Steps, Work, control_of
from litecl.delegate.report import Counters, KernelRow, Manner, summary
from litecl.interpreter import limits
from litecl.interpreter.errors import DelegateError, KernelBuildError
from litecl.interpreter.graph import Array
from litecl.interpreter.run.variables import Variables

# Fewer launches than this are not worth a program of their own.
_REGION_LAUNCHES = 4
# Iterations of a loop that one kernel may run although the time of an invoke is limited.
_SURELY_SHORT = 64

_RUNNING = typed_errors("running a region")


class DeviceState:
    """A variable tensor whose newest value lies in a device buffer. view: the same memory where the host sees it."""

    def __init__(self, device: Device, operand: Operand, buffer: Any, view: Array | None) -> None:
        self._device, self._spec, self._buffer, self._view = device, operand.spec, buffer, view

    def fetch(self) -> Array:
        """Read the newest value, which exists nowhere else: a read that fails is tried once more.

        Raises DelegateError, after which the value is still where it was, or was lost with the device.
        """
        if self._view is not None:
            return self._view.copy()
        if fork.lost(self._device.needs_threads):
            raise fork.lost_error(self._device.name)
        try:
            return self._read()
        except DelegateError:
            return self._read()

    def copy_to(self, other: "DeviceState") -> None:
        """Copy the value into the memory of another holder of the same variable."""
        if self._view is not None and other._view is not None:
            other._view[...] = self._view
        else:
            cl.enqueue_copy(self._device.queue, other._buffer, self._buffer)

    def write(self, value: Array) -> None:
        """Copy a value of the host's into the memory."""
        if self._view is not None:
            self._view[...] = value
        else:
            cl.enqueue_copy(self._device.queue, self._buffer, np.ascontiguousarray(value))

    def _read(self) -> Array:
        value = np.empty(self._spec.static_shape, self._spec.dtype)
        with typed_errors(f"reading variable {self._spec.name!r}"):
            cl.enqueue_copy(self._device.queue, value, self._buffer, is_blocking=True)
        return value


class Execution(Protocol):
    """A way to run a plan's steps. ``kernel_loops`` is whether a loop runs in one kernel, else it is queued."""

    kernel_loops: bool

    def run(self, counters: Counters) -> None:
        """Queues everything. Raises ModelError where a loop runs more often than it may."""

    def events(self) -> list[tuple[Work, Any]]:
        """The events of the last run, where the queue profiles."""


def _may_be_long(steps: Steps) -> bool:
    """Return whether steps hold a loop whose iterations are unknown or many."""
    return any(loop.trips is None or loop.trips > _SURELY_SHORT for loop in control_of(steps) if isinstance(loop, Loop))


def _why_queued(plan: Plan, device: Device, options: CLOptions) -> str:
    """Return why launches are queued one by one; nothing where one kernel is to run them all."""
    reasons = (
        (device.target.kind != "cpu", "the device is not a CPU"),
        (device.profile, "profile=True"),
        (options.queue_loops, "queue_loops=True"),
        (limits.timed() and _may_be_long(plan.steps), "time_limit, which no kernel hears of"),
        (len(plan.works) < _REGION_LAUNCHES and not plan.predicates, f"fewer than {_REGION_LAUNCHES} launches"),
    )
    return next((reason for holds, reason in reasons if holds), "")


def _execution(plan: Plan, device: Device, memory: Memory, options: CLOptions) -> tuple[Execution, Manner]:
    """Bind a plan to one kernel, or to a queue where that is better or the runtime cannot link (not if ``strict``)."""
    reason, fault = _why_queued(plan, device, options), ""
    if not reason:
        try:
            return RegionKernel(plan, device, memory, options.max_loop_iterations), Manner("one kernel")
        except KernelBuildError as error:  # a kernel that does not build fails below too
            if options.strict:
                raise
            reason, fault = "it could not be linked", summary(error)
    return QueuedLaunches(plan, device, memory, options.max_loop_iterations), Manner("queued", reason, fault)


class Program:
    """One region on one device.

    Building it allocates memory, uploads constants and builds kernels; raises KernelBuildError or OutOfDeviceMemory.
    lock: held while a thread builds or runs it.
    """

    def __init__(self, plan: Plan, device: Device, partition: int, options: CLOptions) -> None:
        self.plan = plan
        self.partition = partition
        self.lock: Any = threading.Lock()
        self.needs_threads = device.needs_threads
        self._under_way: list[Any] = []  # events of copies
        fork.register(self)
        with self.lock, typed_errors("preparing a region"):
            self._device = device = device.with_own_queue()
            self._queue = device.queue
            alone = not self.needs_threads and not plan.loops
            self._finish = finisher(self._queue, short=alone and is_short(plan.flops))
            memory = Memory(plan, device)
            self._execution, self.manner = _execution(plan, device, memory, options)
            self._bind(memory)
        self.constant_bytes = memory.constant_bytes
        self._saved = False

    def _bind(self, memory: Memory) -> None:
        """Find where inputs, outputs and states lie."""
        plan = self.plan
        self._views = [memory.view(operand) for operand in plan.inputs]
        self._buffers = [memory.buffer(operand) for operand in plan.inputs]
        self._results = [memory.view(operand) for operand in plan.outputs]
        self._hidden = [
            (i, memory.argument(operand)) for i, operand in enumerate(plan.outputs) if self._results[i] is None
        ]
        self._kept = [i for i, view in enumerate(self._results) if view is not None]
        self._old, self._new = (
            [DeviceState(self._device, operand, memory.buffer(operand), memory.view(operand)) for operand in operands]
            for operands in ([s.before for s in plan.states], [s.after for s in plan.states])
        )

    def run(
        self, inputs: Sequence[Array], variables: Variables, keys: Sequence[tuple[int, int]], counters: Counters
    ) -> list[Array]:
        """Runs the region and returns its outputs.

        keys: of the plan's states, in order, in the state store. Raises DelegateError, with variables as before.
        """
        with self.lock, _RUNNING:
            outputs = self._run(inputs, variables, keys, counters)
        if not self._saved:
            self._device.programs.save()
            self._saved = True
        if keys:  # last of all: an interrupt before this leaves all states as they were
            variables.update(dict(zip(keys, self._new, strict=True)))
        return outputs

    def _run(
        self, inputs: Sequence[Array], variables: Variables, keys: Sequence[tuple[int, int]], counters: Counters
    ) -> list[Array]:
        try:
            if not self._saved:
                self._device.programs.check_room()
            self._upload(inputs, counters)
            if keys:
                self._restore(variables, keys, counters)
            self._execution.run(counters)
            return self._download(counters)
        except BaseException:
            self._settle()
            raise

    def _settle(self) -> None:
        """Wait for what was queued before an error or an interrupt: its memory is about to be used again."""
        for _ in range(2):  # waiting, too, may be what failed
            with suppress(cl.Error):
                self._queue.finish()
                break
        self._under_way.clear()

    def input_memory(self) -> dict[int, Array]:
        """Where the region reads its inputs, by tensor, as far as the host sees it: what lies there is not copied."""
        views = zip(self.plan.region.inputs, self._views, strict=True)
        return {tensor: view for tensor, view in views if view is not None}

    def lend(self, tensors: Collection[int]) -> None:
        """Outputs of which ``run`` may return the device's own memory, which the next run overwrites."""
        written_between_runs = {self.plan.root(o) for o in self.plan.inputs}
        written_between_runs |= {operand for state in self.plan.states for operand in (state.before, state.after)}
        outputs = zip(self.plan.region.outputs, self.plan.outputs, self._results, strict=True)
        self._kept = [
            i
            for i, (tensor, operand, view) in enumerate(outputs)
            if view is not None and (tensor not in tensors or self.plan.root(operand) in written_between_runs)
        ]

    def loops(self) -> tuple[str, ...]:
        """How each loop runs, in words."""
        how = "in the region's kernel" if self._execution.kernel_loops else None
        rows = [(loop.subgraph, loop.node, how or queued_as(loop)) for loop in self.plan.loops]
        rows += [(*lstm, "as one LSTM") for lstm in self.plan.lstms]
        return tuple(f"{place(subgraph, node)}: {way}" for subgraph, node, way in sorted(rows))

    def kernel_rows(self) -> list[KernelRow]:
        """Device times of the last run, from its events."""
        with typed_errors("reading the times of launches"):
            times = [(work, event.profile) for work, event in self._execution.events()]
            first = min((profile.queued for _, profile in times), default=0)
            return [
                KernelRow(
                    self.partition,
                    work.node,
                    work.launch.kernel,
                    work.launch.entry,
                    (profile.end - profile.start) * 1e-6,
                    work.launch.flops,
                    work.subgraph,
                    (profile.queued - first) * 1e-6,
                    (profile.start - first) * 1e-6,
                )
                for work, profile in times
            ]

    def _upload(self, inputs: Sequence[Array], counters: Counters) -> None:
        for i, value in enumerate(inputs):
            view = self._views[i]
            if view is value:
                continue
            if view is None:
                self._copy(self._buffers[i], np.ascontiguousarray(value))
            else:  # nothing is under way: every run ends with all of its commands finished
                view[...] = value
            counters.bytes_to_device += value.nbytes

    def _restore(self, variables: Variables, keys: Sequence[tuple[int, int]], counters: Counters) -> None:
        """Put every state where launches read it. They write it elsewhere, so one that fails leaves the old state."""
        for i, key in enumerate(keys):
            if variables.held_by(key, self._new[i]):
                self._new[i].copy_to(self._old[i])
            elif not variables.held_by(key, self._old[i]):
                value = variables.get(key, self.plan.states[i].before.spec)
                self._old[i].write(value)
                counters.bytes_to_device += value.nbytes
        moved = {key: self._old[i] for i, key in enumerate(keys) if variables.held_by(key, self._new[i])}
        variables.update(moved)

    def _copy(self, to: Any, source: Any) -> None:
        """Queue a copy, whose event is kept: to drop it is to wait for it with Python's lock held."""
        self._under_way.append(cl.enqueue_copy(self._queue, to, source, is_blocking=False))

    def _download(self, counters: Counters) -> list[Array]:
        """The outputs, once everything is done: copies, but for what is lent."""
        outputs: list[Any] = self._results.copy()
        for i, buffer in self._hidden:
            operand = self.plan.outputs[i]
            outputs[i] = np.empty(operand.shape, operand.spec.dtype)
            self._copy(outputs[i], buffer)
            counters.bytes_to_host += outputs[i].nbytes
        self._finish()
        counters.host_syncs += 1
        if self._under_way:
            self._under_way.clear()
        for i in self._kept:
            outputs[i] = outputs[i].copy()
            counters.bytes_to_host += outputs[i].nbytes
        return outputs
