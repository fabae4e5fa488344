"""A region as one node of the model; it falls back to the CPU for good once its device fails."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from litecl.delegate.backend.direct import direct
from litecl.delegate.backend.program import Program
from litecl.delegate.backend.states import NotAsPlanned
from litecl.delegate.report import Counters, PartitionRow
from litecl.delegate.report_details import kernel_name
from litecl.interpreter.errors import ContentLost, DelegateError
from litecl.interpreter.graph import Array, Node, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, InPlace, Inputs, NoOptions
from litecl.interpreter.ops.control import CALL_ONCE
from litecl.interpreter.run.executor import Frame

REGION = "CL_REGION"  # the operator name of a region's node

Failed = Callable[[Program, DelegateError], None]


def region_node(program: Program, nodes: tuple[Node, ...], counters: Counters, failed: Failed) -> Node:
    """Return the node that runs a program; after a fault, it calls ``failed`` and runs ``nodes`` on the CPU."""
    runner, region = _Runner(program, nodes, counters, failed), program.plan.region
    op = ControlOp(REGION, NoOptions, _keep_declared, runner.run, in_place=runner.in_place)
    return Node(op, region.inputs, region.outputs, NoOptions())


class _Runner:
    """Runs a region's program, or its nodes on the CPU once the device has failed."""

    def __init__(self, program: Program, nodes: tuple[Node, ...], counters: Counters, failed: Failed) -> None:
        self._counters, self._tell = counters, failed
        self._program: Program | None = program
        self._nodes = nodes
        self._outputs = program.plan.region.outputs
        self._once = tuple(node.options for node in nodes if node.op is CALL_ONCE)

    def run(self, options: NoOptions, inputs: Inputs, context: Any) -> list[Array]:
        frame: Frame = context
        if self._program is not None:
            self._counters.begin(frame.invocation)
            arrays = [value for value in inputs if value is not None]
            self._initialise(frame)
            try:
                return self._program.run(arrays, frame.variables, self._counters)
            except (DelegateError, NotAsPlanned) as error:
                return self._on_cpu(frame, self._program, error)
        frame.run_nodes(self._nodes)
        return [frame.values[t] for t in self._outputs]

    def _on_cpu(self, frame: Frame, program: Program, error: Exception) -> list[Array]:
        """Run the nodes on the CPU, also on the user's buffers. Raises ContentLost if the run overwrote an input."""
        buffers = program.buffers
        if program.has_overwritten and isinstance(error, DelegateError):
            error = ContentLost(f"tensors that it was writing over are lost: {error}")
        self._failed(error)
        if isinstance(error, ContentLost):
            raise error
        for tensor, operand in zip(program.plan.region.inputs, program.plan.inputs, strict=True):
            if tensor in buffers:
                frame.values[tensor] = np.empty(operand.shape, operand.spec.dtype)
                buffers[tensor].read(frame.values[tensor])
        frame.run_nodes(self._nodes)
        for tensor in {*self._outputs} & buffers.keys():
            buffers[tensor].write(frame.values[tensor])
        return [frame.values[t] for t in self._outputs]

    def in_place(self, inputs: Inputs, outputs: Sequence[int], context: Any) -> InPlace | None:
        """See ``ControlOp.in_place``."""
        frame: Frame = context
        if self._program is None:
            return None
        initialise = partial(self._initialise, frame) if self._once else None
        return direct(self._program, inputs, outputs, frame.variables, self._counters, initialise, self._failed)

    def _initialise(self, frame: Frame) -> None:
        """Give variables their first values (CALL_ONCE)."""
        for options in self._once:
            CALL_ONCE.run(options, (), frame)

    def _failed(self, error: Exception) -> None:
        """Give the region up if its device failed; raise any other error.

        NotAsPlanned isn't a failure: the CPU runs the region once, and may give the variable its planned shape.
        """
        if isinstance(error, NotAsPlanned):
            return
        if not isinstance(error, DelegateError) or self._program is None:
            raise error
        self._tell(self._program, error)
        self._program = None


def _keep_declared(options: NoOptions, inputs: Any) -> list[TensorSpec]:
    return []


def share_memory(
    subgraph: int, graph: Subgraph, on_cpu: Collection[int], programs: Iterable[Program]
) -> tuple[dict[int, Array], set[int]]:
    """Keep inputs that only regions read, and outputs that the CPU doesn't read, in a region's memory; return that
    memory by input, and the inputs that regions only copy. on_cpu: tensors that the CPU reads, and may keep beyond the
    next invoke.
    """
    memory: dict[int, Array] = {}
    own = {*graph.inputs}.difference(on_cpu, graph.outputs)
    regions = [program for program in programs if program.plan.region.subgraph == subgraph]
    for program in regions:
        memory = program.input_memory() | memory
        program.lend({*graph.outputs}.difference(on_cpu))
    kept = {t for p in regions for t in p.plan.region.inputs if t not in p.plan.overwritten}
    copied = {t for p in regions for t in p.plan.overwritten if t in own - kept}
    return {t: array for t, array in memory.items() if t in own}, copied


def constant_bytes(programs: Iterable[Program]) -> list[int]:
    """Return, for every region, the bytes of its constants that no earlier region shares."""
    seen: dict[int, int] = {}
    sizes: list[int] = []
    for program in programs:
        sizes.append(sum(size for part, size in program.constant_parts.items() if part not in seen))
        seen |= program.constant_parts
    return sizes


def partition_rows(programs: Mapping[int, Program]) -> tuple[PartitionRow, ...]:
    """Return the report's rows of regions, by number."""
    rows = zip(programs.items(), constant_bytes(programs.values()), strict=True)
    return tuple(_partition_row(number, program, constants) for (number, program), constants in rows)


def _partition_row(number: int, program: Program, constants: int) -> PartitionRow:
    region = program.plan.region
    return PartitionRow(
        partition=number,
        subgraph=region.subgraph,
        nodes=region.nodes,
        launches=len(program.plan.works),
        arena_bytes=program.plan.arena.size_bytes + program.binding.own_bytes,
        constant_bytes=constants,
        flops=program.plan.flops,
        manner=program.manner,
        loops=program.loops(),
        kernels=tuple(dict.fromkeys(kernel_name(w.launch.kernel, w.launch.entry) for w in program.plan.works)),
    )
