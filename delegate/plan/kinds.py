"""Selects how regions are planned: for CPUs or for GPUs."""

from litecl.delegate.cl_op import Target
from litecl.delegate.plan.kind import Kind
from litecl.delegate.plan.pipeline import fused
from litecl.delegate.recurrent import lstm_cell

_CPU = Kind(fused, lambda request, subgraph: request, lambda steps, slots, place: steps, lstm_cell.run, lends=True)


def kind_of(target: Target) -> Kind:
    """Return a target's kind."""
    return target.either(lambda: _CPU, _gpu)()


def _gpu() -> Kind:
    from litecl.delegate.plan.gpu.kind import GPU  # a process without a GPU needn't load its passes

    return GPU
