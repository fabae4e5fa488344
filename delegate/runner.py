"""A plan bound to a device: memory, kernels with their arguments set once, and the run itself.

A region has all of this to itself, its queue too; it shares the context and the built programs with others. So one
thread at a time may run it, while others run other regions. What waits for the device lets other threads run meanwhile.
"""

import threading
from collections.abc import Collection, Sequence
from typing import Any, Protocol

import numpy as np
import pyopencl as cl

from litecl.delegate import fork
from litecl.delegate.device import Device, typed_errors
from litecl.delegate.device_memory import Memory
from litecl.delegate.device_states import DeviceState
from litecl.delegate.enqueue import BoundKernel
from litecl.delegate.options import CLOptions
from litecl.delegate.plan import Plan
from litecl.delegate.queued import QueuedLaunches, place, queued_as, too_many_iterations
from litecl.delegate.region_program import region_program
from litecl.delegate.report import Counters, KernelRow
from litecl.delegate.steps import Work
from litecl.interpreter.errors import DelegateError, KernelBuildError, ModelError
from litecl.interpreter.executor import Variables
from litecl.interpreter.graph import Array

# Fewer launches than this are not worth a program of their own.
_REGION_LAUNCHES = 4

# Work-groups offered for every thread: PoCL hands them out in runs, and every thread must get one.
_GROUPS_PER_UNIT = 4
_LINE_BYTES = 64  # of a counter that one worker writes, so that it does not disturb another
_LAUNCH_LINES = 5  # of what a launch within a loop looks like to those that help
_RUNNING = typed_errors("running a region")


class Execution(Protocol):
    """A way to run a plan's steps. ``kernel_loops`` is whether a loop runs in one kernel, else it is queued."""

    kernel_loops: bool

    def run(self, counters: Counters) -> None:
        """Queues everything. Raises ModelError where a loop runs more often than it may."""

    def events(self) -> list[tuple[Work, Any]]:
        """The events of the last run, where the queue profiles."""


class RegionKernel:
    """All launches in one kernel, whose workers walk through them (region.cl)."""

    kernel_loops = True

    def __init__(self, plan: Plan, device: Device, memory: Memory, most_iterations: int | None) -> None:
        program = region_program(plan.steps, memory.region_address, most_iterations)
        if program is None:
            raise KernelBuildError("a launch has arguments that region.cl cannot pass")
        self._plan, self._device, self._most = plan, device, most_iterations
        units = device.target.compute_units
        kernel = device.programs.region_kernel(program, solo=units == 1)
        self._groups = 1 if units == 1 else units * _GROUPS_PER_UNIT
        self._progress_bytes = _LINE_BYTES * (_LAUNCH_LINES + (self._groups + 1) * program.places)
        self._progress = device.buffer(self._progress_bytes)
        self._counts = np.zeros(1 + len(plan.loops), np.int32)
        tables = [self._upload(table) for table in (program.works, program.args, _shifts(plan), self._counts)]
        self._counts_buffer = tables[-1]
        arguments = [memory.arena, memory.constants, *tables, self._progress, np.int32(len(program.works))]
        self._kernel = BoundKernel(device.queue, kernel, arguments, (self._groups,), (1,))

    def run(self, counters: Counters) -> None:
        """One kernel, after its counters are cleared."""
        if self._groups > 1:
            cl.enqueue_fill_buffer(self._device.queue, self._progress, np.int32(0), 0, self._progress_bytes)
        self._kernel.enqueue()
        counters.kernel_launches += 1
        if self._most is not None and self._plan.loops:
            self._check(self._most, counters)

    def events(self) -> list[tuple[Work, Any]]:
        """None: a region in one kernel has no times of its parts."""
        return []

    def _check(self, most: int, counters: Counters) -> None:
        """Reads whether a loop ran too often."""
        queue = self._device.queue
        cl.enqueue_copy(queue, self._counts, self._counts_buffer, is_blocking=True)
        counters.host_syncs += 1
        if self._counts[0]:
            loop = self._plan.loops[self._counts[0] - 1]
            cl.enqueue_fill_buffer(queue, self._counts_buffer, np.int32(0), 0, self._counts.nbytes)
            raise too_many_iterations(loop, most)

    def _upload(self, table: Array) -> Any:
        buffer = self._device.buffer(max(8, table.nbytes))
        if table.size:
            cl.enqueue_copy(self._device.queue, buffer, table)
        return buffer


def _shifts(plan: Plan) -> Array:
    """region.cl's shifts at the beginning: every loop reads its first set."""
    shifts = np.zeros(2 + 2 * len(plan.loops), np.uint64)
    for slot in plan.slots.values():
        shifts[3 + 2 * slot.loop] = slot.set_bytes
    return shifts


