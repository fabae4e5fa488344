"""Nodes are fused where nothing can tell: what every fusion may rely on, shown by one that is made up."""

from dataclasses import replace

import numpy as np

from litecl.delegate.cl_op import ClOp
from litecl.delegate.plan.fusion import NodeMatch, fuse, matching
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.match import AnyTensor, Pattern
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.binary import MUL, SUB, MulOptions, SubOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.unary import ABS, EXP, NEG
from support.build import Graph
from support.regions import UPDATE, names, region

TWICE = ClOp(
    Op("TWICE", NoOptions, lambda options, inputs: [], lambda options, inputs: []),
    lambda options, inputs, outputs: None,
    lambda call: [],
)
"""exp(x) * y."""


def _twice(graph: RegionGraph, node: RegionNode, match: NodeMatch) -> RegionNode | None:
    first = match.nodes[1]
    return node.behind(first, kernel=TWICE, inputs=(match["x"], match["y"]), options=NoOptions())


RULE = matching(Pattern(MUL, [Pattern(EXP, [AnyTensor("x")]), AnyTensor("y")]), _twice)


class Twice(Graph):
    """x: the operand of the fused nodes; e: the tensor between them; y: the result."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.other = self.input((4,)), self.input((4,))
        self.e = self.op(EXP, [self.x], NoOptions())

    def times(self, y: int, x: int | None = None) -> int:
        return self.op(MUL, [self.e if x is None else x, y], MulOptions())


def fused(g: Graph, *outputs: int) -> list[str]:
    return names(fuse(region(g, *outputs), RULE))


def test_whole() -> None:
    """One node in the place of the last, whatever is computed in between; producers and readers are those of now."""
    g = Twice()
    between = g.op(NEG, [g.other], NoOptions())
    y = g.times(between)
    z = g.op(ABS, [y], NoOptions())
    graph = fuse(region(g, z), RULE)
    assert names(graph) == ["NEG", "TWICE", "ABS"]
    whole = graph.nodes[1]
    assert (whole.inputs, whole.outputs, whole.cl_op) == ((g.x, between), (y,), TWICE)
    assert [part.node.op for part in whole.fused] == [EXP]
    assert (graph.producer(y), graph.producer(g.e), graph.producer(g.x)) == (whole, None, None)
    assert (graph.consumers(g.x), graph.consumers(g.e)) == ([whole], ())


def test_as_long_as_a_rule_applies() -> None:
    """Rules are tried again on a fused node, and on the nodes after it."""
    g = Twice()
    again = g.op(EXP, [g.times(g.other)], NoOptions())
    assert fused(g, g.times(g.other, again)) == ["TWICE", "TWICE"]


def test_a_node_is_part_of_one_fusion() -> None:
    """Two rules want the node in the middle; the first gets it, and the second node keeps what it reads."""
    g = Graph()
    x = g.input((4,))
    y = g.op(NEG, [g.op(NEG, [g.op(NEG, [x], NoOptions())], NoOptions())], NoOptions())

    def pair(graph: RegionGraph, node: RegionNode, match: NodeMatch) -> RegionNode:
        return node.behind(match.nodes[1], kernel=TWICE, inputs=(match["x"],), options=NoOptions())

    graph = fuse(region(g, y), matching(Pattern(NEG, [Pattern(NEG, [AnyTensor("x")])]), pair))
    assert names(graph) == ["TWICE", "NEG"]


def test_what_is_kept() -> None:
    g = Twice()
    assert fused(g, g.times(g.other), g.e) == ["EXP", "MUL"]


def test_what_others_read() -> None:
    g = Twice()
    y = g.times(g.other)
    assert fused(g, y, g.op(NEG, [g.e], NoOptions())) == ["EXP", "MUL", "NEG"]


def test_what_has_memory_already() -> None:
    g = Twice()
    graph = region(g, g.times(g.other))
    given = {g.e: object()}
    assert names(fuse(replace(graph, given=given), RULE)) == ["EXP", "MUL"]  # type: ignore[arg-type]


def test_what_the_whole_would_read() -> None:
    """The same tensor by another operand."""
    g = Twice()
    assert fused(g, g.times(g.e)) == ["EXP", "MUL"]


def test_an_operator_that_is_something_else() -> None:
    g = Twice()
    assert fused(g, g.op(SUB, [g.e, g.other], SubOptions())) == ["EXP", "SUB"]


def test_what_is_updated() -> None:
    """A variable that a node updates between both."""
    g = Twice()
    g.op(UPDATE, [g.other, g.x], NoOptions())
    assert "TWICE" not in fused(g, g.times(g.other))


def test_what_is_overwritten() -> None:
    """A tensor whose memory a node takes between both."""
    g = Twice()
    written = g.op(DYNAMIC_UPDATE_SLICE, [g.x, g.input((1,)), g.const(np.zeros(1, np.int32))], NoOptions())
    graph = region(g, g.times(g.other), written)
    assert "TWICE" in names(fuse(graph, RULE))
    nodes = [replace(node, in_place=node.node.op is DYNAMIC_UPDATE_SLICE) for node in graph.nodes]
    assert "TWICE" not in names(fuse(graph.with_nodes(nodes), RULE))


def test_what_is_computed_too_late() -> None:
    """A later node may come first only if all that it reads is there."""

    def early(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
        reader = graph.only_reader(node.outputs[0]) if node.node.op is EXP else None
        return (
            None if reader is None else node.followed_by(reader, cl_op=TWICE, inputs=(*node.inputs, reader.inputs[1]))
        )

    g = Twice()
    y = g.times(g.other)
    assert len(fuse(region(g, y), early).nodes) == 1
    g = Twice()
    y = g.times(g.op(NEG, [g.other], NoOptions()))
    assert names(fuse(region(g, y), early)) == ["EXP", "NEG", "MUL"]
