"""How regions are planned for CPUs and for GPUs."""

from litecl.delegate.cl_op import Target
from litecl.delegate.plan.kind import Kind
from litecl.delegate.plan.pipeline import fused
from litecl.delegate.recurrent import lstm_cell

_CPU = Kind(fused, lambda planning, subgraph: planning, lambda steps, slots, place: steps, lstm_cell.run, lends=True)


def kind_of(target: Target) -> Kind:
    """Return the kind of a device."""
    return target.either(lambda: _CPU, _gpu)()


def _gpu() -> Kind:
    from litecl.delegate.plan.gpu.kind import GPU  # a process without one has no use for its passes

    return GPU
