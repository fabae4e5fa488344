"""Calls and composites are planned with the nodes around them, where that changes nothing but the launches."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.plan.inline import inlined
from litecl.interpreter.graph import Array, Model, Quantization, Subgraph, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.binary import ADD, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.control import CALL, STABLEHLO_COMPOSITE, CallOptions, StableHLOCompositeOptions
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.schema import TensorType
from support.build import Graph, model, randn
from support.loop_models import FLOAT, INT, below, int32, next_, outputs, prepared, while_model
from support.loop_models import check as loop_check

SHAPE = (2, 5)
SPEC = TensorSpec(TensorType.FLOAT32, SHAPE)


def composite(g: Graph, body: int, inputs: Sequence[int], outputs: int = 1, name: str = "some") -> list[int]:
    options = StableHLOCompositeOptions(name, decomposition_subgraph_index=body)
    return g.node(STABLEHLO_COMPOSITE, inputs, [SPEC] * outputs, options)


def absolute(x: str = "body") -> Subgraph:
    b = Graph(x)
    return b.build(b.op(unary.ABS, [b.input(SHAPE)], NoOptions()))


def ops(built: Model, subgraph: int = 0) -> list[str]:
    specs = [graph.tensors for graph in built.subgraphs]
    return [node.op.name for node in inlined(built, specs, subgraph).source.nodes]


def run(built: Model, *feeds: Array, delegates: Sequence[CLDelegate] = ()) -> list[Array]:
    interpreter = prepared(built, feeds, delegates)
    found = outputs(interpreter)
    if delegates:
        assert all(row.claimed for row in interpreter.delegation_report().nodes)
    return found


def check(built: Model, expected: Sequence[Array], *feeds: Array) -> None:
    for delegates in ((), (CLDelegate(strict=True),)):
        for got, wanted in zip(run(built, *feeds, delegates=delegates), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6)


X = randn(np.random.default_rng(1), *SHAPE)


def test_nodes_stand_in_a_composites_place() -> None:
    """Its inputs and outputs are the caller's tensors; tensors between get new indices."""
    g, b = Graph(), Graph("body")
    x, y = b.input(SHAPE), b.input(SHAPE)
    product = b.op(MUL, [x, y], MulOptions())
    body = b.build(b.op(ADD, [product, b.const(np.float32(2))], AddOptions()))
    before = g.op(unary.NEG, [g.input(SHAPE)], NoOptions())
    (result,) = composite(g, 1, [before, before])
    built = model(g.build(g.op(unary.ABS, [result], NoOptions())), body)
    found = inlined(built, [graph.tensors for graph in built.subgraphs], 0)
    assert [node.op.name for node in found.source.nodes] == ["NEG", "MUL", "ADD", "ABS"]
    assert list(found.origins) == [(0, 0), (1, 0), (1, 1), (0, 2)]
    assert [list(of) for of in found.positions] == [[0], [1, 2], [3]]
    count = len(built.subgraphs[0].tensors)
    _, first, second, last = found.source.nodes
    assert first.inputs == (before, before) and first.outputs == (count + product,)
    assert second.outputs == last.inputs == (result,)
    assert len(found.source.tensors) == len(found.specs) == count + len(body.tensors)
    check(built, [np.abs(X * X + 2)], X)


def test_what_only_an_unused_input_needs_is_left_out() -> None:
    g, b = Graph(), Graph("body")
    x, _ = b.input(SHAPE), b.input(SHAPE)
    body = b.build(b.op(unary.ABS, [x], NoOptions()))
    given = g.input(SHAPE)
    unused = g.op(unary.NEG, [g.op(unary.EXP, [given], NoOptions())], NoOptions())
    built = model(g.build(*composite(g, 1, [given, unused])), body)
    found = inlined(built, [graph.tensors for graph in built.subgraphs], 0)
    assert [found.source.nodes[i].op.name for i in found.live(range(3), built.subgraphs[0].outputs)] == ["ABS"]
    check(built, [np.abs(X)], X)


def test_composites_of_composites_and_calls() -> None:
    g, middle = Graph(), Graph("middle")
    (inner,) = composite(middle, 2, [middle.input(SHAPE)])
    (called,) = middle.node(CALL, [inner], [SPEC], CallOptions(3))
    b = Graph("doubled")
    x = b.input(SHAPE)
    doubled = b.build(b.op(ADD, [x, x], AddOptions()))
    built = model(g.build(*composite(g, 1, [g.input(SHAPE)])), middle.build(called), absolute(), doubled)
    assert ops(built) == ["ABS", "ADD"]
    check(built, [2 * np.abs(X)], X)


