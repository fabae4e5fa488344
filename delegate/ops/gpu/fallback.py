"""Lowerings for GPUs that suit some shapes: those of others are lowered as on any device."""

from collections.abc import Callable

from litecl.delegate.cl_op import Lowering, Step
from litecl.delegate.gpu.target import GpuCall


def or_else(suited: Callable[[GpuCall], list[Step] | None], otherwise: Lowering) -> Callable[[GpuCall], list[Step]]:
    """Return a lowering: the first, and where that returns None the other."""

    def lower(call: GpuCall) -> list[Step]:
        steps = suited(call)
        return otherwise(call) if steps is None else steps

    return lower
