"""The public delegate: claims what an OpenCL device can run and leaves the rest, with reasons, to the CPU."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from litecl.delegate import disk
from litecl.delegate.cl_op import ClOp
from litecl.delegate.control import FOLDED, callees_of, reached
from litecl.delegate.cost import work_flops
from litecl.delegate.device import Device, choose
from litecl.delegate.list_writes import update_lists_in_place
from litecl.delegate.options import CLOptions, Precision, node_set
from litecl.delegate.partition import Partitioning, Region, partition
from litecl.delegate.plan import plan
from litecl.delegate.report import Counters, DelegationReport, NodeRow, PartitionRow
from litecl.delegate.runner import Program
from litecl.delegate.tuning import Tuning, load
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.executor import Frame
from litecl.interpreter.graph import Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, Inputs, NoOptions
from litecl.interpreter.shapes import propagate

_DEVICES: dict[tuple[int, bool, Path | None], Device] = {}


class CLDelegate:
    """Runs parts of a model on an OpenCL device; pass it as ``Interpreter(model, delegates=[CLDelegate()])``.

    device: a pyopencl Device, a fragment of its name or its index; None picks a GPU if there is one, else the CPU
        device that suits the model. num_threads: on a CPU device, 1 picks the one that runs in the calling thread.
    precision: "fp32", or "fp16", which stores large weights (over 2**18 elements) of convolutions, matrix products and
        LSTMs as halves, but for those of Winograd's algorithm; activations and arithmetic are float32 in both.
    max_delegated_partitions: keep only so many regions, the largest; None keeps all. min_nodes_per_partition: leave
        smaller regions to the CPU. allow_ops, deny_ops: operator names; deny_nodes: node positions of subgraph 0, or
        (subgraph, node) pairs.
    cache_dir: where program binaries and tunings are kept: "auto" is ``~/.cache/litecl``, None keeps none.
    tuning: None takes what ``litecl devices --tuning`` has measured on the device, or else the defaults.
    profile: take device times of every launch. strict: raise DelegateError where the device fails, instead of
        leaving the region to the CPU. Refusing an operator is no failure.
    max_loop_iterations: of a WHILE on the device each time it runs; one that goes on raises ModelError, and variables
        are as they were before. None lets it go on. On a CPU device a loop runs within one kernel, which nothing
        interrupts; queued loops, as on a GPU, hear Ctrl-C. queue_loops: queue them on a CPU device too.
    custom_ops: device operators of your own, for the records given to ``Interpreter(custom_ops=...)``. Their launches
        name a kernel file by its absolute path, without ``.cl``; it is written as those of litecl are.
    """

    def __init__(
        self,
        device: Any = None,
        *,
        num_threads: int | None = None,
        precision: Precision = "fp32",
        max_delegated_partitions: int | None = None,
        min_nodes_per_partition: int = 1,
        allow_ops: Collection[str] | None = None,
        deny_ops: Collection[str] | None = None,
        deny_nodes: Collection[int | tuple[int, int]] | None = None,
        cache_dir: str | PathLike[str] | None = "auto",
        tuning: Tuning | None = None,
        profile: bool = False,
        strict: bool = False,
        max_loop_iterations: int | None = None,
        queue_loops: bool = False,
        custom_ops: Collection[ClOp] = (),
    ) -> None:
        self.options = CLOptions(
            device=device,
            num_threads=num_threads,
            precision=precision,
            max_delegated_partitions=max_delegated_partitions,
            min_nodes_per_partition=min_nodes_per_partition,
            allow_ops=None if allow_ops is None else frozenset(allow_ops),
            deny_ops=frozenset(deny_ops or ()),
            deny_nodes=node_set(deny_nodes or ()),
            cache_dir=cache_dir,
            tuning=tuning,
            profile=profile,
            strict=strict,
            max_loop_iterations=max_loop_iterations,
            queue_loops=queue_loops,
            custom_ops=tuple(custom_ops),
        )

    def apply(
        self, model: Model, specs: Sequence[Sequence[TensorSpec]], *, preserve_all_tensors: bool = False
    ) -> "CLDelegation":
        """Partitions, plans and builds; see ``Delegate.apply``. Raises DelegateError only if ``strict``."""
        delegation = CLDelegation(model, specs, self.options, preserve_all_tensors)
        delegation.prepare()
        return delegation


@dataclass
class CLDelegation:
    """One model with its regions on one device."""

    original: Model
    specs: Sequence[Sequence[TensorSpec]]
    options: CLOptions
    preserve: bool
    model: Model = field(init=False)
    planned: Model = field(init=False)  # the model as regions are made of it, node by node like the original
    planned_specs: Sequence[Sequence[TensorSpec]] = field(init=False)
    counters: Counters = field(default_factory=Counters)
    failures: list[str] = field(default_factory=list)
    _device: Device | None = None
    _programs: dict[int, Program] = field(default_factory=dict)
    _rows: list[NodeRow] = field(default_factory=list)
    _called: set[int] = field(default_factory=set)  # subgraphs that nodes run
    _input_memory: dict[int, dict[int, Array]] = field(default_factory=dict)
    _build_s: float = 0.0
    _cache_hits: int = 0

    def prepare(self) -> None:
        """Rewrites the model, subgraph by subgraph."""
        self.planned, self.planned_specs = update_lists_in_place(self.original, self.specs), self.specs
        if self.planned is not self.original:
            graphs = self.original.subgraphs
            shapes = {i: [self.specs[i][t].static_shape for t in graphs[i].inputs] for i in self._entries()}
            self.planned_specs = propagate(self.planned, shapes)
        start_s = time.perf_counter()
        try:
            self._device = _open(self.options, work_flops(self.original, self.specs))
            hits_before = self._device.programs.cache_hits
        except DelegateError as error:
            self._fail(error)
        self.model = replace(self.original, subgraphs=self._subgraphs())
        self._build_s = time.perf_counter() - start_s
        if self._device is not None:
            self._cache_hits = self._device.programs.cache_hits - hits_before

    def report(self) -> DelegationReport:
        """What ran where and why."""
        programs = self._programs.items()
        return DelegationReport(
            device="none" if self._device is None else self._device.name,
            nodes=tuple(self._rows),
            partitions=tuple(_partition_row(number, program) for number, program in programs),
            counters=replace(self.counters),
            build_s=self._build_s,
            cache_hits=self._cache_hits,
            kernels=tuple(row for _, program in programs for row in program.kernel_rows()),
            failures=tuple(self.failures),
        )

    def _subgraphs(self) -> tuple[Subgraph, ...]:
        """Every subgraph rewritten, but for those that only regions run: these are part of the regions."""
        graphs = list(self.original.subgraphs)
        self._called = set(reached(self.original, [node for graph in graphs for node in graph.nodes]))
        waiting = [i for i in range(len(graphs)) if i not in self._called or i in self._entries()]
        done: set[int] = set()
        while waiting:
            index = waiting.pop(0)
            if index not in done:
                done.add(index)
                graphs[index] = self._subgraph(index, graphs[index])
                waiting += [callee for node in graphs[index].nodes for callee in callees_of(node)]
        self._report_absorbed(done)
        self._rows.sort(key=lambda row: (row.subgraph, row.node))
        return tuple(graphs)

    def _entries(self) -> set[int]:
        return {0, *(signature.subgraph for signature in self.original.signatures)}

    def _basis(self, index: int) -> tuple[Model, Sequence[Sequence[TensorSpec]]]:
        """What regions of a subgraph are made of: the original where the CPU runs some of what was changed in it."""
        changed = self.planned.subgraphs[index] is not self.original.subgraphs[index]
        return (self.original, self.specs) if changed else (self.planned, self.planned_specs)

    def _subgraph(self, index: int, graph: Subgraph) -> Subgraph:
        parts = partition(index, *self._basis(index), self.options, preserve=self.preserve)
        if self._device is None:
            parts = Partitioning((), dict.fromkeys(range(len(graph.nodes)), self.failures[-1]), ())
        built = {region.nodes: node for region in parts.regions if (node := self._build(region, graph, parts))}
        self._report(index, graph, parts)
        if not built:
            return graph
        nodes = [n for run in parts.order for n in ([built[run]] if run in built else [graph.nodes[i] for i in run])]
        if index in self._entries() and index not in self._called:
            self._share_memory(index, graph, {t for n in nodes if n not in built.values() for t in n.inputs})
        return replace(graph, nodes=tuple(nodes))

    def _share_memory(self, index: int, graph: Subgraph, on_cpu: Collection[int]) -> None:
        """Inputs that only regions read are set in a region's memory, outputs that nobody else reads stay in it.

        on_cpu: tensors that the CPU reads, which may keep an array for longer than until the next invoke.
        """
        memory: dict[int, Array] = {}
        for program in self._programs.values():
            if program.plan.region.subgraph == index:
                memory = program.input_memory() | memory
                program.lend({*graph.outputs}.difference(on_cpu))
        own = {*graph.inputs}.difference(on_cpu, graph.outputs)
        self._input_memory[index] = {t: array for t, array in memory.items() if t in own}

    def input_memory(self, subgraph: int) -> Mapping[int, Array]:
        """See ``Delegation.input_memory``."""
        return self._input_memory.get(subgraph, {})

    def _build(self, region: Region, graph: Subgraph, parts: Partitioning) -> Node | None:
        """The node that runs a region, or None where the device fails to build it."""
        assert self._device is not None
        number = len(self._programs)
        try:
            model, specs = self._basis(region.subgraph)
            alignment = self._device.alignment
            tuning = _tuning(self.options, self._device.device)
            target = replace(self._device.target, half_weights=self.options.precision == "fp16", tuning=tuning)
            planned = plan(region, model, specs, target, alignment, self.options.cl_ops)
            program = Program(planned, self._device, number, self.options)
        except DelegateError as error:
            self._fail(error)
            parts.reasons.update(dict.fromkeys(region.nodes, f"device failure: {_first_line(error)}"))
            return None
        self._programs[number] = program
        runner = _RegionRunner(self, program, tuple(graph.nodes[i] for i in region.nodes))
        op = ControlOp("CL_REGION", NoOptions, _keep_declared, runner.run)
        return Node(op, region.inputs, region.outputs, NoOptions())

    def _report(self, index: int, graph: Subgraph, parts: Partitioning) -> None:
        regions = {number: program.plan.region for number, program in self._programs.items()}
        numbers = {i: n for n, region in regions.items() if region.subgraph == index for i in region.nodes}
        for i, node in enumerate(graph.nodes):
            reason = parts.reasons.get(i, "")
            claimed = i in numbers or (reason == FOLDED and bool(numbers))
            self._rows.append(NodeRow(index, i, node.op.name, claimed, numbers.get(i), reason))

    def _report_absorbed(self, done: set[int]) -> None:
        """The nodes of subgraphs that run only as part of a region."""
        for number, program in self._programs.items():
            region = program.plan.region
            graph = self.original.subgraphs[region.subgraph]
            absorbed = set(reached(self.original, [graph.nodes[i] for i in region.nodes]))
            for index in sorted(absorbed - done):
                done.add(index)
                nodes = enumerate(self.original.subgraphs[index].nodes)
                self._rows += [NodeRow(index, i, node.op.name, True, number, "") for i, node in nodes]

    def _fail(self, error: DelegateError) -> None:
        if self.options.strict:
            raise error
        self.failures.append(_first_line(error))

    def run_failed(self, program: Program, error: DelegateError) -> None:
        """A region failed at run time: it goes back to the CPU for good."""
        self._fail(error)
        self._programs.pop(program.partition, None)
        number, reason = program.partition, f"device failure: {_first_line(error)}"
        self._rows = [
            replace(row, claimed=False, partition=None, reason=reason) if row.partition == number else row
            for row in self._rows
        ]


class _RegionRunner:
    """Runs a region's program, and its nodes on the CPU once the device has failed."""

    def __init__(self, delegation: CLDelegation, program: Program, nodes: tuple[Node, ...]) -> None:
        self._delegation = delegation
        self._program: Program | None = program
        self._nodes = nodes
        self._outputs = program.plan.region.outputs
        self._states = tuple((program.plan.region.subgraph, state.tensor) for state in program.plan.states)

    def run(self, options: NoOptions, inputs: Inputs, context: Any) -> list[Array]:
        frame: Frame = context
        if self._program is not None:
            counters = self._delegation.counters
            counters.begin(frame.invocation)
            arrays = [value for value in inputs if value is not None]
            try:
                return self._program.run(arrays, frame.variables, self._states, counters)
            except DelegateError as error:
                self._delegation.run_failed(self._program, error)
                self._program = None
        frame.run_nodes(self._nodes)
        return [frame.values[t] for t in self._outputs]


def _open(options: CLOptions, flops: float) -> Device:
    """The device for these options; contexts and programs are shared between models."""
    directory = disk.folder(options.cache_dir)
    chosen = choose(options.device, options.num_threads, flops, partial(_tuning, options), directory)
    key = (chosen.int_ptr, options.profile, directory)
    if key not in _DEVICES:
        _DEVICES[key] = Device(chosen, options.profile, directory)
    return _DEVICES[key]


def _tuning(options: CLOptions, device: Any) -> Tuning:
    return options.tuning or load(disk.folder(options.cache_dir), device)


def _keep_declared(options: NoOptions, inputs: Any) -> list[TensorSpec]:
    return []


def _partition_row(number: int, program: Program) -> PartitionRow:
    region = program.plan.region
    return PartitionRow(
        partition=number,
        subgraph=region.subgraph,
        nodes=region.nodes,
        launches=len(program.plan.works),
        arena_bytes=program.plan.arena.size_bytes,
        constant_bytes=program.constant_bytes,
        flops=sum(work.launch.flops for work in program.plan.works),
        loops=program.loops(),
    )


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
