"""One model prepared for a device: partitioned, planned and built; and its report."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakMethod

from litecl.delegate.analysis.cost import mostly_integers, work_flops
from litecl.delegate.backend.direct import on_buffers
from litecl.delegate.backend.errors import host_memory
from litecl.delegate.backend.program import Program
from litecl.delegate.backend.protocols import Device, KeepsPlans, KeepsTensors
from litecl.delegate.cl_op import Const, Operand
from litecl.delegate.claim.options import CLOptions
from litecl.delegate.claim.region import FOLDED, Partitioning, Region
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.devices import forget, open_device
from litecl.delegate.kept_plans import KeptPlans
from litecl.delegate.naming import counted
from litecl.delegate.plan.plan import Plan
from litecl.delegate.plan_key import constants, name_of
from litecl.delegate.progress import phase, timed, waiting
from litecl.delegate.region import Failed, constant_bytes, partition_rows, region_node, share_memory
from litecl.delegate.report import Counters, DelegationReport, KernelRow, NodeRow, WarmUp, summary, warn
from litecl.delegate.report_details import kernel_name, steady, with_details
from litecl.delegate.tuning import Demand
from litecl.interpreter import limits
from litecl.interpreter.buffers import Buffer, HostBuffer
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.delegation import Moved
from litecl.interpreter.dynamic_range import is_dynamic
from litecl.interpreter.errors import DelegateError, DeviceNotFound, LimitError, ModelError, OutOfDeviceMemory
from litecl.interpreter.graph import Array, Model, Node, Subgraph, TensorSpec, callees_of, entries, reached
from litecl.interpreter.op import InPlace
from litecl.interpreter.schema import TensorType

if TYPE_CHECKING:
    from litecl.delegate.planner import Planner

Allotted = Sequence[tuple[Program, Mapping[int, Buffer]]]
"""Regions with the buffers that each uses, by tensor."""


@dataclass
class CLDelegation:
    """One model with its regions on one device."""

    original: Model
    specs: Sequence[Sequence[TensorSpec]]
    options: CLOptions
    preserve: bool
    model: Model = field(init=False)
    _in_float: frozenset[tuple[int, int]] = frozenset()  # nodes that compute in float32 whatever the precision
    counters: Counters = field(default_factory=Counters)
    failures: list[str] = field(default_factory=list)
    usable: bool = True
    passed_over: list[str] = field(default_factory=list)
    warm_up: WarmUp | None = None  # if prepared in the background
    _device: Device | None = None
    _kept: KeptPlans = field(init=False)
    _programs: dict[int, Program] = field(default_factory=dict)
    _rows: list[NodeRow] = field(default_factory=list)
    _details: tuple[Sequence[NodeRow], tuple[NodeRow, ...]] = ((), ())  # some ``_rows``, and those with details
    _called: set[int] = field(default_factory=set)  # subgraphs that nodes run
    _shared: dict[int, tuple[dict[int, Array], set[int]]] = field(default_factory=dict)  # input_memory, copied_inputs
    _buffers: dict[int, Sequence[tuple[Program, Collection[int]]]] = field(default_factory=dict)  # see _free
    _asked: dict[int, tuple[int, Mapping[int, Buffer] | None, Allotted]] = field(default_factory=dict)  # see use
    _build_s: float = 0.0
    _cache_hits: int = 0
    _phases: dict[str, float] = field(default_factory=dict)

    def prepare(self) -> None:
        """Rewrite the model, subgraph by subgraph."""
        if self.options.keep_float:
            from litecl.delegate.claim.kept import kept_in_float

            self._in_float = kept_in_float(self.original, self.options.keep_float)
        start_s = time.perf_counter()
        with timed() as self._phases, waiting(self.options.compile_timeout):
            self._rewrite()
        self._build_s = time.perf_counter() - start_s

    def _rewrite(self) -> None:
        hits_before = 0
        try:
            work = self.original, self.specs
            demand = Demand(self.options.num_threads, work_flops(*work), mostly_integers(*work))
            with phase("open"):
                self._device = open_device(self.options, demand, self.passed_over)
            hits_before = self._device.cache_hits
        except DeviceNotFound:  # never replace a device that the user named
            raise
        except DelegateError as error:
            self._fail(error)
        with phase("look up"):
            self._kept = self._kept_plans()
        self.model = replace(self.original, subgraphs=self._subgraphs())
        if self.failures:
            self._kept.drop()
        self._kept.keep()
        if self._device is not None:
            self._cache_hits = self._device.cache_hits - hits_before

    def _kept_plans(self) -> KeptPlans:
        """Return the plans of this model from the cache, or an empty collection to keep them."""
        device, work = self._device, (self.original, self.specs)
        if not isinstance(device, KeepsPlans) or device.plans is None:
            return KeptPlans(None, None, ())
        name = name_of(*work, self.options, device, preserve=self.preserve)
        return KeptPlans(device.plans, name, constants(*work))

    @cached_property
    def _planner(self) -> "Planner":
        """Return the planner, which a model with kept plans does without."""
        from litecl.delegate.planner import Planner

        assert self._device is not None
        work = self.original, self.specs, self.options, self._device
        planner = Planner(*work, self._in_float, preserve=self.preserve)
        if planner.learns:
            self._kept.drop()  # it provides values that no entry holds
        return planner

    def report(self) -> DelegationReport:
        """Report where each node ran, and why."""
        return DelegationReport(
            device="none" if self._device is None else self._device.name,
            nodes=self._detailed(),
            partitions=partition_rows(self._programs),
            counters=replace(self.counters),
            build_s=self._build_s,
            cache_hits=self._cache_hits,
            kernels=self._kernel_rows(),
            failures=tuple(self.failures),
            passed_over=tuple(self.passed_over),
            phases=dict(self._phases),
            warm_up=self.warm_up,
            copies=tuple(row for program in self._programs.values() for row in program.copies),
            halves=self._halves(),
            dynamic_range=self.options.dynamic_range if is_dynamic(self.original) else "",
            deterministic=steady(self._rows, self.original, self.specs) if self.options.deterministic else "",
            threads=self._threads(),
        )

    def _threads(self) -> int | None:
        target = None if self._device is None else self._device.target
        return target.compute_units if isinstance(target, CpuTarget) else None

    def _halves(self) -> str:
        """Describe the use of half precision in one line; "" without any."""
        if self._device is None:
            return ""
        lines = []
        if self.options.halves:
            kept = f"; {counted(len(self._in_float), 'node')} kept in float32" if self._in_float else ""
            lines.append(f"fp16: large weights are halves, arithmetic is in float32{kept}")
        ends = (operand for plan in self.plans.values() for operand in (*plan.inputs, *plan.outputs))
        if any(operand.spec.type == TensorType.FLOAT16 for operand in ends):
            lines.append("FLOAT16 tensors are float32 within regions, and rounded where they leave one")
        return "; ".join(lines)

    def _detailed(self) -> tuple[NodeRow, ...]:
        """Return the rows with details, which stay until a failed region replaces the rows."""
        rows, (known, detailed) = self._rows, self._details
        if known is not rows:
            detailed = self._details_of(rows)
            self._details = rows, detailed
        return detailed

    def _details_of(self, rows: Sequence[NodeRow]) -> tuple[NodeRow, ...]:
        works = [work for program in self._programs.values() for work in program.plan.works]
        launched = [((w.subgraph, w.node), kernel_name(w.launch.kernel, w.launch.entry)) for w in works]
        merged = {part: node for plan in self.plans.values() for part, node in plan.merged.items()}
        return with_details(rows, self.original, self.specs, launched, merged)

    @property
    def device(self) -> Device | None:
        """Return the device, None if no device is usable."""
        return self._device

    @property
    def plans(self) -> dict[int, Plan]:
        """Return the plan of every region by its number."""
        return {number: program.plan for number, program in self._programs.items()}

    def _kernel_rows(self) -> tuple[KernelRow, ...]:
        """Return the device times of launches. A region whose device fails to report them has none, and is logged."""
        rows: list[KernelRow] = []
        for program in self._programs.values():
            try:
                rows += program.kernel_rows()
            except DelegateError as error:
                if self.options.strict:
                    raise
                warn(f"region {program.partition} has no times: {summary(error)}")
        return tuple(rows)

    def _subgraphs(self) -> tuple[Subgraph, ...]:
        """Rewrite the subgraphs that the CPU enters; those absorbed into regions, or never run, stay as loaded."""
        graphs, waiting = list(self.original.subgraphs), sorted(self._entries())
        self._called = set(reached(self.original, [node for i in waiting for node in graphs[i].nodes]))
        done: set[int] = set()
        while waiting:
            index = waiting.pop(0)
            if index not in done:
                done.add(index)
                graphs[index] = self._subgraph(index, graphs[index])
                waiting += [callee for node in graphs[index].nodes for callee in callees_of(node)]
        self._report_others(done)
        self._rows.sort(key=lambda row: (row.subgraph, row.node))
        return tuple(graphs)

    def _entries(self) -> set[int]:
        return {*entries(self.original)}

    def _subgraph(self, index: int, graph: Subgraph) -> Subgraph:
        parts, known = self._partition(index, graph)
        built = {
            region.nodes: node
            for region in parts.regions
            if (node := self._build(region, (*known, *(graph.nodes[i] for i in region.nodes)), parts))
        }
        self._report(index, graph, parts)
        if not built:
            return graph
        runs = [[built[run]] if run in built else [graph.nodes[i] for i in run] for run in parts.order]
        nodes = [node for run in runs for node in run]
        wanted = {*graph.outputs, *(t for node in nodes for t in node.inputs)}
        nodes[:0] = [node for node in known if self.preserve or not wanted.isdisjoint(node.outputs)]
        if index in self._entries() and index not in self._called:
            on_cpu = {t for n in nodes if n not in built.values() for t in n.inputs}
            self._shared[index] = share_memory(index, graph, on_cpu, self._programs.values())
        return replace(graph, nodes=tuple(nodes))

    def _partition(self, index: int, graph: Subgraph) -> tuple[Partitioning, tuple[Node, ...]]:
        """Return the regions of a subgraph, and the nodes that provide values which only the planned model knows."""
        try:
            if (kept := self._kept.partitioning(index)) is not None:
                return kept, ()
            if self._device is not None:
                with typed_planning(f"partitioning subgraph {index}"), phase("partition"):
                    parts = self._planner.partition(index)
                    self._kept.note(index, parts)
                    return parts, self._planner.learned(index)
        except DelegateError as error:
            self._fail(error)
        return Partitioning((), dict.fromkeys(range(len(graph.nodes)), self.failures[-1]), ()), ()

    def input_memory(self, subgraph: int) -> Mapping[int, Array]:
        """See ``Delegation.input_memory``."""
        return self._shared[subgraph][0] if subgraph in self._shared else {}

    def copied_inputs(self, subgraph: int) -> Collection[int]:
        """See ``Delegation.copied_inputs``."""
        return self._shared[subgraph][1] if subgraph in self._shared else ()

    @property
    def memory_bytes(self) -> int:
        """See ``Delegation.memory_bytes``."""
        programs = self._programs.values()
        return sum(p.plan.arena.size_bytes + p.binding.own_bytes for p in programs) + sum(constant_bytes(programs))

    # Buffers that outlive a run

    def new_buffer(self, size_bytes: int) -> Buffer | None:
        """See ``Delegation.new_buffer``."""
        return None if self._keeper is None else self._keeper.new_buffer(size_bytes)

    def takes(self, buffer: Buffer) -> bool:
        """See ``Delegation.takes``."""
        return self._keeper is not None and self._keeper.takes(buffer)

    @cached_property
    def _keeper(self) -> KeepsTensors | None:
        return self._device if isinstance(self._device, KeepsTensors) else None

    def count(self, moved: Moved) -> None:
        """See ``Delegation.count``."""
        self.counters.end(moved)

    def use(self, subgraph: int, buffers: Mapping[int, Buffer]) -> Collection[int]:
        """See ``Delegation.use``."""
        if not buffers:
            for program, _ in self._free(subgraph):
                program.use(buffers)
            return ()
        programs, asked, _ = last = self._asked.get(subgraph, (0, None, ()))
        if buffers is not asked or programs != len(self._programs):
            last = self._asked[subgraph] = len(self._programs), buffers, self._allot(subgraph, buffers)
        return {tensor for program, given in last[2] for tensor in program.use(given)}

    def _allot(self, subgraph: int, buffers: Mapping[int, Buffer]) -> Allotted:
        """Split buffers among the regions of a subgraph. Raises ModelError for a buffer of another context."""
        graph = self.model.subgraphs[subgraph]
        for tensor, buffer in buffers.items():
            if self._device is not None and not self.takes(buffer) and not isinstance(buffer, HostBuffer):
                raise ModelError(
                    f"{graph.tensors[tensor].name!r}: the buffer is of another OpenCL context than the model: compile "
                    "the model for the buffer's context (EnvironmentOptions(cl_context=...), CLDelegate(context))"
                )
        taken = {t: b for t, b in buffers.items() if self.takes(b)}
        return [(p, {t: b for t, b in taken.items() if t in free}) for p, free in self._free(subgraph)]

    def updates(self, subgraph: int) -> Mapping[int, int] | None:
        """See ``Delegation.updates``."""
        if not self._surely_ends(subgraph):
            return None
        updates: dict[int, int] = {}
        for program, free in self._free(subgraph):
            inputs = zip(program.plan.region.inputs, program.plan.inputs, strict=True)
            given = {operand: tensor for tensor, operand in inputs if tensor in free}
            updated = program.binding.updated.items()
            updates |= {t: given[o] for o, results in updated if o in given for t in results if t in free}
        return updates

    def _surely_ends(self, subgraph: int) -> bool:
        """Return whether only a device fault can end a run of an entry subgraph early."""
        nodes, free = self.model.subgraphs[subgraph].nodes, self._free(subgraph)
        return len(nodes) == len(free) == 1 and not free[0][0].is_bounded

    def quick(self, subgraph: int, inputs: Mapping[int, Array]) -> InPlace | None:
        """See ``Delegation.quick``."""
        if not self._surely_ends(subgraph):
            return None
        ((program, _),) = self._free(subgraph)
        return on_buffers(program, inputs, self.counters, _raise)

    def _free(self, subgraph: int) -> Sequence[tuple[Program, Collection[int]]]:
        """Return the regions of a subgraph, each with the tensors that may lie in buffers: those that no other node
        reads, and that share no other tensor's memory.
        """
        regions = [p for p in self._programs.values() if p.plan.region.subgraph == subgraph]
        if subgraph not in self._buffers:
            graph = self.model.subgraphs[subgraph]
            entered = regions if subgraph not in self._called else []
            self._buffers[subgraph] = [(p, {t for t in p.binding.tensors if _is_alone(graph, t)}) for p in entered]
        return [(program, free) for program, free in self._buffers[subgraph] if program in regions]

    # Regions

    def _build(self, region: Region, nodes: tuple[Node, ...], parts: Partitioning) -> Node | None:
        """Return the node that runs a region, or None if the device fails to build it. nodes: the CPU's fallback if the
        region fails at run time.
        """
        assert self._device is not None
        number = len(self._programs)
        try:
            program = self._program(region, self._device, number)
        except DelegateError as error:
            self._fail(error)
            parts.reasons.update(dict.fromkeys(region.nodes, f"device failure: {summary(error)}"))
            return None
        if program.manner.fault:
            warn(f"a region on {self._device.name} is {program.manner}")
        self._programs[number] = program
        return region_node(program, nodes, self.counters, _weakly(self.run_failed))

    def _program(self, region: Region, device: Device, number: int) -> Program:
        with host_memory("preparing a region"):
            with phase("look up"):
                planned = self._kept.plan(region)
            if planned is None:
                with typed_planning("planning a region"), phase("plan"):
                    planned = self._planner.plan(region, number)
                    self._kept.note_plan(planned)
            _reserve(planned)
            with phase("upload"):
                return Program(planned, device, number, self.options)

    def _report(self, index: int, graph: Subgraph, parts: Partitioning) -> None:
        regions = {number: program.plan.region for number, program in self._programs.items()}
        numbers = {i: n for n, region in regions.items() if region.subgraph == index for i in region.nodes}
        for i, node in enumerate(graph.nodes):
            reason = parts.reasons.get(i, "")
            claimed = i in numbers or (reason == FOLDED and bool(numbers))
            self._rows.append(NodeRow(index, i, node.op.name, claimed, numbers.get(i), reason))

    def _report_others(self, done: set[int]) -> None:
        """Report the nodes of subgraphs that were absorbed into regions, and of those that never run."""
        absorbed, graphs = dict[int, int](), self.original.subgraphs
        for number, program in self._programs.items():
            region = program.plan.region
            nodes = [graphs[region.subgraph].nodes[i] for i in region.nodes]
            absorbed = dict.fromkeys(reached(self.original, nodes), number) | absorbed
        for index in {*range(len(graphs))} - done:
            outcome = index in absorbed, absorbed.get(index), "" if index in absorbed else "nothing runs this subgraph"
            self._rows += [NodeRow(index, i, node.op.name, *outcome) for i, node in enumerate(graphs[index].nodes)]

    def _fail(self, error: DelegateError) -> None:
        if self.options.strict:
            raise error
        self.failures.append(summary(error))
        warn(f"a region, or a whole model, runs on the CPU, because its device failed: {self.failures[-1]}")

    def run_failed(self, program: Program, error: DelegateError) -> None:
        """Move a region that failed at run time to the CPU for good; the next model reopens the device."""
        self.usable = False
        if not isinstance(error, OutOfDeviceMemory):
            forget(self._device)
        self._fail(error)
        self._programs.pop(program.partition, None)
        number, reason = program.partition, f"device failure: {self.failures[-1]}"
        self._rows = [
            replace(row, claimed=False, partition=None, reason=reason) if row.partition == number else row
            for row in self._rows
        ]


@contextmanager
def typed_planning(doing: str) -> Iterator[None]:
    """Convert any planning error to DelegateError, so that the CPU runs those nodes."""
    try:
        yield
    except DelegateError:
        raise
    except Exception as error:
        raise DelegateError(f"{doing} failed: {type(error).__name__}: {error}") from error


def _reserve(planned: Plan) -> None:
    """Charge a region's memory to the memory limit, if any. Raises OutOfDeviceMemory, so that the CPU takes it."""
    named = {arg for work in planned.works for arg in work.launch.args if isinstance(arg, Operand | Const)}
    constants = sum(item.data.nbytes for item in named if item.data is not None)
    apart = sum(operand.size_bytes for operand in planned.apart)
    try:
        limits.reserve(planned.arena.size_bytes + apart + constants)
    except LimitError as error:
        raise OutOfDeviceMemory(f"the region {error}") from None


def _weakly(failed: Failed) -> Failed:
    """Return a method as a function that doesn't keep its object alive, and raises the error once that is gone."""
    reference = WeakMethod(failed)

    def call(program: Program, error: DelegateError) -> None:
        if (method := reference()) is None:
            raise error
        method(program, error)

    return call


def _raise(error: Exception) -> None:
    raise error


def _is_alone(graph: Subgraph, tensor: int) -> bool:
    """Return whether a tensor has a single use: one node reads it, or it is an output that no node reads."""
    readers = [node for node in graph.nodes if tensor in node.inputs]
    return len(readers) + graph.outputs.count(tensor) == 1
