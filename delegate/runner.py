"""A plan bound to a device: memory, kernels with their arguments set once, and the run itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyopencl as cl

from litecl.delegate.cl_op import Arg, Const, Operand
from litecl.delegate.device import Device, typed_errors
from litecl.delegate.memory import align
from litecl.delegate.plan import Plan, State, Work, size_bytes
from litecl.delegate.region_program import region_program
from litecl.delegate.report import Counters, KernelRow
from litecl.interpreter.errors import KernelBuildError
from litecl.interpreter.executor import Variables
from litecl.interpreter.graph import Array

# Fewer launches than this are not worth a program of their own.
_REGION_LAUNCHES = 4

# Work-groups offered for every thread: PoCL hands them out in runs, and every thread must get one.
_GROUPS_PER_UNIT = 4
_LINE_BYTES = 64  # of a counter that one worker writes, so that it does not disturb another


class DeviceState:
    """A variable tensor whose newest value lies in a device buffer."""

    def __init__(self, device: Device, state: State, buffer: Any) -> None:
        self._device = device
        self._spec = state.before.spec
        self._buffer = buffer

    def fetch(self) -> Array:
        """Reads the newest value back."""
        value = np.empty(self._spec.static_shape, self._spec.dtype)
        with typed_errors(f"reading variable {self._spec.name!r}"):
            cl.enqueue_copy(self._device.queue, value, self._buffer, is_blocking=True)
        return value


class Memory:
    """The device memory of a plan: an arena for what changes, and one buffer for all constants."""

    def __init__(self, plan: Plan, device: Device) -> None:
        self._plan, self._device = plan, device
        self.arena, self._host = device.shared_buffer(plan.arena.size_bytes)
        self._offsets, self.constant_bytes = self._place_constants()
        self.constants = device.buffer(self.constant_bytes)
        for data, offset in self._offsets.values():
            cl.enqueue_copy(device.queue, self.constants, np.ascontiguousarray(data), dst_offset=offset)

    def region_address(self, arg: Arg) -> int:
        """Where region.cl finds something: an offset into the arena, or into the constants with bit 0 set."""
        data = self._constant(arg)
        return self._plan.arena.offsets[self._root(arg)] if data is None else self._offsets[id(data)][1] | 1

    def argument(self, arg: Arg) -> Any:
        """What a kernel gets: a scalar as it is, or a sub-buffer."""
        if isinstance(arg, np.generic):
            return arg
        data = self._constant(arg)
        if data is not None:
            return self.constants.get_sub_region(self._offsets[id(data)][1], max(1, data.nbytes))
        return self.buffer(self._root(arg))

    def buffer(self, item: Any) -> Any:
        """The part of the arena that an operand or scratch memory has to itself."""
        root = self._root(item)
        return self.arena.get_sub_region(self._plan.arena.offsets[root], max(1, size_bytes(root)))

    def view(self, operand: Operand) -> Array | None:
        """An operand's memory as the host sees it, if device and host share the arena."""
        root = self._root(operand)
        if self._host is None or root not in self._plan.arena.offsets:
            return None
        start, size = self._plan.arena.offsets[root], operand.spec.size * operand.spec.dtype.itemsize
        return self._host[start : start + size].view(operand.spec.dtype).reshape(operand.shape)

    def _root(self, arg: Any) -> Any:
        return self._plan.root(arg) if isinstance(arg, Operand) else arg

    def _constant(self, arg: Arg) -> Array | None:
        if isinstance(arg, Const):
            return arg.data
        root = self._root(arg)
        return root.data if isinstance(root, Operand) else None

    def _place_constants(self) -> tuple[dict[int, tuple[Array, int]], int]:
        """Every array that a launch or an output names, once; and the size of them all."""
        named: list[Arg] = [arg for work in self._plan.works for arg in work.launch.args]
        offsets: dict[int, tuple[Array, int]] = {}
        end = 0
        for arg in (*named, *self._plan.outputs):
            data = None if isinstance(arg, np.generic) else self._constant(arg)
            if data is not None and id(data) not in offsets:
                offsets[id(data)] = data, end
                end = align(end + data.nbytes, self._device.alignment)
        return offsets, end


class Execution(Protocol):
    """A way to run a plan's launches."""

    def enqueue(self) -> int:
        """Queues them and returns how many kernels that took."""

    def events(self) -> list[tuple[Work, Any]]:
        """The events of the last run, where the queue profiles."""


class QueuedLaunches:
    """Every launch by itself, in an in-order queue."""

    def __init__(self, plan: Plan, device: Device, memory: Memory) -> None:
        self._device = device
        self._launches = [self._bind(work, memory) for work in plan.works]
        self._events: list[tuple[Work, Any]] = []

    def enqueue(self) -> int:
        """One kernel a launch."""
        queue = self._device.queue
        events = [
            (bound.work, cl.enqueue_nd_range_kernel(queue, bound.kernel, bound.global_size, bound.local_size))
            for bound in self._launches
        ]
        self._events = events if self._device.profile else []
        return len(events)

    def events(self) -> list[tuple[Work, Any]]:
        """One event a launch."""
        return self._events

    def _bind(self, work: Work, memory: Memory) -> "_Bound":
        launch = work.launch
        kernel = self._device.programs.kernel(launch.kernel, launch.entry, launch.defines)
        arguments = [memory.argument(arg) for arg in launch.args]
        with typed_errors(f"setting the arguments of {launch.entry}"):
            kernel.set_args(*arguments)
        local = launch.local_size + (1,) * (len(launch.global_size) - len(launch.local_size))
        return _Bound(work, kernel, launch.global_size, local, arguments)


@dataclass(frozen=True, eq=False)
class _Bound:
    """A launch ready to be queued. A kernel keeps no reference to its arguments, so they are held here."""

    work: Work
    kernel: Any
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    arguments: list[Any]


