"""A plan bound to a device, and its runs: copies in, launches, copies out, states.

A region has its own execution, with memory and a queue, and shares the device with other regions. So one thread at a
time may run it, while others run other regions. Waiting for the device lets other threads run.
"""

import threading
import time
from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np

from litecl.delegate.backend import fork
from litecl.delegate.backend.binding import Binding
from litecl.delegate.backend.errors import host_memory, loop_at, no_host_memory
from litecl.delegate.backend.protocols import AtOnce, Device, SharesConstants, TakesBuffers
from litecl.delegate.backend.stack import on_ample_stack
from litecl.delegate.backend.states import States
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.plan.plan import Plan
from litecl.delegate.report import CopyRow, Counters, KernelRow
from litecl.interpreter.buffers import Buffer
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array
from litecl.interpreter.run.variables import Variables

_NOWHERE: Array = np.empty(0)  # stands for outputs in buffers


class Program:
    """One region on one device.

    Allocates memory, uploads constants and builds kernels; raises KernelBuildError or OutOfDeviceMemory.
    lock: held while a thread builds or runs it. binding: the memory of inputs and outputs. is_bounded: whether a run
    may end early, at a loop's limit. saved: whether the built kernels are saved, which the first run does. timed:
    whether to time copies. copied: of the last run, the times (s) of its start and of the end of inputs, launches and
    outputs, then the bytes copied to and from the device.
    """

    def __init__(self, plan: Plan, device: Device, partition: int, options: CLOptions) -> None:
        self.plan = plan
        self.partition = partition
        self.lock: Any = threading.Lock()
        self.needs_runtime, self.needs_threads = device.needs_runtime, device.needs_threads
        self._device = device
        self.saved, self.is_bounded = False, bool(plan.loops) and options.max_loop_iterations is not None
        self.timed = options.profile
        self.copied: tuple[float, ...] = ()
        self._began = False
        self._lent: Set[int] = frozenset()  # positions of outputs
        fork.register(self)
        with self.lock:
            self._execution = device.bind(plan, options)
            self._finish = self._execution.finish
            self.binding = Binding(plan, self._execution, device)
            self._ways = {self.binding.way}
            self.states = States(self._execution, plan.states, self._device)
            self._find_memory()
        self.manner = self._execution.manner
        memory = self._execution.memory
        parts = memory.constant_parts if isinstance(memory, SharesConstants) else {id(self): memory.constant_bytes}
        self.constant_parts: Mapping[int, int] = parts

    def _find_memory(self) -> None:
        """Look up the host views of inputs and outputs."""
        plan, view = self.plan, self.binding.view
        self._views = [view(operand) for operand in plan.inputs]
        self._results = [view(operand) for operand in plan.outputs]
        lent = {i: v for i, v in enumerate(self._views) if v is not None and plan.region.inputs[i] in plan.overwritten}
        self._overwritten = {i: (v, v.ctypes.data) for i, v in lent.items()}  # and where they lie

    def run(self, inputs: Sequence[Array], variables: Variables, counters: Counters) -> list[Array]:
        """Run the region and return its outputs.

        Raises DelegateError, with variables as before, and NotAsPlanned if a variable's value doesn't fit the plan.
        """
        outputs = self.run_without_keeping(inputs, variables, counters)
        self.states.keep(variables)  # last: an interrupt before this leaves all states as they were
        return outputs

    def run_without_keeping(self, inputs: Sequence[Array], variables: Variables, counters: Counters) -> list[Array]:
        """Run the region without storing its new states."""
        with self.lock:
            run = self._run_amply if self.needs_runtime else self._run
            outputs = run(inputs, variables, counters)
        if not self.saved:
            self._device.save()
            self.saved = True
        return outputs

    def _run(self, inputs: Sequence[Array], variables: Variables, counters: Counters) -> list[Array]:
        try:
            self._began = False
            if not self.saved:
                self._device.check()
            if self.binding.prepare():
                self._find_memory()
            if self.timed:
                return self._run_timed(inputs, variables, counters)
            self._upload(inputs, counters)
            self.states.restore(variables, counters)
            self._began = True
            self._execution.run(counters)
            return self._download(counters)
        except BaseException as error:
            self.abandon(error)

    _run_amply = on_ample_stack(_run)

    def _run_timed(self, inputs: Sequence[Array], variables: Variables, counters: Counters) -> list[Array]:
        """Run the same, and time copies."""
        start_s, sent, received = time.perf_counter(), counters.bytes_to_device, counters.bytes_to_host
        self._upload(inputs, counters)
        self.states.restore(variables, counters)
        copied_s = start_s if counters.bytes_to_device == sent else time.perf_counter()  # reading it takes 40 to 150 ns
        self._began = True
        self._execution.run(counters)
        queued_s = time.perf_counter()
        outputs = self._download(counters)
        end_s, sent, received = time.perf_counter(), counters.bytes_to_device - sent, counters.bytes_to_host - received
        self.copied = start_s, copied_s, queued_s, end_s, sent, received
        return outputs

    @property
    def copies(self) -> list[CopyRow]:
        """The copies of the last run, if timed."""
        if not self.copied:
            return []
        start_s, copied_s, queued_s, end_s, sent, received = self.copied
        rows = ("device", start_s, copied_s, sent), ("host", queued_s, end_s, received)
        return [CopyRow(self.partition, to, (a - start_s) * 1e3, (b - a) * 1e3, int(n)) for to, a, b, n in rows]

    @property
    def at_once(self) -> AtOnce | None:
        """Return the execution's function that runs the region; None if it has none."""
        return self._execution.at_once

    @property
    def at_once_on_buffers(self) -> AtOnce | None:
        """Return the same for the current buffers."""
        takes = isinstance(self._execution, TakesBuffers) and self._execution.at_once_on_buffers
        return self._execution.at_once if takes else None

    @property
    def inputs(self) -> list[Array]:
        """Return the host views of the region's inputs."""
        return [view for view in self._views if view is not None]

    def reads(self, inputs: Sequence[Array | None]) -> bool:
        """Return whether the arrays are the host views of all inputs."""
        return all(a is b for a, b in zip(inputs, self._views, strict=True))

    def output_memory(self) -> dict[int, Array]:
        """Return the host views of the region's outputs, by tensor, as far as there are any."""
        results = zip(self.plan.region.outputs, self._results, strict=True)
        return {tensor: view for tensor, view in results if view is not None}

    @property
    def kept(self) -> Set[int]:
        """Return the outputs with a host view whose memory is not lent."""
        outputs = enumerate(zip(self.plan.region.outputs, self._results, strict=True))
        return {tensor for i, (tensor, view) in outputs if view is not None and i not in self._lent}

    def abandon(self, error: BaseException) -> NoReturn:
        """After an error or interrupt, wait for queued commands, whose memory is about to be reused; then raise it."""
        self.states.forget()
        for _ in range(2):  # the wait itself may fail, too
            with suppress(DelegateError):
                self._finish()
                break
        if isinstance(error, MemoryError):
            raise no_host_memory("running a region") from error
        raise error

    def input_memory(self) -> dict[int, Array]:
        """Return the host views of inputs that no run overwrites, by tensor: arrays there need no copy."""
        views = zip(self.plan.region.inputs, self._views, strict=True)
        return {t: view for t, view in views if view is not None and t not in self.plan.overwritten}

    def lend(self, tensors: Collection[int]) -> None:
        """Let ``run`` return views of device memory for these outputs, which the next run overwrites."""
        inputs = zip(self.plan.region.inputs, self.plan.inputs, strict=True)
        written_between_runs = {self.plan.root(o) for t, o in inputs if t not in self.plan.overwritten}
        written_between_runs |= {state.before for state in self.plan.states}
        outputs = enumerate(zip(self.plan.region.outputs, self.plan.outputs, strict=True))
        self._lent = {i for i, (t, o) in outputs if t in tensors and self.plan.root(o) not in written_between_runs}

    def loops(self) -> tuple[str, ...]:
        """Describe how each loop runs."""
        rows = [(loop.subgraph, loop.node, self._execution.loop(loop)) for loop in self.plan.loops]
        rows += [(*lstm, "as one LSTM") for lstm in self.plan.lstms]
        return tuple(f"{loop_at(subgraph, node)}: {way}" for subgraph, node, way in sorted(rows))

    def kernel_rows(self) -> list[KernelRow]:
        """Return device times of the last run."""
        with host_memory("reading the times of launches"):
            return [
                KernelRow(
                    self.partition,
                    work.node,
                    work.launch.kernel,
                    work.launch.entry,
                    time.duration_ms,
                    work.launch.flops,
                    work.subgraph,
                    time.queued_ms,
                    time.start_ms,
                    work.size_bytes,
                    time.runs,
                    work.launch.tiled,
                )
                for work, time in self._execution.times()
            ]

    @property
    def buffers(self) -> Mapping[int, Buffer]:
        """The buffers that hold inputs and outputs, by tensor."""
        return self.binding.places.used

    @property
    def has_overwritten(self) -> bool:
        """True if the last run may have overwritten an input in the caller's buffer."""
        return self._began and self.binding.overwrites

    def use(self, buffers: Mapping[int, Buffer]) -> Collection[int]:
        """Place inputs and outputs in buffers for the following runs; return the tensors that lie in one."""
        with self.lock:
            if self.binding.use(buffers) and self.binding.way not in self._ways:
                self._ways.add(self.binding.way)
                self.saved = False  # the next run may build kernels to save
            if self.binding.places.is_seen:
                self._find_memory()
        return self.binding.places.used.keys()

    def _upload(self, inputs: Sequence[Array], counters: Counters) -> None:
        for i, value in enumerate(self._apart(inputs) if self._overwritten else inputs):
            view = self._views[i]
            if view is value or self.plan.region.inputs[i] in self.buffers:
                continue
            if view is None:
                self._execution.memory.upload(self.plan.inputs[i], value)
            else:  # nothing is pending: a run ends only once all of its commands have finished
                view[...] = value
            counters.bytes_to_device += value.nbytes
        counters.bytes_on_device += self.binding.fill()

    def _apart(self, inputs: Sequence[Array]) -> list[Array]:
        """Copy inputs that the upload of others would overwrite: the caller may pass arrays in memory that runs
        overwrite, as the same input or as another.
        """
        arrays = list(inputs)
        places = [(start, start + view.nbytes) for view, start in self._overwritten.values()]
        first, last = min(start for start, _ in places), max(end for _, end in places)
        for i, (view, own) in self._overwritten.items():
            value, start = inputs[i], inputs[i].ctypes.data
            end = start + value.nbytes
            touches = start != own and start < last and end > first and any(start < b and end > a for a, b in places)
            if touches or not value.flags.c_contiguous:
                arrays[i] = value.copy()
            elif start == own:
                arrays[i] = view
        return arrays

    def _download(self, counters: Counters) -> list[Array]:
        """Finish the run and return its outputs: copies, except where memory is lent."""
        buffers, seen = self.buffers, zip(self.plan.region.outputs, self._results, strict=True)
        outputs: list[Any] = [_NOWHERE if tensor in buffers else view for tensor, view in seen]
        copied = [i for i, view in enumerate(outputs) if view is not None and i not in self._lent]
        for i, operand in enumerate(self.plan.outputs):
            if outputs[i] is None:
                outputs[i] = np.empty(operand.shape, operand.spec.dtype)
                self._execution.memory.download(operand, outputs[i])
                counters.bytes_to_host += outputs[i].nbytes
        self._finish()
        counters.host_syncs += 1
        for i in copied:
            outputs[i] = outputs[i].copy()
            counters.bytes_to_host += outputs[i].nbytes
        return outputs
