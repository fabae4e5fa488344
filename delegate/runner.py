"""A plan bound to a device: buffers, kernels with their arguments set once, and the run itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl

from litecl.delegate.cl_op import Arg, Const, Operand, Scratch
from litecl.delegate.device import Device, typed_errors
from litecl.delegate.plan import Plan, State, Work
from litecl.delegate.report import Counters, KernelRow
from litecl.interpreter.executor import Variables
from litecl.interpreter.graph import Array


@dataclass(frozen=True, eq=False)
class _Bound:
    """A launch ready to be queued."""

    work: Work
    kernel: Any
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]


class DeviceState:
    """A variable tensor whose newest value lies in a device buffer."""

    def __init__(self, device: Device, state: State, buffer: Any) -> None:
        self._device = device
        self._spec = state.before.spec
        self.buffer = buffer

    def fetch(self) -> Array:
        """Reads the newest value back."""
        value = np.empty(self._spec.static_shape, self._spec.dtype)
        with typed_errors(f"reading variable {self._spec.name!r}"):
            cl.enqueue_copy(self._device.queue, value, self.buffer, is_blocking=True)
        return value


class Program:
    """One region on one device.

    Building it allocates memory, uploads constants and builds kernels; raises KernelBuildError or OutOfDeviceMemory.
    """

    def __init__(self, plan: Plan, device: Device, partition: int) -> None:
        self.plan = plan
        self.partition = partition
        self._device = device
        self._buffers: dict[Operand | Scratch | Const, Any] = {}
        self._constants: dict[int, Any] = {}
        self._hold: list[Array] = []  # keeps the arrays that _constants is keyed by alive
        self._events: list[tuple[Work, Any]] = []
        self._saved = False
        self._allocate()
        self._launches = [self._bind(work) for work in plan.works]
        self._states = [DeviceState(device, s, self._buffers[s.before]) for s in plan.states]

    @property
    def constant_bytes(self) -> int:
        """Bytes of weights and tables on the device."""
        return sum(array.nbytes for array in self._hold)

    def run(
        self, inputs: Sequence[Array], variables: Variables, keys: Sequence[tuple[int, int]], counters: Counters
    ) -> list[Array]:
        """Runs the region and returns its outputs.

        keys: of the plan's states, in order, in the state store. Raises DelegateError, with variables as before.
        """
        with typed_errors("running a region"):
            self._upload(inputs, variables, keys, counters)
            self._launch(counters)
            outputs = self._download(counters)
        for key, holder in zip(keys, self._states, strict=True):
            variables.set(key, holder)
        if not self._saved:
            self._device.save()
            self._saved = True
        return outputs

    def kernel_rows(self) -> list[KernelRow]:
        """Device times of the last run, from its events."""
        return [
            KernelRow(
                self.partition, work.node, work.launch.kernel, work.launch.entry,
                (event.profile.end - event.profile.start) * 1e-6, work.launch.flops,
            )
            for work, event in self._events
        ]

    def _allocate(self) -> None:
        plan, device = self.plan, self._device
        arena = device.buffer(plan.arena.size_bytes)
        for item, offset in plan.arena.offsets.items():
            assert isinstance(item, Operand | Scratch)
            size = item.size_bytes if isinstance(item, Scratch) else item.spec.size * item.spec.dtype.itemsize
            self._buffers[item] = arena.get_sub_region(offset, max(1, size))
        fixed = [*plan.inputs, *(o for state in plan.states for o in (state.before, state.after))]
        for operand in fixed:
            if operand not in self._buffers:
                self._buffers[operand] = device.buffer(operand.spec.size * operand.spec.dtype.itemsize)

    def _constant(self, data: Array) -> Any:
        key = id(data)
        if key not in self._constants:
            contiguous = np.ascontiguousarray(data)
            self._constants[key] = self._device.buffer(contiguous.nbytes, contiguous)
            self._hold.append(data)
        return self._constants[key]

    def _argument(self, arg: Arg) -> Any:
        if isinstance(arg, np.generic):
            return arg
        if isinstance(arg, Const):
            return self._constant(arg.data)
        item = self.plan.root(arg) if isinstance(arg, Operand) else arg
        if isinstance(item, Operand) and item.data is not None:
            return self._constant(item.data)
        return self._buffers[item]

    def _bind(self, work: Work) -> _Bound:
        launch = work.launch
        kernel = self._device.kernel(launch.kernel, launch.entry, launch.defines)
        with typed_errors(f"setting the arguments of {launch.entry}"):
            for i, arg in enumerate(launch.args):
                kernel.set_arg(i, self._argument(arg))
        local = launch.local_size + (1,) * (len(launch.global_size) - len(launch.local_size))
        return _Bound(work, kernel, launch.global_size, local)

    def _upload(
        self, inputs: Sequence[Array], variables: Variables, keys: Sequence[tuple[int, int]], counters: Counters
    ) -> None:
        for operand, value in zip(self.plan.inputs, inputs, strict=True):
            self._copy_in(self._buffers[operand], value, counters)
        for key, state, holder in zip(keys, self.plan.states, self._states, strict=True):
            if not variables.held_by(key, holder):
                self._copy_in(self._buffers[state.before], variables.get(key, state.before.spec), counters)

    def _copy_in(self, buffer: Any, value: Array, counters: Counters) -> None:
        cl.enqueue_copy(self._device.queue, buffer, np.ascontiguousarray(value), is_blocking=False)
        counters.bytes_to_device += value.nbytes

    def _launch(self, counters: Counters) -> None:
        queue = self._device.queue
        events = [
            (bound.work, cl.enqueue_nd_range_kernel(queue, bound.kernel, bound.global_size, bound.local_size))
            for bound in self._launches
        ]
        self._events = events if self._device.profile else []
        counters.kernel_launches += len(events)
        for state in self.plan.states:  # only now: a launch that failed leaves the old state in place
            before, after = self._buffers[state.before], self._buffers[state.after]
            cl.enqueue_copy(queue, before, after, byte_count=state.before.spec.size * state.before.spec.dtype.itemsize)

    def _download(self, counters: Counters) -> list[Array]:
        queue = self._device.queue
        outputs = []
        for operand in self.plan.outputs:
            value = np.empty(operand.shape, operand.spec.dtype)
            cl.enqueue_copy(queue, value, self._argument(operand), is_blocking=False)
            counters.bytes_to_host += value.nbytes
            outputs.append(value)
        queue.finish()
        counters.host_syncs += 1
        return outputs