class RegionKernel:
    """All launches in one kernel, whose workers walk through them (region.cl)."""

    def __init__(self, plan: Plan, device: Device, memory: Memory) -> None:
        program = region_program([work.launch for work in plan.works], memory.region_address)
        if program is None:
            raise KernelBuildError("a launch has arguments that region.cl cannot pass")
        self._device = device
        units = device.target.compute_units
        self._kernel = device.programs.region_kernel(program, solo=units == 1)
        self._groups = 1 if units == 1 else units * _GROUPS_PER_UNIT
        self._progress_bytes = _LINE_BYTES * (self._groups + 1) * len(plan.works)
        self._progress = device.buffer(self._progress_bytes)
        tables = [device.buffer(program.works.nbytes), device.buffer(max(8, program.args.nbytes))]
        for buffer, table in zip(tables, (program.works, program.args), strict=True):
            cl.enqueue_copy(device.queue, buffer, table)
        self._arguments = [memory.arena, memory.constants, *tables, self._progress, np.int32(len(plan.works))]
        self._kernel.set_args(*self._arguments)

    def enqueue(self) -> int:
        """One kernel, after its counters are cleared."""
        queue = self._device.queue
        if self._groups > 1:
            cl.enqueue_fill_buffer(queue, self._progress, np.int32(0), 0, self._progress_bytes)
        cl.enqueue_nd_range_kernel(queue, self._kernel, (self._groups,), (1,))
        return 1

    def events(self) -> list[tuple[Work, Any]]:
        """None: a region in one kernel has no times of its parts."""
        return []


def _execution(plan: Plan, device: Device, memory: Memory) -> Execution:
    """One kernel on a CPU, unless times of every launch are wanted or the runtime cannot link."""
    if device.target.kind == "cpu" and not device.profile and len(plan.works) >= _REGION_LAUNCHES:
        try:
            return RegionKernel(plan, device, memory)
        except KernelBuildError:
            pass  # a kernel that does not build fails below too, and says so
    return QueuedLaunches(plan, device, memory)


class Program:
    """One region on one device.

    Building it allocates memory, uploads constants and builds kernels; raises KernelBuildError or OutOfDeviceMemory.
    """

    def __init__(self, plan: Plan, device: Device, partition: int) -> None:
        self.plan = plan
        self.partition = partition
        self._device = device
        with typed_errors("preparing a region"):
            memory = Memory(plan, device)
            self._execution = _execution(plan, device, memory)
        self.constant_bytes = memory.constant_bytes
        self._inputs = [(memory.view(operand), memory.buffer(operand)) for operand in plan.inputs]
        self._outputs = [(memory.view(operand), memory.argument(operand)) for operand in plan.outputs]
        self._states = [(memory.buffer(s.before), memory.buffer(s.after)) for s in plan.states]
        self._holders = [DeviceState(device, s, b) for s, (b, _) in zip(plan.states, self._states, strict=True)]
        self._saved = False

    def run(
        self, inputs: Sequence[Array], variables: Variables, keys: Sequence[tuple[int, int]], counters: Counters
    ) -> list[Array]:
        """Runs the region and returns its outputs.

        keys: of the plan's states, in order, in the state store. Raises DelegateError, with variables as before.
        """
        with typed_errors("running a region"):
            self._upload(inputs, variables, keys, counters)
            counters.kernel_launches += self._execution.enqueue()
            for before, after in self._states:  # only now: a launch that failed leaves the old state in place
                cl.enqueue_copy(self._device.queue, before, after)
            outputs = self._download(counters)
        for key, holder in zip(keys, self._holders, strict=True):
            variables.set(key, holder)
        if not self._saved:
            self._device.programs.save()
            self._saved = True
        return outputs

    def kernel_rows(self) -> list[KernelRow]:
        """Device times of the last run, from its events."""
        return [
            KernelRow(
                self.partition, work.node, work.launch.kernel, work.launch.entry,
                (event.profile.end - event.profile.start) * 1e-6, work.launch.flops,
            )
            for work, event in self._execution.events()
        ]

    def _upload(
        self, inputs: Sequence[Array], variables: Variables, keys: Sequence[tuple[int, int]], counters: Counters
    ) -> None:
        for (view, buffer), value in zip(self._inputs, inputs, strict=True):
            if view is None:
                self._copy_in(buffer, value, counters)
            else:  # nothing is under way: every run ends with all of its commands finished
                view[...] = value
                counters.bytes_to_device += value.nbytes
        for key, state, holder, buffers in zip(keys, self.plan.states, self._holders, self._states, strict=True):
            if not variables.held_by(key, holder):
                self._copy_in(buffers[0], variables.get(key, state.before.spec), counters)

    def _copy_in(self, buffer: Any, value: Array, counters: Counters) -> None:
        cl.enqueue_copy(self._device.queue, buffer, np.ascontiguousarray(value), is_blocking=False)
        counters.bytes_to_device += value.nbytes

    def _download(self, counters: Counters) -> list[Array]:
        queue = self._device.queue
        outputs = [
            self._copy_out(operand, buffer) if view is None else view
            for operand, (view, buffer) in zip(self.plan.outputs, self._outputs, strict=True)
        ]
        queue.finish()
        counters.host_syncs += 1
        counters.bytes_to_host += sum([value.nbytes for value in outputs])
        pairs = zip(outputs, self._outputs, strict=True)
        return [value.copy() if view is value else value for value, (view, _) in pairs]

    def _copy_out(self, operand: Operand, buffer: Any) -> Array:
        """An array that the queue will have filled."""
        value = np.empty(operand.shape, operand.spec.dtype)
        cl.enqueue_copy(self._device.queue, value, buffer, is_blocking=False)
        return value
