"""The passes over a region's graph, in order."""

from collections.abc import Callable, Sequence

from litecl.delegate.plan.graph import RegionGraph
from litecl.delegate.plan.passes.attention import attention
from litecl.delegate.plan.passes.chains import chains
from litecl.delegate.plan.passes.coordinates import coordinates
from litecl.delegate.plan.passes.epilogues import epilogues
from litecl.delegate.plan.passes.in_place import in_place
from litecl.delegate.plan.passes.joins import joins
from litecl.delegate.plan.passes.layer_norms import rms_norms
from litecl.delegate.plan.passes.pads import pads
from litecl.delegate.plan.passes.parts import parts
from litecl.delegate.plan.passes.rope import rope
from litecl.delegate.plan.passes.weight_only import weight_only

Pass = Callable[[RegionGraph], RegionGraph]
Observer = Callable[[str, RegionGraph], None]

PASSES: tuple[Pass, ...] = (
    in_place,
    parts,
    coordinates,
    weight_only,
    rope,
    attention,
    rms_norms,
    pads,
    epilogues,
    chains,
    joins,
)


def fused(graph: RegionGraph, observe: Observer | None = None, *, passes: Sequence[Pass] | None = None) -> RegionGraph:
    """Return a graph after all passes. observe: called with the name of each and the graph after it. passes: those of
    CPUs by default.
    """
    told = observe or (lambda name, graph: None)
    told("claimed", graph)
    for run in PASSES if passes is None else passes:
        graph = run(graph)
        told(run.__name__, graph)
    return graph
