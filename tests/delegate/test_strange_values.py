"""Results of numbers that are infinite or none: devices and the interpreter agree on them."""

from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MAXIMUM, MINIMUM, AddOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.rnn import RNN, RNNOptions
from litecl.interpreter.ops.topk_v2 import TOPK_V2
from litecl.interpreter.schema import TensorType
from support.build import Graph, model, randn

RNG = np.random.default_rng(3)


def hybrid(g: Graph, x: int, y: int, asymmetric: bool) -> list[int]:
    """Rows are quantized at run time, by their range."""
    weights = g.const(RNG.integers(-127, 128, (5, 40)).astype(np.int8), scale=0.1)
    options = FullyConnectedOptions(asymmetric_quantize_inputs=asymmetric)
    return [g.op(FULLY_CONNECTED, [x, weights, g.const(randn(RNG, 5))], options)]


def hybrid_cells(g: Graph, x: int, y: int, asymmetric: bool) -> list[int]:
    of_input, recurrent = (g.const(RNG.integers(-127, 128, s).astype(np.int8), scale=0.01) for s in ((5, 40), (5, 5)))
    operands = [x, of_input, recurrent, g.const(randn(RNG, 5)), g.variable((9, 5))]
    return [g.op(RNN, operands, RNNOptions(asymmetric_quantize_inputs=asymmetric))]


def extremes(g: Graph, x: int, y: int, reverse: bool) -> list[int]:
    """MAXIMUM and MINIMUM in a chain, with the running value as the one operand or the other."""
    for op in (MAXIMUM, MINIMUM):
        y = g.op(op, [x, y] if reverse else [y, x], NoOptions())
        y = g.op(ADD, [y, g.const(randn(RNG, 40))], AddOptions())
    return [y]


def largest(g: Graph, x: int, y: int, _: bool) -> list[int]:
    outputs = [TensorSpec(TensorType.FLOAT32, (9, 7)), TensorSpec(TensorType.INT32, (9, 7))]
    return list(g.node(TOPK_V2, [x, g.const(np.array(7, np.int32))], outputs, NoOptions()))


def _answers(interpreter: Interpreter) -> list[Array]:
    interpreter.allocate_tensors()
    x = np.linspace(-3, 3, 360, dtype=np.float32).reshape(9, 40)[:, ::-1].copy()
    x[1, 3], x[2, 39], x[4, 0], x[5, [7, 21]] = np.nan, np.inf, -np.inf, (np.nan, np.inf)
    answers = []
    for fed in (x, x[::-1]):
        for position, details in enumerate(interpreter.get_input_details()):
            interpreter.set_tensor(details["index"], np.roll(fed, position, 0))
        interpreter.invoke()
        answers += [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]
    return answers


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 2}, {"num_threads": 1, "queue_loops": True}])
def test_strange_values(options: dict[str, Any]) -> None:
    g = Graph()
    x, y = g.input((9, 40)), g.input((9, 40))
    makes = (hybrid, hybrid_cells, extremes, largest)
    content = model(g.build(*(t for make in makes for variant in (False, True) for t in make(g, x, y, variant))))
    got = _answers(Interpreter(content, delegates=[CLDelegate(**options, strict=True)]))
    for a, b in zip(got, _answers(Interpreter(content)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
