"""Loops that the device runs as something better: writes of TensorLists in place, and the LSTM kernel."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.analysis.list_writes import update_lists_in_place
from litecl.delegate.matmul import product
from litecl.delegate.recurrent import lstm_loop
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.split import SPLIT, SplitOptions
from litecl.interpreter.ops.unary import LOGISTIC, TANH
from litecl.interpreter.run.shapes import propagate
from litecl.interpreter.schema import ActivationFunctionType as Activation
from support import compare, oracle
from support.build import Graph, model, randn
from support.loop_models import (
    FLOAT,
    INT,
    State,
    below,
    check,
    concatenated,
    int32,
    next_,
    one_element,
    outputs,
    plus,
    prepared,
    subgraph,
    times,
    unary,
    while_model,
    while_node,
)
from support.modes import in_every_mode

RNG = np.random.default_rng(3)


def list_writer() -> Model:
    """A loop that writes row i of a list as TensorFlow's converter puts it."""
    state: State = [((), INT), ((5, 3), FLOAT), ((1, 3), FLOAT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        following = next_(g, x[0])
        rest, zero = g.const(np.array([-1], np.int32)), g.const(np.array([0], np.int32))
        ends = g.op(CONCATENATION, [one_element(g, x[0]), rest], concatenated())
        begins = g.op(CONCATENATION, [one_element(g, following), zero], concatenated())
        unknown = [TensorSpec(FLOAT, ())]
        head = g.node(SLICE, [x[1], g.const(np.zeros(2, np.int32)), ends], unknown, NoOptions())
        tail = g.node(SLICE, [x[1], begins, g.const(np.full(2, -1, np.int32))], unknown, NoOptions())
        item = g.op(TANH, [plus(g, x[2], g.const(np.float32(0.3)))], NoOptions())
        joined = g.node(CONCATENATION, [*head, item, *tail], [TensorSpec(FLOAT, (5, 3))], concatenated())
        return [following, *joined, item]

    return while_model(state, below(5), body)


@in_every_mode
def test_a_list_write_is_recognised(mode: dict[str, Any]) -> None:
    model_ = list_writer()
    feeds = [int32(0), randn(RNG, 5, 3), randn(RNG, 1, 3)]
    check(model_, feeds, **mode)
    specs = propagate(model_, {0: [x.shape for x in feeds]})
    changed = update_lists_in_place(model_, specs)
    assert changed.subgraphs[0] is model_.subgraphs[0]
    assert update_lists_in_place(changed, specs) is changed
    plain = Interpreter(changed)
    plain.allocate_tensors()
    for position, feed in enumerate(feeds):
        plain.set_tensor(position, feed)
    for got, wanted in zip(outputs(plain), oracle.run(write(model_), feeds), strict=True):
        compare.assert_close(got, wanted, compare.INTERPRETER.get(wanted.dtype.name, 0.0))


def keras_lstm(batch: int, *, whole: bool, gate: Op = LOGISTIC, fused: Activation = Activation.NONE) -> Model:
    """A loop over 5 steps of 4 numbers, 3 units, as Keras 3 and TensorFlow's converter put it.

    gate: the input gate's function. fused: into the sum that is the new c.
    """
    rows = 5 if whole else 1
    step = ((batch, 3), FLOAT)
    state: State = [((), INT), ((rows, batch, 3), FLOAT), step, step, ((5, batch, 4), FLOAT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        t, listed, h, c, inputs = x
        row = g.op(GATHER, [inputs, t], GatherOptions(0, 0))
        products = [
            g.op(FULLY_CONNECTED, [value, g.const(randn(RNG, 12, width, scale=0.5)), None], FullyConnectedOptions())
            for value, width in ((row, 4), (h, 3))
        ]
        z = plus(g, plus(g, *products), g.const(randn(RNG, 12)))
        part = TensorSpec(FLOAT, (batch, 3))
        i, f, n, o = g.node(SPLIT, [g.const(int32(1)), z], [part] * 4, SplitOptions(4))
        kept = times(g, unary(g, LOGISTIC, f), c)
        c_new = g.op(ADD, [kept, times(g, unary(g, gate, i), unary(g, TANH, n))], AddOptions(fused))
        h_new = times(g, unary(g, LOGISTIC, o), unary(g, TANH, c_new))
        item = g.op(RESHAPE, [h_new, g.const(np.array([1, batch, 3], np.int32))], ReshapeOptions((1, batch, 3)))
        place = g.op(CONCATENATION, [one_element(g, t), g.const(np.zeros(2, np.int32))], concatenated())
        written = g.op(DYNAMIC_UPDATE_SLICE, [listed, item, place], NoOptions()) if whole else item
        return [next_(g, t), written, h_new, c_new, inputs]

    def main(g: Graph, x: Sequence[int]) -> list[int]:
        return while_node(g, [g.const(int32(0)), *x], 1, 2)

    parts = [subgraph("cond", state, below(5)), subgraph("body", state, body)]
    return model(subgraph("main", state[1:], main), *parts)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("whole", [True, False])
def test_a_loop_that_is_an_lstm(monkeypatch: pytest.MonkeyPatch, batch: int, whole: bool) -> None:
    """Against LiteRT, and against the loop as it stands."""
    model_ = keras_lstm(batch, whole=whole)
    feeds = [randn(RNG, *model_.subgraphs[0].tensors[t].static_shape) for t in model_.subgraphs[0].inputs]
    fused = check(model_, feeds)
    assert fused.delegation_report().partitions[0].loops == ("WHILE (subgraph 0, node 0): as one LSTM",)
    monkeypatch.setattr(lstm_loop, "find", lambda *known: None)
    loop = check(model_, feeds)
    assert "in the region's kernel" in loop.delegation_report().partitions[0].loops[0]
    for got, wanted in zip(outputs(fused), outputs(loop), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)


def test_an_lstm_loop_that_is_kept_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the loop's place, or by that of any node of its body."""
    monkeypatch.setattr(product, "CACHED_WEIGHTS", 1)
    model_ = keras_lstm(2, whole=True)
    feeds = [randn(RNG, *model_.subgraphs[0].tensors[t].static_shape) for t in model_.subgraphs[0].inputs]

    def run(**options: Any) -> Array:
        interpreter = prepared(model_, feeds, [CLDelegate(**options)])
        assert "as one LSTM" in interpreter.delegation_report().partitions[0].loops[0]
        return outputs(interpreter)[1]

    floats, halves = run(), run(precision="fp16")
    assert not np.array_equal(floats, halves)
    for kept in (0, *((2, i) for i in range(len(model_.subgraphs[2].nodes)))):
        np.testing.assert_array_equal(run(precision="fp16", keep_float=[kept]), floats)


@pytest.mark.parametrize("other", [{"gate": TANH}, {"fused": Activation.RELU}], ids=["gate", "sum"])
def test_a_loop_that_is_almost_an_lstm(other: dict[str, Any]) -> None:
    model_ = keras_lstm(2, whole=True, **other)
    feeds = [randn(RNG, *model_.subgraphs[0].tensors[t].static_shape) for t in model_.subgraphs[0].inputs]
    report = check(model_, feeds).delegation_report()
    assert "in the region's kernel" in report.partitions[0].loops[0]
