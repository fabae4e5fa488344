"""The pass that makes two products with a softmax between them one node."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from litecl.delegate.matmul.attention import AttentionOptions
from litecl.delegate.plan.passes.attention import attention
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.binary import ADD, DIV, MUL, AddOptions, DivOptions, MulOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.select import SELECT_V2
from litecl.interpreter.ops.unary import EXP
from litecl.interpreter.schema import ActivationFunctionType
from litecl.interpreter.schema import TensorType as T
from support.attention_nets import Attended
from support.regions import UPDATE, after, names, region, text

Build = Callable[[Attended], object]
RELU = ActivationFunctionType.RELU


def test_whole() -> None:
    """One node of queries, keys, values and mask, in the place of the last."""
    g = Attended()
    g.seen(g.masked(g.scaled(g.scores(), 0.5), (5, 7)))
    graph = after(PASSES, g, g.y)
    assert text(graph) == "%9:float32[2,3,5,6] = ATTENTION(%0, %1, %8, %5), #4 #0 #1 #2 #3"
    assert graph.nodes[0].node.options == AttentionOptions(0.5, True, True, (2, 3), (2, 3))


def number(g: Attended, op: object, scores: int, value: float, options: object) -> int:
    return g.op(op, [scores, g.const(np.float32([value]))], options)  # type: ignore[arg-type]


def regrouped(g: Attended, scores: int, shape: tuple[int, ...]) -> int:
    return g.op(RESHAPE, [scores, g.const(np.array(shape, np.int32))], ReshapeOptions())


_FUSED: dict[str, tuple[Build, AttentionOptions]] = {
    "plain": (lambda g: g.seen(g.scores()), AttentionOptions(1, True, True, (2, 3), (2, 3))),
    "columns": (
        lambda g: g.seen(g.scores(keys_in_rows=False), values_in_rows=False),
        AttentionOptions(1, False, False, (2, 3), (2, 3)),
    ),
    "divided": (
        lambda g: g.seen(number(g, DIV, g.scaled(g.scores(), 3), 4, DivOptions())),
        AttentionOptions(0.75, True, True, (2, 3), (2, 3)),
    ),
    "shared keys": (
        lambda g: g.seen(g.scores(k=(1, 1, 7, 8)), (7, 6)),
        AttentionOptions(1, True, True, (2, 3), (2, 3)),
    ),
    "regrouped": (
        lambda g: g.seen(regrouped(g, g.scores(), (6, 5, 7)), (6, 7, 6)),
        AttentionOptions(1, True, True, (2, 3), (6,)),
    ),
    "chosen": (
        lambda g: g.seen(g.chosen(g.scaled(g.scores(), 0.5), (5, 7), -9)),
        AttentionOptions(0.5, True, True, (2, 3), (2, 3), shown=True, fill=-9),
    ),
    "filled": (
        lambda g: g.seen(g.chosen(g.scores(), (7,), -np.inf, shown=False)),
        AttentionOptions(1, True, True, (2, 3), (2, 3), shown=False, fill=-np.inf),
    ),
    "mask of rows": (lambda g: g.seen(g.masked(g.scores(), (5, 1))), AttentionOptions(1, True, True, (2, 3), (2, 3))),
}


@pytest.mark.parametrize(("build", "options"), _FUSED.values(), ids=_FUSED)
def test_fused(build: Build, options: AttentionOptions) -> None:
    g = Attended()
    build(g)
    (node,) = after([attention], g, g.y).nodes
    assert (node.node.op.name, node.node.options) == ("ATTENTION", options)


def constant(g: Attended, position: int) -> None:
    """The keys, or the values, are a constant: their products have it packed."""
    g.seen(g.scores())
    tensor = (g.k, g.v)[position]
    g.tensors[tensor] = replace(g.tensors[tensor], data=np.zeros(g.tensors[tensor].shape or (), np.float32))
    g.inputs.remove(tensor)


def as_values(g: Attended) -> None:
    weights = g.scores()
    g.y = g.op(BATCH_MATMUL, [g.input((2, 3, 6, 5)), g.softmax(weights)], BatchMatMulOptions())


def itself(g: Attended) -> None:
    weights = g.softmax(g.scores((2, 3, 7, 8)))
    g.y = g.op(BATCH_MATMUL, [weights, weights], BatchMatMulOptions())


def chosen(g: Attended, other: int, scores: int | None = None) -> int:
    inputs = [g.input((5, 7), T.BOOL), g.scores() if scores is None else scores, other]
    return g.op(SELECT_V2, inputs, NoOptions())


_LEFT: dict[str, Build] = {
    "queries in columns": lambda g: g.seen(g.scores(adj_x=True)),
    "beta": lambda g: g.seen(g.scores(), beta=0.5),
    "keys known": lambda g: constant(g, 0),
    "values known": lambda g: constant(g, 1),
    "weights on the right": as_values,
    "weights on both sides": itself,
    "a wider mask": lambda g: g.seen(g.masked(g.scores((1, 3, 5, 8), (3, 7, 8)), (2, 1, 1, 1))),
    "two masks": lambda g: g.seen(g.masked(g.masked(g.scores(), (5, 7)), (7,))),
    "scaled after the mask": lambda g: g.seen(g.scaled(g.masked(g.scores(), (5, 7)), 2)),
    "chosen and masked": lambda g: g.seen(g.masked(g.chosen(g.scores(), (5, 7), -9), (5, 7))),
    "masked and chosen": lambda g: g.seen(g.chosen(g.masked(g.scores(), (5, 7)), (5, 7), -9)),
    "scaled after the choice": lambda g: g.seen(g.scaled(g.chosen(g.scores(), (5, 7), -9), 2)),
    "chosen from numbers": lambda g: g.seen(chosen(g, g.const(np.arange(7, dtype=np.float32)))),
    "chosen from a tensor": lambda g: g.seen(chosen(g, g.input((5, 7)))),
    "chosen from itself": lambda g: g.seen((lambda s: chosen(g, s, s))(g.scores())),
    "chosen to be wider": lambda g: g.seen(g.chosen(g.scores((1, 3, 5, 8), (3, 7, 8)), (2, 1, 1, 1), -9)),
    "scales": lambda g: g.seen(g.op(MUL, [g.scores(), g.input((7,))], MulOptions())),
    "doubled": lambda g: g.seen((lambda s: g.op(ADD, [s, s], AddOptions()))(g.scores())),
    "activated": lambda g: g.seen(number(g, ADD, g.scores(), 1, AddOptions(fused_activation_function=RELU))),
    "a number divided": lambda g: g.seen(g.op(DIV, [g.const(np.float32(2)), g.scores()], DivOptions())),
    "exponentials": lambda g: g.seen(g.op(EXP, [g.scores()], NoOptions())),
    "other rows": lambda g: g.seen(regrouped(g, g.scores(), (2, 1, 15, 7)), (2, 1, 7, 6)),
    "masked in other groups": lambda g: g.seen(g.masked(regrouped(g, g.scores(), (6, 5, 7)), (5, 7)), (6, 7, 6)),
}


@pytest.mark.parametrize("build", _LEFT.values(), ids=_LEFT)
def test_left_alone(build: Build) -> None:
    g = Attended()
    build(g)
    assert "ATTENTION" not in names(after([attention], g, g.y))


def test_attention_of_attention() -> None:
    """A product that ends one and would begin another belongs to the first; the second stays as it is."""
    g = Attended()
    weights = g.softmax(g.seen(g.scores()))
    y = g.op(BATCH_MATMUL, [weights, g.input((2, 3, 6, 4))], BatchMatMulOptions())
    graph = after([attention], g, y)
    assert names(graph) == ["ATTENTION", "SOFTMAX", "BATCH_MATMUL"]
    made = {t for node in graph.nodes for t in node.outputs}
    assert {t for node in graph.nodes for t in node.reads} <= made | {*g.inputs}


@pytest.mark.parametrize("position", [0, 1, 2])
def test_scores_that_are_read_elsewhere(position: int) -> None:
    """By another node, or by the caller."""
    g = Attended()
    g.seen(g.scaled(g.scores(), 0.5))
    made = g.nodes[position].outputs[0]
    assert "ATTENTION" not in names(after([attention], g, g.y, made))
    other = g.op(EXP, [made], NoOptions())
    assert "ATTENTION" not in names(after([attention], g, g.y, other))


def test_operands_that_change() -> None:
    """A variable that a node updates, and a tensor that is overwritten before the node would run."""
    g = Attended()
    scores = g.scores()
    g.op(UPDATE, [g.q, g.k], NoOptions())
    assert "ATTENTION" not in names(after([attention], g, g.seen(scores)))
    g = Attended()
    scores = g.scores()
    written = g.op(DYNAMIC_UPDATE_SLICE, [g.k, g.input((1, 1, 1, 8)), g.const(np.zeros(4, np.int32))], NoOptions())
    graph = region(g, g.seen(scores), written)
    assert "ATTENTION" in names(attention(graph))
    nodes = tuple(replace(node, in_place=node.node.op is DYNAMIC_UPDATE_SLICE) for node in graph.nodes)
    assert "ATTENTION" not in names(attention(replace(graph, nodes=nodes)))