def _execution(plan: Plan, device: Device, memory: Memory, options: CLOptions) -> Execution:
    """One kernel on a CPU, unless times of every launch are wanted or the runtime cannot link."""
    worth_it = len(plan.works) >= _REGION_LAUNCHES or bool(plan.predicates)
    if device.target.kind == "cpu" and not device.profile and worth_it and not options.queue_loops:
        try:
            return RegionKernel(plan, device, memory, options.max_loop_iterations)
        except KernelBuildError:
            pass  # a kernel that does not build fails below too, and says so
    return QueuedLaunches(plan, device, memory, options.max_loop_iterations)


class Program:
    """One region on one device.

    Building it allocates memory, uploads constants and builds kernels; raises KernelBuildError or OutOfDeviceMemory.
    lock: held while a thread builds or runs it, and for good in a process that has lost the device.
    """

    def __init__(self, plan: Plan, device: Device, partition: int, options: CLOptions) -> None:
        self.plan = plan
        self.partition = partition
        self.lock, self.needs_threads = threading.Lock(), device.needs_threads
        fork.register(self)
        with self.lock, typed_errors("preparing a region"):
            self._device = device = device.with_own_queue()
            self._queue = device.queue
            memory = Memory(plan, device)
            self._execution = _execution(plan, device, memory, options)
        self.constant_bytes = memory.constant_bytes
        self._views = [memory.view(operand) for operand in plan.inputs]
        self._buffers = [memory.buffer(operand) for operand in plan.inputs]
        self._results = [memory.view(operand) for operand in plan.outputs]
        self._hidden = [
            (i, memory.argument(operand)) for i, operand in enumerate(plan.outputs) if self._results[i] is None
        ]
        self._kept = [i for i, view in enumerate(self._results) if view is not None]
        self._states = [DeviceState(device, memory, state) for state in plan.states]
        self._under_way: list[Any] = []  # events of copies
        self._saved = False

    def run(
        self, inputs: Sequence[Array], variables: Variables, keys: Sequence[tuple[int, int]], counters: Counters
    ) -> list[Array]:
        """Runs the region and returns its outputs.

        keys: of the plan's states, in order, in the state store. Raises DelegateError, with variables as before.
        """
        if not self.lock.acquire(False):
            raise self._unavailable()
        try:
            with _RUNNING:
                self._upload(inputs, variables, keys, counters)
                self._execute(counters)
                outputs = self._download(counters)
        finally:
            self.lock.release()
        if keys:
            for state, key in zip(self._states, keys, strict=True):
                variables.set(key, state)
        if not self._saved:
            self._device.programs.save()
            self._saved = True
        return outputs

    def _unavailable(self) -> DelegateError | ModelError:
        if fork.lost(self.needs_threads):
            return fork.lost_error(self._device.name)
        return ModelError("this interpreter is running in another thread: make one for every thread")

    def _execute(self, counters: Counters) -> None:
        """Queues everything. What was queued before an error or an interrupt is over before the next run."""
        try:
            self._execution.run(counters)
        except BaseException:
            self._queue.finish()
            raise

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
            i for i, (tensor, operand, view) in enumerate(outputs)
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
        return [
            KernelRow(
                self.partition, work.node, work.launch.kernel, work.launch.entry,
                (event.profile.end - event.profile.start) * 1e-6, work.launch.flops, work.subgraph,
            )
            for work, event in self._execution.events()
        ]

    def _upload(
        self, inputs: Sequence[Array], variables: Variables, keys: Sequence[tuple[int, int]], counters: Counters
    ) -> None:
        for i, value in enumerate(inputs):
            if value is not self._views[i]:
                self._write(self._views[i], self._buffers[i], value, counters)
        if keys:
            for state, key in zip(self._states, keys, strict=True):
                if not variables.held_by(key, state):
                    self._write(state.view, state.before, variables.get(key, state.spec), counters)

    def _write(self, view: Array | None, buffer: Any, value: Array, counters: Counters) -> None:
        """Copies a value to the device. Nothing is under way: every run ends with all of its commands finished."""
        if view is None:
            self._copy(buffer, np.ascontiguousarray(value))
        else:
            view[...] = value
        counters.bytes_to_device += value.nbytes

    def _copy(self, to: Any, source: Any) -> None:
        """Queues a copy, whose event is kept: to drop it is to wait for it, with all other threads of Python."""
        self._under_way.append(cl.enqueue_copy(self._queue, to, source, is_blocking=False))

    def _download(self, counters: Counters) -> list[Array]:
        """The outputs, once everything is done: copies, but for what is lent."""
        outputs: list[Any] = self._results.copy()
        for state in self._states:  # only now: a launch that failed leaves the old state in place
            state.queue_update()
        for i, buffer in self._hidden:
            operand = self.plan.outputs[i]
            outputs[i] = np.empty(operand.shape, operand.spec.dtype)
            self._copy(outputs[i], buffer)
            counters.bytes_to_host += outputs[i].nbytes
        self._queue.finish()
        counters.host_syncs += 1
        if self._under_way:
            self._under_way.clear()
        for state in self._states:
            state.update()
        for i in self._kept:
            outputs[i] = outputs[i].copy()
            counters.bytes_to_host += outputs[i].nbytes
        return outputs