def test_one_body_of_several_composites() -> None:
    g = Graph()
    x = g.input(SHAPE)
    (first,) = composite(g, 1, [g.op(unary.NEG, [x], NoOptions())])
    (second,) = composite(g, 1, [g.op(unary.SQUARE, [first], NoOptions())])
    built = model(g.build(first, second), absolute())
    assert ops(built) == ["NEG", "ABS", "SQUARE", "ABS"]
    check(built, [np.abs(X), X * X], X)


def test_calls_of_other_regions_stay() -> None:
    g = Graph()
    (first,) = composite(g, 1, [g.input(SHAPE)])
    built = model(g.build(*composite(g, 1, [first])), absolute())
    found = inlined(built, [graph.tensors for graph in built.subgraphs], 0, [1])
    assert [node.op.name for node in found.source.nodes] == ["STABLEHLO_COMPOSITE", "ABS"]
    assert list(found.origins) == [(0, 0), (1, 0)]


def _given_back(b: Graph) -> tuple[int, ...]:
    x = b.input(SHAPE)
    return x, b.op(unary.ABS, [x], NoOptions())


def _twice(b: Graph) -> tuple[int, ...]:
    y = b.op(unary.ABS, [b.input(SHAPE)], NoOptions())
    return y, y


def _constant(b: Graph) -> tuple[int, ...]:
    return b.op(unary.ABS, [b.input(SHAPE)], NoOptions()), b.const(np.full(SHAPE, 3, np.float32))


@pytest.mark.parametrize(("make", "expected"), [(_given_back, (X, abs(X))), (_twice, (abs(X),) * 2)])
def test_results_that_no_node_alone_computes(make, expected) -> None:  # type: ignore[no-untyped-def]
    """An input handed back, or one result twice: the call stays one."""
    g, b = Graph(), Graph("body")
    built = model(g.build(*composite(g, 1, [g.input(SHAPE)], 2)), b.build(*make(b)))
    assert ops(built) == ["STABLEHLO_COMPOSITE"]
    check(built, expected, X)


def test_a_constant_result() -> None:
    g, b = Graph(), Graph("body")
    made = _constant(b)
    first, second = composite(g, 1, [g.input(SHAPE)], 2)
    built = model(g.build(first, g.op(ADD, [first, second], AddOptions())), b.build(*made))
    check(built, [abs(X), abs(X) + 3], X)


def test_another_scale_outside() -> None:
    """A composite hands on bytes: a node must not compute its result in the caller's scale."""
    scales = [Quantization(np.full(1, scale, np.float32), np.zeros(1, np.int64)) for scale in (0.5, 0.25)]
    inner, outer = (replace(SPEC, type=TensorType.INT8, quantization=scale) for scale in scales)
    g, b = Graph(), Graph("body")
    x, y = b.input(SHAPE, TensorType.INT8), g.input(SHAPE, TensorType.INT8)
    b.tensors[x], g.tensors[y] = replace(inner, name="x"), replace(outer, name="y")
    result = b._add(replace(inner, name="sum"))
    b.node(ADD, [x, x], [], AddOptions())
    b.nodes[-1] = replace(b.nodes[-1], outputs=(result,))
    (made,) = composite(g, 1, [y])
    g.tensors[made] = replace(outer, name="made")
    built = model(g.build(made), b.build(result))
    assert ops(built) == ["STABLEHLO_COMPOSITE"]
    values = np.arange(-5, 5, dtype=np.int8).reshape(SHAPE)
    check(built, [2 * values], values)


def test_a_cache_in_a_loop_is_updated_in_place() -> None:
    """Also by a composite: an iteration copies nothing."""
    b = Graph("update")
    cache, new, at = b.input((6, 4)), b.input((1, 4)), b.input((2,), TensorType.INT32)
    update = b.build(b.op(DYNAMIC_UPDATE_SLICE, [cache, new, at], NoOptions()))

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        row = g.op(ADD, [x[2], x[2]], AddOptions())
        options = StableHLOCompositeOptions("odml.cache_update", decomposition_subgraph_index=3)
        position = g.const(np.array([2, 0], np.int32))
        (after,) = g.node(STABLEHLO_COMPOSITE, [x[1], row, position], [g.tensors[x[1]]], options)
        return [next_(g, x[0]), after, row]

    start, row = randn(np.random.default_rng(3), 6, 4), randn(np.random.default_rng(4), 1, 4)
    looped = while_model([((), INT), ((6, 4), FLOAT), ((1, 4), FLOAT)], below(3), body)
    looped = replace(looped, subgraphs=(*looped.subgraphs, update))
    expected = start.copy()
    expected[2] = 8 * row
    interpreter = loop_check(looped, [int32(0), start, row], [int32(3), expected, 8 * row])
    copies = [kernel for kernel in interpreter.delegation_report().partitions[0].kernels if kernel == "copy"]
    assert len(copies) <= 1
