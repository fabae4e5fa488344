"""The inputs and outputs of a subgraph that may be in the user's buffers, without a copy."""

from collections.abc import Collection, Mapping
from itertools import combinations

from litecl.delegate.backend.program import Program
from litecl.delegate.backend.protocols import Device, UserBuffer
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Subgraph


def use(
    graph: Subgraph, programs: Collection[Program], device: Device | None, buffers: Mapping[int, UserBuffer]
) -> Collection[int]:
    """Let inputs and outputs lie in the user's buffers in the runs that follow; return those that now do.

    graph: as rewritten. programs: of its regions. The others are read by the CPU, by several regions, or are another
    tensor's memory: whoever gave the buffers must copy. Raises ModelError for buffers that do not fit.
    """
    _check(device, buffers, graph)
    found: set[int] = set()
    for program in programs:
        free = {t for t in program.own_memory if t in buffers and _is_alone(graph, t)}
        program.use({tensor: buffers[tensor] for tensor in sorted(free)})
        found |= free
    return found


def _is_alone(graph: Subgraph, tensor: int) -> bool:
    """Return whether an input is read by one node, or an output by none, and nothing else is made of it."""
    readers = [node for node in graph.nodes if tensor in node.inputs]
    return len(readers) + graph.outputs.count(tensor) == 1


def _check(device: Device | None, buffers: Mapping[int, UserBuffer], graph: Subgraph) -> None:
    """Raise ModelError for a buffer of another context, and for an output that lies where something else does."""
    for tensor, buffer in buffers.items():
        name = graph.tensors[tensor].name
        if device is not None and not buffer.belongs_to(device):
            raise ModelError(
                f"{name!r}: the buffer is of another OpenCL context than the model: compile the model for the buffer's "
                "context (EnvironmentOptions(cl_context=...), CLDelegate(context))"
            )
    for (one, first), (other, second) in combinations(buffers.items(), 2):
        if {one, other} & {*graph.outputs} and first.overlaps(second):
            names = graph.tensors[one].name, graph.tensors[other].name
            raise ModelError(f"{names[0]!r} and {names[1]!r} share memory, and one of them is written")
