"""Regions as graphs, made without a device: what tests of passes begin with."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from litecl.delegate.cl_op import ClOp, Operand
from litecl.delegate.ops import CL_OPS
from litecl.delegate.plan.graph import RegionGraph, RegionNode, region_graph
from litecl.delegate.plan.inline import as_it_is
from litecl.delegate.plan.pipeline import Pass
from litecl.delegate.plan.text import describe
from litecl.interpreter.op import NoOptions, Op
from support.build import Graph

ALIGNMENT = 64

UPDATE = Op("UPDATE", NoOptions, lambda options, inputs: [inputs[0]], lambda options, x: [x[0], x[0]], states=(1,))
"""Keeps its first input in a variable, its second."""

_CL_OPS = {**CL_OPS, UPDATE: ClOp(UPDATE, lambda options, inputs, outputs: None, lambda call: [])}


def region(
    g: Graph,
    *outputs: int,
    given: Mapping[int, Operand] | None = None,
    owned: Sequence[int] = (),
    is_inner: bool = False,
) -> RegionGraph:
    """All nodes of a graph as one region, nothing fused yet."""
    source = g.build(*outputs)
    graph = region_graph(
        0, as_it_is(source, source.tensors), range(len(source.nodes)), outputs, _CL_OPS, ALIGNMENT, given or {}, owned
    )
    return replace(graph, is_inner=is_inner)


def after(passes: Sequence[Pass], g: Graph, *outputs: int, **more: Any) -> RegionGraph:
    """A region after some passes, each of which leaves the graph that it is given as it was."""
    graph = region(g, *outputs, **more)
    for run in passes:
        before = dict(vars(graph)) | {"places": dict(graph.places)}
        found = run(graph)
        assert {name: vars(graph)[name] for name in before} == before
        graph = found
    return graph


def text(graph: RegionGraph) -> str:
    """The nodes of a graph as ``describe`` writes them, a line each."""
    return "\n".join(line.strip() for line in describe(graph).splitlines()[1:-1])


def names(graph: RegionGraph) -> list[str]:
    """The operators that are left, a chain as its steps."""
    return [_name(node) for node in graph.nodes]


def _name(node: RegionNode) -> str:
    return " ".join(step.name for step in node.steps) or node.node.op.name
