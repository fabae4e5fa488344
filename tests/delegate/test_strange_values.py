"""Results of numbers that are infinite or none: devices and the interpreter agree on them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MAXIMUM, MINIMUM, AddOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION, L2NormOptions
from litecl.interpreter.ops.pool_2d import MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.quantize import QUANTIZE
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.rnn import RNN, RNNOptions
from litecl.interpreter.ops.topk_v2 import TOPK_V2
from litecl.interpreter.schema import Padding, TensorType
from support.build import Graph, model, randn

RNG = np.random.default_rng(3)


def hybrid(g: Graph, x: int, y: int, asymmetric: bool, scale: float = 0.1) -> list[int]:
    """Rows are quantized at run time, by their range."""
    weights = g.const(RNG.integers(-127, 128, (5, 40)).astype(np.int8), scale)
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


def quantized(g: Graph, x: int, y: int, low: bool) -> list[int]:
    """The zero point is added to what may be no number."""
    spec = TensorSpec(TensorType.INT8, (9, 40))
    (made,) = g.node(QUANTIZE, [x], [spec], NoOptions())
    by = Quantization(np.array([0.1], np.float32), np.array([-100 if low else 100]))
    g.tensors[made] = replace(spec, name="quantized", quantization=by)
    return [made]


def normalized(g: Graph, x: int, y: int, _: bool) -> list[int]:
    return [g.op(L2_NORMALIZATION, [x], L2NormOptions())]


def pooled(g: Graph, x: int, y: int, alone: bool) -> list[int]:
    size = 1 if alone else 2
    image = g.op(RESHAPE, [x, g.const(np.array([1, 9, 40, 1], np.int32))], ReshapeOptions((1, 9, 40, 1)))
    return [g.op(MAX_POOL_2D, [image], Pool2DOptions(Padding.SAME, size, size, size, size))]


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
@pytest.mark.parametrize("mode", ["reference", "asymmetric"])
@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 2}, {"num_threads": 1, "queue_loops": True}])
def test_strange_values(options: dict[str, Any], mode: Any) -> None:
    g = Graph()
    x, y = g.input((9, 40)), g.input((9, 40))
    makes = (hybrid, hybrid_cells, extremes, largest, quantized, pooled, normalized)
    content = model(g.build(*(t for make in makes for variant in (False, True) for t in make(g, x, y, variant))))
    got = _answers(Interpreter(content, delegates=[CLDelegate(**options, strict=True, dynamic_range=mode)]))
    for a, b in zip(got, _answers(Interpreter(content, dynamic_range=mode)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["reference", "asymmetric"])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_rows_too_small_to_divide_by(asymmetric: bool, mode: Any) -> None:
    g = Graph()
    x = g.input((2, 40))
    content = model(g.build(*hybrid(g, x, x, asymmetric, scale=1e36)))
    answers = []
    delegate = CLDelegate(num_threads=1, strict=True, dynamic_range=mode)
    for delegates in ([delegate], []):
        interpreter = Interpreter(content, delegates=delegates, dynamic_range=mode)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.outer(np.float32([1, 1e-3]), np.resize(np.float32([0, 1e-40, 3e-37, -1e-39]), 40)))
        interpreter.invoke()
        answers.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    assert np.isfinite(answers[1]).all()
    np.testing.assert_allclose(*answers, rtol=1e-5)
