"""Loops and branches on the interpreter, against LiteRT: nested and shared ones, strings, resources, kept tensors."""

from collections.abc import Sequence

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.compare import GREATER, LESS
from litecl.interpreter.ops.control import CALL_ONCE, CallOnceOptions
from litecl.interpreter.ops.unary import LOGICAL_NOT, TANH
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, VAR_HANDLE, VarHandleOptions
from litecl.interpreter.schema import TensorType
from litecl.perf.feeds import outputs_of, run_on
from support import oracle
from support.build import Graph, model, randn
from support.loop_models import (
    BOOL,
    FLOAT,
    INT,
    Part,
    State,
    below,
    if_node,
    int32,
    next_,
    outputs,
    plus,
    prepared,
    subgraph,
    times,
    while_model,
    while_node,
)

RNG = np.random.default_rng(41)
NONE = NoOptions()
COUNTER: State = [((), INT), ((4,), FLOAT)]


def assert_same(model_: Model, *feeds: Array) -> None:
    """Two invokes in a row give what LiteRT gives."""
    interpreter, expected = prepared(model_, feeds, []), oracle.run(write(model_), feeds)
    for _ in range(2):
        for got, wanted in zip(outputs(interpreter), expected, strict=True):
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(got, wanted, rtol=1e-5)


def grown(g: Graph, x: Sequence[int]) -> list[int]:
    """i + 1, tanh(y * 1.1 + 0.1)"""
    scaled = times(g, x[1], g.const(np.float32(1.1)))
    return [next_(g, x[0]), g.op(TANH, [plus(g, scaled, g.const(np.float32(0.1)))], NONE)]


@pytest.mark.parametrize("trips", [0, 1, 6])
def test_trips(trips: int) -> None:
    assert_same(while_model(COUNTER, below(trips), grown), int32(0), randn(RNG, 4))


def test_a_loop_that_does_not_run_hands_on_what_it_got_whatever_its_shape() -> None:
    model_ = while_model(COUNTER, below(0), grown)
    for shape in ((4,), (1,), (3, 2)):
        assert_same(model_, int32(0), randn(RNG, *shape))


def test_loops_four_deep() -> None:
    """An IF in four nested loops, each of which runs its inner loop two or three times."""
    branch: State = [((4,), FLOAT)]
    graphs = [
        subgraph("up", branch, lambda g, x: plus(g, x[0], g.const(np.float32(0.25)))),
        subgraph("down", branch, lambda g, x: times(g, x[0], g.const(np.float32(0.5)))),
    ]

    def innermost(g: Graph, x: Sequence[int]) -> list[int]:
        late = g.op(GREATER, [x[0], g.const(int32(1))], NONE)
        return [next_(g, x[0]), *if_node(g, [late, x[1]], 1, 2, x[1])]

    def around(below_: int) -> Part:
        def part(g: Graph, x: Sequence[int]) -> list[int]:
            _, y = while_node(g, [g.const(int32(below_ % 2)), x[1]], below_ - 1, below_)
            return [next_(g, x[0]), y]

        return part

    part: Part = innermost
    for _ in range(4):
        graphs += [subgraph("cond", COUNTER, below(3)), subgraph("body", COUNTER, part)]
        part = around(len(graphs))
    assert_same(model(subgraph("main", COUNTER, part), *graphs), int32(0), randn(RNG, 4))


