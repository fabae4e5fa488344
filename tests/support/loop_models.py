"""Models with WHILE and IF, and runs of them on a device."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.concatenation import ConcatenationOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.unary import TANH
from litecl.interpreter.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTMOptions
from litecl.interpreter.schema import ActivationFunctionType
from litecl.perf.models.build import Graph
from litecl.perf.models.build_control import (
    BOOL,
    FLOAT,
    INT,
    Part,
    State,
    below,
    if_node,
    int32,
    next_,
    plus,
    subgraph,
    times,
    while_model,
    while_node,
)
from support import compare, oracle

__all__ = [
    "BOOL",
    "FLOAT",
    "INT",
    "Part",
    "State",
    "below",
    "check",
    "if_node",
    "int32",
    "next_",
    "outputs",
    "plus",
    "prepared",
    "reasons",
    "subgraph",
    "times",
    "while_model",
    "while_node",
    "with_integer_weights",
]


def prepared(model_: Model, feeds: Sequence[Array], delegates: Sequence[CLDelegate]) -> Interpreter:
    """An interpreter with its inputs set, or with none if there are no feeds."""
    interpreter = Interpreter(model_, delegates=delegates)
    details = interpreter.get_input_details() if feeds else []
    for detail, feed in zip(details, feeds, strict=True):
        interpreter.resize_tensor_input(detail["index"], feed.shape)
    interpreter.allocate_tensors()
    for detail, feed in zip(details, feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    return interpreter


def outputs(interpreter: Interpreter) -> list[Array]:
    interpreter.invoke()
    return [np.asarray(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


def check(
    model_: Model, feeds: Sequence[Array], expected: Sequence[Array] = (), *, claimed: bool = True, **options: Any
) -> Interpreter:
    """Run twice, and compare with the expected results or LiteRT's. claimed: whether all of it runs on the device."""
    interpreter = prepared(model_, feeds, [CLDelegate(**options)])
    report = interpreter.delegation_report()
    if claimed:
        assert [row for row in report.nodes if not row.claimed] == []
        assert {row.partition for row in report.nodes if row.op in ("WHILE", "IF")} == {0}
    expected = expected or oracle.run(write(model_), feeds)
    for _ in range(2):
        for got, wanted in zip(outputs(interpreter), expected, strict=True):
            compare.assert_close(got, wanted, compare.DEVICE.get(wanted.dtype.name, 0.0))
    return interpreter


def reasons(interpreter: Interpreter) -> dict[str, str]:
    """Return the reasons of the nodes on the CPU, by operator."""
    return {row.op: row.reason for row in interpreter.delegation_report().nodes if not row.claimed}


COUNTER: State = [((), INT), ((5,), FLOAT)]


def growing(g: Graph, x: Sequence[int]) -> list[int]:
    """i + 1, tanh(y * 1.1 + 0.1)"""
    scaled = times(g, x[1], g.const(np.float32(1.1)))
    return [next_(g, x[0]), g.op(TANH, [plus(g, scaled, g.const(np.float32(0.1)))], NoOptions())]


LSTM_OPTIONS = UnidirectionalSequenceLSTMOptions(fused_activation_function=ActivationFunctionType.TANH)


def one_element(g: Graph, x: int) -> int:
    return g.op(RESHAPE, [x, g.const(np.array([1], np.int32))], ReshapeOptions((1,)))


def concatenated() -> ConcatenationOptions:
    return ConcatenationOptions(0)


def unary(g: Graph, op: Op, x: int) -> int:
    return g.op(op, [x], NoOptions())


def with_integer_weights() -> tuple[Model, list[Array]]:
    """Rows that a dense layer with a scale for all weights is applied to three times, and feeds."""
    rng = np.random.default_rng(71)
    weights = rng.integers(-127, 128, (24, 24)).astype(np.int8)
    state: State = [((), INT), ((5, 24), FLOAT)]

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        dense = g.op(FULLY_CONNECTED, [x[1], g.const(weights, 0.01)], FullyConnectedOptions())
        return [next_(g, x[0]), g.op(TANH, [plus(g, dense, g.const(np.float32(0.7)))], NoOptions())]

    return while_model(state, below(3), body), [int32(0), rng.random((5, 24), np.float32)]
