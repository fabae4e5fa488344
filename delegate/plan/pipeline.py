"""The passes over a region's graph, in order."""

from collections.abc import Callable, Sequence
from importlib import import_module

from litecl.delegate.plan import passes as modules
from litecl.delegate.plan.graph import RegionGraph
from litecl.delegate.plan.passes.chains import chains
from litecl.delegate.plan.passes.coordinates import coordinates
from litecl.delegate.plan.passes.epilogues import epilogues
from litecl.delegate.plan.passes.in_place import in_place
from litecl.delegate.plan.passes.joins import joins
from litecl.delegate.plan.passes.pads import pads
from litecl.delegate.plan.passes.parts import parts

Pass = Callable[[RegionGraph], RegionGraph]
Observer = Callable[[str, RegionGraph], None]


def seldom(module: str, name: str, operators: str) -> Pass:
    """Return a pass whose module is imported only for graphs with one of these operators; others it leaves alone."""
    wanted = frozenset(operators.split())

    def run(graph: RegionGraph) -> RegionGraph:
        if wanted.isdisjoint(node.node.op.name for node in graph.nodes):
            return graph
        run_pass: Pass = getattr(import_module(f"{modules.__name__}.{module}"), name)
        return run_pass(graph)

    run.__name__ = name
    return run


PASSES: tuple[Pass, ...] = (
    in_place,
    parts,
    coordinates,
    seldom("weight_only", "weight_only", "FULLY_CONNECTED EMBEDDING_LOOKUP"),
    seldom("rope", "rope", "CONCATENATION"),
    seldom("attention", "attention", "BATCH_MATMUL"),
    seldom("layer_norms", "rms_norms", "MEAN"),
    pads,
    seldom("siblings", "siblings", "CONV_2D"),
    epilogues,
    seldom("product_sums", "product_sums", "SUM MEAN"),
    seldom("elementwise", "elementwise", "SUB MUL DIV SELECT SELECT_V2 EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL"),
    chains,
    seldom("bands", "bands", "DEPTHWISE_CONV_2D"),
    joins,
)


def fused(graph: RegionGraph, observe: Observer | None = None, *, passes: Sequence[Pass] = PASSES) -> RegionGraph:
    """Run all passes. observe: called with the name of each and the graph after it. passes: a CPU's by default."""
    report = observe or (lambda name, graph: None)
    report("claimed", graph)
    for run in passes:
        graph = run(graph)
        report(run.__name__, graph)
    return graph
