"""The launches of a node, and what they need of a group of work-items."""

from math import prod

from litecl.delegate.cl_op import Call, ClOp, Launch, Local, Step


def lowered(cl_op: ClOp, call: Call) -> list[Step]:
    """Return the steps of a node, by the lowering for GPUs where there is one that suits."""
    on_gpu = cl_op.on_gpu(call) if cl_op.on_gpu is not None and call.target.kind == "gpu" else None
    return cl_op.lower(call) if on_gpu is None else on_gpu


def waits(launch: Launch) -> bool:
    """Return whether work-items wait for others of their group."""
    return not launch.apart and prod(launch.local_size) > 1


def local_bytes(launch: Launch) -> int:
    """Return the local memory of a group that is an argument."""
    return sum(arg.size_bytes for arg in launch.args if isinstance(arg, Local))
