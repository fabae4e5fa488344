"""An invoke that raises leaves variables and resources as they were, whatever had run before the error."""

from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, DIV, AddOptions, DivOptions
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.control import CALL, WHILE, CallOptions, WhileOptions
from litecl.interpreter.ops.lstm import BASIC_LSTM, LSTMKernelType, LSTMOptions
from litecl.interpreter.ops.variables import ASSIGN_VARIABLE, READ_VARIABLE, VAR_HANDLE, VarHandleOptions
from litecl.interpreter.schema import ActivationFunctionType, TensorType
from support import devices
from support.build import Graph, model, randn

RNG = np.random.default_rng(31)
SHAPE = (2, 4)
INT32, RESOURCE = TensorType.INT32, TensorType.RESOURCE

MODES: dict[str, dict[str, Any] | None] = {
    "interpreter": None,
    "one thread": {"num_threads": 1},
    "several threads": {"num_threads": 2},
    "queued": {"num_threads": 1, "queue_loops": True},
    "OpenCL": {"device": devices.tested()[0]},
    "OpenCL, queued": {"device": devices.tested()[0], "queue_loops": True},
    "first on the CPU": {"num_threads": 1, "deny_nodes": [0]},
    "second in the body on the CPU": {"num_threads": 1, "deny_nodes": [(2, 1)]},
    "last on the CPU": {"num_threads": 1, "deny_nodes": [2]},
}


def lstm(g: Graph, x: int, shared: list[int] | None = None) -> tuple[int, list[int]]:
    """A step with two variables, of its own unless they are given."""
    weights, bias = g.const(randn(RNG, 16, 8, scale=0.3)), g.const(randn(RNG, 16))
    options = LSTMOptions(ActivationFunctionType.TANH, kernel_type=LSTMKernelType.BASIC)
    states = shared or [g.variable(SHAPE), g.variable(SHAPE)]
    return g.op(BASIC_LSTM, [x, states[0], weights, bias, states[1]], options), states


def in_a_row() -> tuple[bytes, list[tuple[int, int]]]:
    """Two cells with a division between them, which fails where its divisor is 0."""
    g = Graph()
    x, divisor = g.input(SHAPE), g.input((), INT32)
    y, first = lstm(g, x)
    quotient = g.op(DIV, [g.const(np.int32(6)), divisor], DivOptions())
    z, second = lstm(g, y)
    return write(model(g.build(z, quotient))), [(0, t) for t in (*first, *second)]


def called() -> tuple[bytes, list[tuple[int, int]]]:
    """A cell in a subgraph that runs twice, and a resource that is assigned, before the division."""
    inner, g = Graph("inner"), Graph()
    y, states = lstm(inner, inner.input(SHAPE))
    x, divisor = g.input(SHAPE), g.input((), INT32)
    float_ = TensorSpec(TensorType.FLOAT32, SHAPE)
    (once,) = g.node(CALL, [x], [float_], CallOptions(1))
    (again,) = g.node(CALL, [once], [float_], CallOptions(1))
    handle = g.op(VAR_HANDLE, [], VarHandleOptions("", "total"))
    g.node(ASSIGN_VARIABLE, [handle, again], [], NoOptions())
    quotient = g.op(DIV, [g.const(np.int32(6)), divisor], DivOptions())
    (total,) = g.node(READ_VARIABLE, [handle], [float_], NoOptions())
    return write(model(g.build(again, total, quotient), inner.build(y))), [(1, t) for t in states]


def looped() -> tuple[bytes, list[tuple[int, int]]]:
    """A loop whose body has two cells that share states, and a division that fails in the third iteration."""
    condition, body, g = Graph("condition"), Graph("body"), Graph()
    i, _, _ = condition.input((), INT32), condition.input(SHAPE), condition.input((), INT32)
    less = condition.build(condition.op(LESS, [i, condition.const(np.int32(4))], NoOptions()))
    i, x, divisor = body.input((), INT32), body.input(SHAPE), body.input((), INT32)
    y, states = lstm(body, lstm(body, x, shared := [body.variable(SHAPE), body.variable(SHAPE)])[0], shared)
    quotient = body.op(DIV, [body.const(np.int32(6)), divisor], DivOptions())
    grown = body.op(ADD, [i, body.const(np.int32(1))], AddOptions())
    smaller = body.op(ADD, [divisor, body.const(np.int32(-1))], AddOptions())
    kept = body.op(ADD, [smaller, body.op(DIV, [quotient, body.const(np.int32(100))], DivOptions())], AddOptions())
    start = [g.const(np.int32(0)), g.input(SHAPE), g.input((), INT32)]
    results = g.node(WHILE, start, [g.tensors[t] for t in start], WhileOptions(1, 2))
    return write(model(g.build(*results[1:]), less, body.build(grown, y, kept))), [(2, t) for t in states]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("build", [in_a_row, called, looped])
def test_variables_are_as_before(build: Any, mode: str) -> None:
    content, states = build()
    options = MODES[mode]
    delegates = [] if options is None else [CLDelegate(**options, deny_ops=["DIV"])]
    tried, plain = Interpreter(model_content=content, delegates=delegates), Interpreter(model_content=content)
    for interpreter in (tried, plain):
        interpreter.allocate_tensors()
    for fails, looked_at in ((1, 1), (0, 0), (1, 1), (0, 0), (1, 0), (0, 0), (0, 0), (1, 0), (1, 0), (0, 0)):
        x = randn(RNG, *SHAPE)
        if fails:
            with pytest.raises(ModelError, match="division by 0"):
                invoke(tried, x, 2 if build is looped else 0)
            for state in states if looked_at else ():  # else they stay where they are, on a device
                np.testing.assert_allclose(value(tried, state), value(plain, state), rtol=1e-4, atol=1e-5)
            continue
        for got, expected in zip(invoke(tried, x, 20), invoke(plain, x, 20), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def value(interpreter: Interpreter, state: tuple[int, int]) -> Array:
    subgraph, tensor = state
    return interpreter.get_tensor(tensor, subgraph)


def invoke(interpreter: Interpreter, x: Array, divisor: int) -> list[Array]:
    for details, given in zip(interpreter.get_input_details(), (x, np.int32(divisor)), strict=True):
        interpreter.set_tensor(details["index"], given)
    interpreter.invoke()
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]
