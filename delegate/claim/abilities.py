"""Reasons not to run a kernel on a device: requirements that the device does not meet."""

from collections.abc import Sequence
from math import prod

from litecl.delegate.cl_op import Call, ClOp, Launch, Operand, Target
from litecl.interpreter.graph import Node, TensorSpec


def beyond(
    target: Target,
    cl_op: ClOp,
    node: Node,
    inputs: Sequence[TensorSpec | None],
    outputs: Sequence[TensorSpec],
    *,
    is_users: bool,
) -> str | None:
    """Return the requirement of a kernel that a device does not meet, or None. is_users: whether the kernel is a
    user's; litecl's own size their groups to the device.
    """
    if not target.float64 and cl_op.float64(node.options, inputs, outputs):
        return "its kernel computes in float64, and the device does not"
    if cl_op.cpu_only and target.memory != "host":
        return f"no kernel for {node.op.name} on GPUs"
    if not is_users:
        return None
    launches = _launches(cl_op, node, inputs, outputs[: len(node.outputs)], target)
    return next((reason for launch in launches if (reason := _too_large(launch, target))), None)


def _launches(
    cl_op: ClOp, node: Node, inputs: Sequence[TensorSpec | None], outputs: Sequence[TensorSpec], target: Target
) -> list[Launch]:
    """Lower a node and return its launches; none if its lowering fails, which planning reports."""
    states = [spec for position in cl_op.op.states if (spec := inputs[position]) is not None]
    given = [None if spec is None else Operand(spec) for spec in inputs]
    call = Call(node.options, given, [Operand(spec) for spec in (*outputs, *states)], target)
    try:
        return [step for step in cl_op.steps(call) if isinstance(step, Launch)]
    except Exception:
        return []


def _too_large(launch: Launch, target: Target) -> str | None:
    """Return why a device cannot run a launch's groups: too many work-items or too much local memory; else None."""
    size, most, memory = prod(launch.local_size), target.max_work_group_size, launch.local_bytes
    if launch.waits and size > most:
        return f"its kernel {launch.entry} has groups of {size} work-items, and the device runs at most {most}"
    if memory > target.local_mem_bytes:
        return f"its kernel {launch.entry} takes {memory} bytes of local memory, of {target.local_mem_bytes}"
    return None
