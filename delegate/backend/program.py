"""A plan bound to a device, and its run: copies in, launches, copies out, states.

A region has an execution of its own, with memory and a queue, and shares the device with other regions. So one thread
at a time may run it, while others run other regions. Waiting for the device lets other threads run.
"""

import threading
import time
from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np

from litecl.delegate.backend import fork
from litecl.delegate.backend.errors import host_memory, no_host_memory, place
from litecl.delegate.backend.protocols import AtOnce, Device, SharesConstants, TakesBuffers, UserBuffer
from litecl.delegate.backend.stack import on_ample_stack
from litecl.delegate.backend.states import States
from litecl.delegate.cl_op import Operand
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.plan.plan import Plan
from litecl.delegate.report import CopyRow, Counters, KernelRow
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.graph import Array
from litecl.interpreter.run.variables import Variables


class Program:
    """One region on one device.

    Building it allocates memory, uploads constants and builds kernels; raises KernelBuildError or OutOfDeviceMemory.
    lock: held while a thread builds or runs it. buffers: the user's buffers of inputs and outputs. saved:
    whether what was built is, as it is after a run. timed: whether copies are. copied: the times and the bytes of the
    last run's (seconds at which it began, at which inputs, launches and outputs were done, and bytes to and from).
    """

    def __init__(self, plan: Plan, device: Device, partition: int, options: CLOptions) -> None:
        self.plan = plan
        self.partition = partition
        self.lock: Any = threading.Lock()
        self.needs_runtime, self.needs_threads = device.needs_runtime, device.needs_threads
        self._device = device
        self.saved = False
        self.timed = options.profile
        self.copied: tuple[float, ...] = ()
        self.buffers: Mapping[int, UserBuffer] = {}
        fork.register(self)
        with self.lock:
            self._execution = device.bind(plan, options)
            self._memory, self._finish = self._execution.memory, self._execution.finish
            self._find_memory()
        self.manner = self._execution.manner
        memory = self._memory
        parts = memory.constant_parts if isinstance(memory, SharesConstants) else {id(self): memory.constant_bytes}
        self.constant_parts: Mapping[int, int] = parts

    def _find_memory(self) -> None:
        """Find where inputs, outputs and states lie; the latter in both turns."""
        plan, view = self.plan, self._memory.view
        self._views = [view(operand) for operand in plan.inputs]
        self._results = [view(operand) for operand in plan.outputs]
        self._hidden = [i for i, result in enumerate(self._results) if result is None]
        self._kept = [i for i, result in enumerate(self._results) if result is not None]
        lent = {i: v for i, v in enumerate(self._views) if v is not None and plan.region.inputs[i] in plan.overwritten}
        self._overwritten = {i: (v, v.ctypes.data) for i, v in lent.items()}  # and where they lie
        self._first = min((start for _, start in self._overwritten.values()), default=0)
        self._end = max((start + v.nbytes for v, start in self._overwritten.values()), default=0)
        self.states = States(self._execution, plan.states, self._device)

    def run(self, inputs: Sequence[Array], variables: Variables, counters: Counters) -> list[Array]:
        """Run the region and return its outputs.

        Raises DelegateError, with variables as before, and NotAsPlanned where variables have no value that fits.
        """
        outputs = self.run_without_keeping(inputs, variables, counters)
        self.states.keep(variables)  # last of all: an interrupt before this leaves all states as they were
        return outputs

    def run_without_keeping(self, inputs: Sequence[Array], variables: Variables, counters: Counters) -> list[Array]:
        """Run the region, all but telling the store of new states."""
        with self.lock:
            run = self._run_amply if self.needs_runtime else self._run
            outputs = run(inputs, variables, counters)
        if not self.saved:
            self._device.save()
            self.saved = True
        return outputs

    def _run(self, inputs: Sequence[Array], variables: Variables, counters: Counters) -> list[Array]:
        try:
            if not self.saved:
                self._device.check()
            if self.timed:
                return self._run_timed(inputs, variables, counters)
            self._upload(inputs, counters)
            self.states.restore(variables, counters)
            self._execution.run(counters)
            return self._download(counters)
        except BaseException as error:
            self.abandon(error)

    _run_amply = on_ample_stack(_run)

    def _run_timed(self, inputs: Sequence[Array], variables: Variables, counters: Counters) -> list[Array]:
        """Do the same, and note how long copies took."""
        start_s, sent, received = time.perf_counter(), counters.bytes_to_device, counters.bytes_to_host
        self._upload(inputs, counters)
        self.states.restore(variables, counters)
        copied_s = start_s if counters.bytes_to_device == sent else time.perf_counter()  # asking takes 40 to 150 ns
        self._execution.run(counters)
        queued_s = time.perf_counter()
        outputs = self._download(counters)
        end_s, sent, received = time.perf_counter(), counters.bytes_to_device - sent, counters.bytes_to_host - received
        self.copied = start_s, copied_s, queued_s, end_s, sent, received
        return outputs

    @property
    def copies(self) -> list[CopyRow]:
        """The copies of the last run, if times are taken."""
        if not self.copied:
            return []
        start_s, copied_s, queued_s, end_s, sent, received = self.copied
        rows = ("device", start_s, copied_s, sent), ("host", queued_s, end_s, received)
        return [CopyRow(self.partition, to, (a - start_s) * 1e3, (b - a) * 1e3, int(n)) for to, a, b, n in rows]

    @property
    def at_once(self) -> AtOnce | None:
        """Return the execution's function that runs the region, None where that is not all that a run takes."""
        return self._execution.at_once

    @property
    def inputs(self) -> list[Array]:
        """Return the memory of the region's inputs that the host can access."""
        return [view for view in self._views if view is not None]

    def reads(self, inputs: Sequence[Array | None]) -> bool:
        """Return whether arrays are the memory of all inputs."""
        return all(a is b for a, b in zip(inputs, self._views, strict=True))

    def output_memory(self) -> dict[int, Array]:
        """Return the memory of the region's outputs, by tensor, as far as the host can access it."""
        results = zip(self.plan.region.outputs, self._results, strict=True)
        return {tensor: view for tensor, view in results if view is not None}

    @property
    def kept(self) -> Set[int]:
        """Return the outputs whose memory is not lent."""
        return {self.plan.region.outputs[i] for i in self._kept}

    def abandon(self, error: BaseException) -> NoReturn:
        """Wait for what was queued before an error or interrupt, as its memory is about to be used again; raise it."""
        self.states.forget()
        for _ in range(2):  # waiting, too, may be what failed
            with suppress(DelegateError):
                self._finish()
                break
        if isinstance(error, MemoryError):
            raise no_host_memory("running a region") from error
        raise error

    def input_memory(self) -> dict[int, Array]:
        """Return the memory of the region's inputs, by tensor, as far as the host can access it and no run writes to
        it: these are not copied.
        """
        views = zip(self.plan.region.inputs, self._views, strict=True)
        return {t: view for t, view in views if view is not None and t not in self.plan.overwritten}

    def lend(self, tensors: Collection[int]) -> None:
        """Let ``run`` return the device's own memory for some outputs, which the next run overwrites."""
        inputs = zip(self.plan.region.inputs, self.plan.inputs, strict=True)
        written_between_runs = {self.plan.root(o) for t, o in inputs if t not in self.plan.overwritten}
        written_between_runs |= {state.before for state in self.plan.states}
        outputs = zip(self.plan.region.outputs, self.plan.outputs, self._results, strict=True)
        self._kept = [
            i
            for i, (tensor, operand, view) in enumerate(outputs)
            if view is not None and (tensor not in tensors or self.plan.root(operand) in written_between_runs)
        ]

    def loops(self) -> tuple[str, ...]:
        """Describe how each loop runs."""
        rows = [(loop.subgraph, loop.node, self._execution.loop(loop)) for loop in self.plan.loops]
        rows += [(*lstm, "as one LSTM") for lstm in self.plan.lstms]
        return tuple(f"{place(subgraph, node)}: {way}" for subgraph, node, way in sorted(rows))

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
    def own_memory(self) -> dict[int, Operand]:
        """Return the inputs and outputs that have memory of their own, which may lie in the user's buffers."""
        if not isinstance(self._execution, TakesBuffers):
            return {}
        plan, region = self.plan, self.plan.region
        named = [*zip(region.inputs, plan.inputs, strict=True), *zip(region.outputs, plan.outputs, strict=True)]
        roots = [plan.root(operand) for _, operand in named]
        return {
            tensor: operand
            for (tensor, operand), root in zip(named, roots, strict=True)
            if roots.count(root) == 1
            and root in plan.arena.offsets
            and plan.place(operand)[1] == 0
            and root.size_bytes == operand.size_bytes == operand.spec.size * operand.spec.dtype.itemsize
        }

    def use(self, buffers: Mapping[int, UserBuffer]) -> None:
        """Let some of ``own_memory`` lie in the user's buffers in the runs that follow; all else is in the arena."""
        if self.buffers == buffers or not isinstance(self._execution, TakesBuffers):
            return
        own = self.own_memory
        with self.lock:
            self._execution.use({own[tensor]: buffer for tensor, buffer in buffers.items()})
        self.buffers = buffers
        self.saved = False  # what was built for them is to be saved too

    def _upload(self, inputs: Sequence[Array], counters: Counters) -> None:
        for i, value in enumerate(self._apart(inputs) if self._overwritten else inputs):
            view = self._views[i]
            if view is value or self.plan.region.inputs[i] in self.buffers:
                continue
            if view is None:
                self._memory.upload(self.plan.inputs[i], value)
            else:  # nothing is pending: every run ends with all of its commands finished
                view[...] = value
            counters.bytes_to_device += value.nbytes

    def _apart(self, inputs: Sequence[Array]) -> list[Array]:
        """Return inputs none of which changes while others are copied: what the last run has left in memory that it
        overwrites may be given again, in the same place or in another one.
        """
        found = list(inputs)
        for i, (view, own) in self._overwritten.items():
            value, start = inputs[i], inputs[i].ctypes.data
            touches = start != own and start < self._end and start + value.nbytes > self._first
            if touches or not value.flags.c_contiguous:
                found[i] = value.copy()
            elif start == own:
                found[i] = view
        return found

    def _download(self, counters: Counters) -> list[Array]:
        """Return the outputs once everything has finished: copies, except for memory that is lent."""
        outputs: list[Any] = self._results.copy()
        elsewhere = [tensor in self.buffers for tensor in self.plan.region.outputs]  # nobody reads them here
        for i in self._hidden:
            operand = self.plan.outputs[i]
            outputs[i] = np.empty(operand.shape, operand.spec.dtype)
            if elsewhere[i]:
                continue
            self._memory.download(operand, outputs[i])
            counters.bytes_to_host += outputs[i].nbytes
        self._finish()
        counters.host_syncs += 1
        for i in self._kept:
            if elsewhere[i]:
                continue
            outputs[i] = outputs[i].copy()
            counters.bytes_to_host += outputs[i].nbytes
        return outputs
