"""Inputs and outputs of a subgraph in buffers that outlive a run, without a copy."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from litecl.delegate.backend.direct import on_buffers
from litecl.delegate.backend.program import Program
from litecl.delegate.backend.protocols import Device, KeepsTensors
from litecl.delegate.report import Counters
from litecl.interpreter.buffers import Buffer, HostBuffer
from litecl.interpreter.delegation import Moved
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, Model, Subgraph
from litecl.interpreter.op import InPlace

Allotted = Sequence[tuple[Program, Mapping[int, Buffer]]]


class OnBuffers:
    """The methods of a delegation that concern buffers; see ``Delegation``."""

    model: Model
    counters: Counters
    _device: Device | None
    _programs: dict[int, Program]
    _called: set[int]  # subgraphs that nodes run

    def new_buffer(self, size_bytes: int) -> Buffer | None:
        """See ``Delegation.new_buffer``."""
        return None if self._keeper is None else self._keeper.new_buffer(size_bytes)

    def takes(self, buffer: Buffer) -> bool:
        """See ``Delegation.takes``."""
        return self._keeper is not None and self._keeper.takes(buffer)

    @cached_property
    def _buffers(self) -> dict[int, Sequence[tuple[Program, Collection[int]]]]:
        """The regions of subgraphs, each with the tensors that may lie in buffers."""
        return {}

    @cached_property
    def _asked(self) -> dict[int, tuple[int, Mapping[int, Buffer] | None, Allotted]]:
        """The buffers that were last asked for, by subgraph: how many regions there were, and what each got."""
        return {}

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
        """Return the regions of a subgraph, each with the buffers that it uses."""
        graph = self.model.subgraphs[subgraph]
        for tensor, buffer in buffers.items():
            if self._device is not None and not self.takes(buffer) and not isinstance(buffer, HostBuffer):
                raise ModelError(
                    f"{graph.tensors[tensor].name!r}: the buffer is of another OpenCL context than the model: compile "
                    "the model for the buffer's context (EnvironmentOptions(cl_context=...), CLDelegate(context))"
                )
        taken = {t: b for t, b in buffers.items() if self.takes(b)}
        return [(p, {t: b for t, b in taken.items() if t in free}) for p, free in self._free(subgraph)]

    def updates(self, subgraph: int) -> Mapping[int, int]:
        """See ``Delegation.updates``."""
        if not self.surely_ends(subgraph):
            return {}
        found: dict[int, int] = {}
        for program, free in self._free(subgraph):
            inputs = zip(program.plan.region.inputs, program.plan.inputs, strict=True)
            given = {operand: tensor for tensor, operand in inputs if tensor in free}
            updated = program.binding.updated.items()
            found |= {t: given[o] for o, results in updated if o in given for t in results if t in free}
        return found

    def surely_ends(self, subgraph: int) -> bool:
        """See ``Delegation.surely_ends``."""
        nodes, free = self.model.subgraphs[subgraph].nodes, self._free(subgraph)
        return len(nodes) == len(free) == 1 and not free[0][0].is_bounded

    def quick(self, subgraph: int, inputs: Mapping[int, Array]) -> InPlace | None:
        """See ``Delegation.quick``."""
        if not self.surely_ends(subgraph):
            return None
        ((program, _),) = self._free(subgraph)
        return on_buffers(program, inputs, self.counters, _raise)

    def _free(self, subgraph: int) -> Sequence[tuple[Program, Collection[int]]]:
        """Return the regions of a subgraph, each with the tensors that may lie in buffers. The others are read by the
        CPU or by several regions, or are another tensor's memory.
        """
        regions = [p for p in self._programs.values() if p.plan.region.subgraph == subgraph]
        if subgraph not in self._buffers:
            graph = self.model.subgraphs[subgraph]
            entered = regions if subgraph not in self._called else []
            self._buffers[subgraph] = [(p, {t for t in p.binding.tensors if _is_alone(graph, t)}) for p in entered]
        return [(program, free) for program, free in self._buffers[subgraph] if program in regions]


def _raise(error: Exception) -> None:
    raise error


def _is_alone(graph: Subgraph, tensor: int) -> bool:
    """Return whether an input is read by one node, or an output by none, and nothing else is made of it."""
    readers = [node for node in graph.nodes if tensor in node.inputs]
    return len(readers) + graph.outputs.count(tensor) == 1