def test_one_subgraph_for_many_callers() -> None:
    """The same body runs in two loops of main, in one within another body, and as a branch, with two shapes."""
    wide: State = [((), INT), ((2, 4), FLOAT)]

    def nested(g: Graph, x: Sequence[int]) -> list[int]:
        _, y = while_node(g, [g.const(int32(1)), x[1]], 1, 2)
        return [next_(g, x[0]), y]

    def main(g: Graph, x: Sequence[int]) -> list[int]:
        _, first = while_node(g, x[:2], 1, 2)
        _, second = while_node(g, [g.const(int32(2)), first], 1, 3)
        _, other = while_node(g, [x[0], x[2]], 1, 2)
        late = g.op(LESS, [x[0], g.const(int32(1))], NONE)
        return [second, other, *if_node(g, [late, x[0], second], 2, 3, x[0], second)]

    parts = [subgraph("cond", COUNTER, below(4)), subgraph("body", COUNTER, grown), subgraph("nested", COUNTER, nested)]
    model_ = model(subgraph("main", [*COUNTER, wide[1]], main), *parts)
    feeds = [int32(0), randn(RNG, 4), randn(RNG, 2, 4)]
    apart = [
        oracle.run(write(while_model(state, below(4), grown)), [feeds[0], x])[1]
        for state, x in ((COUNTER, feeds[1]), (wide, feeds[2]))
    ]
    first, other, i, y = outputs(prepared(model_, feeds, []))
    # A value near zero is as far off as the larger ones that it comes of.
    np.testing.assert_allclose(other, apart[1], rtol=1e-5, atol=1e-6)
    chain = apart[0]
    for _ in range(2):  # the outer loop starts at 2, the inner one at 1, both end at 4
        chain = oracle.run(write(while_model(COUNTER, below(4), grown)), [int32(1), chain])[1]
    np.testing.assert_allclose(first, chain, rtol=1e-5, atol=1e-6)
    assert i == 1
    np.testing.assert_allclose(y, np.tanh(chain * np.float32(1.1) + np.float32(0.1)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [True, False])
def test_a_body_that_is_the_condition_of_another_loop(value: bool) -> None:
    """NOT turns true to false, then says that a loop is to turn false to true."""
    flag: State = [((), BOOL)]

    def inverted(g: Graph, x: Sequence[int]) -> int:
        return g.op(LOGICAL_NOT, [x[0]], NONE)

    def main(g: Graph, x: Sequence[int]) -> list[int]:
        return while_node(g, while_node(g, x, 1, 2), 2, 3)

    parts = [subgraph("holds", flag, lambda g, x: x[0]), *(subgraph(name, flag, inverted) for name in ("not", "no"))]
    model_ = model(subgraph("main", flag, main), *parts)
    assert outputs(prepared(model_, [np.array(value)], [])) == [True]
    assert_same(model_, np.array(value))


def test_strings_change_places() -> None:
    """Three steps, each of which swaps two strings."""
    state: State = [((), INT), ((2,), TensorType.STRING), ((2,), TensorType.STRING)]
    model_ = while_model(state, below(3), lambda g, x: [next_(g, x[0]), x[2], x[1]])
    first, second = (np.array(words, np.object_) for words in ((b"one", b""), (b"three", b"four\xff")))
    count, *words = outputs(prepared(model_, [int32(0), first, second], []))
    assert count == 3
    np.testing.assert_array_equal(words, [second, first])


def test_a_resource_is_a_loop_variable() -> None:
    """A loop is handed a variable and adds to it at every step; it lives on from invoke to invoke."""
    resource = TensorSpec(TensorType.RESOURCE, (1,))
    state: State = [((), INT), ((1,), TensorType.RESOURCE)]
    value = TensorSpec(FLOAT, (3,))

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        (before,) = g.node(READ_VARIABLE, (x[1],), (value,), NONE)
        g.node(ASSIGN_VARIABLE, (x[1], plus(g, before, g.const(np.float32([1, 2, 3])))), (), NONE)
        return [next_(g, x[0]), x[1]]

    main, first = Graph("main"), Graph("first")
    start = main.input((), INT)
    main.node(CALL_ONCE, (), (), CallOnceOptions(3))
    (handle,) = main.node(VAR_HANDLE, (), (resource,), VarHandleOptions("", "total"))
    count, after = while_node(main, [start, handle], 1, 2)
    result = main.node(READ_VARIABLE, (after,), (value,), NONE)
    (fresh,) = first.node(VAR_HANDLE, (), (resource,), VarHandleOptions("", "total"))
    first.node(ASSIGN_VARIABLE, (fresh, first.const(np.float32([0.5, 0, -1]))), (), NONE)
    parts = [subgraph("cond", state, below(3)), subgraph("body", state, body), first.build()]
    content = write(model(main.build(count, *result), *parts))
    ours, theirs = Interpreter(model_content=content), LiteRT(model_content=content)
    for begin in (0, 3, 1):
        results = []
        for interpreter in (ours, theirs):
            run_on(interpreter, [int32(begin)])
            results.append(outputs_of(interpreter))
        for got, wanted in zip(*results, strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("trips", [1, 4])
def test_tensors_of_a_body_are_those_of_the_last_iteration(trips: int) -> None:
    """As LiteRT keeps them, in the body and in a loop within it."""

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        _, y = while_node(g, [g.const(int32(1)), x[1]], 3, 4)
        return [next_(g, x[0]), plus(g, times(g, y, y), g.const(np.float32(0.5)))]

    inner = [subgraph("c", COUNTER, below(3)), subgraph("b", COUNTER, grown)]
    model_ = while_model(COUNTER, below(trips), body, *inner)
    content, feeds = write(model_), [int32(0), randn(RNG, 4)]
    ours, theirs = (
        runtime(model_content=content, experimental_preserve_all_tensors=True) for runtime in (Interpreter, LiteRT)
    )
    for interpreter in (ours, theirs):
        run_on(interpreter, feeds)
    for index in (2, 4):
        for tensor in (t for node in model_.subgraphs[index].nodes for t in node.outputs):
            got, wanted = ours.get_tensor(tensor, index), theirs.get_tensor(tensor, index)
            np.testing.assert_allclose(got, wanted, rtol=1e-5, err_msg=f"tensor {tensor} of subgraph {index}")
