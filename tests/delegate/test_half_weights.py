"""CLDelegate(precision="fp16"): large weights are stored as halves, arithmetic is in float32.

What is expected is what LiteRT's reference kernels make of the same model with its weights rounded to halves, with the
tolerance of float32; the model with its own weights differs by what rounding them does.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate, Tuning
from litecl.delegate.cl_op import Const, Operand
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.schema import ActivationFunctionType, Padding
from litecl.perf.feeds import run_on
from support import compare, devices, oracle
from support.build import Graph, model, randn

_LOSS = 2e-3  # of the largest output: a half has 11 bits, and errors of many weights average out

Weights = Callable[..., int]  # a constant of random weights: shape, and fan_in to scale them by
Build = Callable[[Graph, Weights], int]


def _dense(rows: int, depth: int, units: int) -> Build:
    def build(g: Graph, weights: Weights) -> int:
        return g.op(FULLY_CONNECTED, [g.input((rows, depth)), weights(units, depth), None], FullyConnectedOptions())

    return build


def _conv(size: int, stride: int, channels: int, columns: int, side: int = 5) -> Build:
    def build(g: Graph, weights: Weights) -> int:
        options = Conv2DOptions(stride_w=stride, stride_h=stride)
        x = g.input((1, side, side, channels))
        return g.op(CONV_2D, [x, weights(columns, size, size, channels), weights(columns)], options)

    return build


def _transpose_conv(g: Graph, weights: Weights) -> int:
    options = TransposeConvOptions(padding=Padding.SAME, stride_w=1, stride_h=1)
    shape = g.const(np.array([1, 4, 4, 200], np.int32))
    return g.op(TRANSPOSE_CONV, [shape, weights(200, 3, 3, 160), g.input((1, 4, 4, 160))], options)


def _matmul(g: Graph, weights: Weights) -> int:
    return g.op(BATCH_MATMUL, [g.input((6, 600)), weights(600, 501)], BatchMatMulOptions())


def _lstm(g: Graph, weights: Weights) -> int:
    units, depth = 300, 260
    gates = [weights(units, depth) for _ in range(4)] + [weights(units, units) for _ in range(4)]
    biases = [weights(units) for _ in range(4)]
    states = [g.variable((1, units)) for _ in range(2)]
    inputs = [g.input((1, 4, depth)), *gates, None, None, None, *biases, None, None, *states, None, None, None, None]
    options = UnidirectionalSequenceLSTMOptions(ActivationFunctionType.TANH)
    return g.op(UNIDIRECTIONAL_SEQUENCE_LSTM, inputs, options)


_LARGE: dict[str, Build] = {
    "one row": _dense(1, 1003, 301),
    "three rows": _dense(3, 700, 401),
    "many rows": _dense(37, 513, 520),
    "1x1 convolution": _conv(1, 1, 600, 500),
    "3x3 convolution of stride 2": _conv(3, 2, 200, 150, side=9),
    "few channels": _conv(23, 1, 3, 170, side=30),
    "transposed convolution": _transpose_conv,
    "matrix product": _matmul,
    "LSTM": _lstm,
}


def _content(build: Build, *, rounded: bool) -> bytes:
    """The model; its biases are rounded too, or not: they are halves already."""
    rng = np.random.default_rng(6)

    def weights(*shape: int) -> int:
        values = randn(rng, *shape, scale=float(np.prod(shape[1:])) ** -0.5)
        values = values.astype(np.float16) if len(shape) == 1 or rounded else values
        return g.const(values.astype(np.float32))

    g = Graph()
    return write(model(g.build(build(g, weights))))


def _run(content: bytes, feed: Array, **options: Any) -> tuple[Array, Interpreter]:
    interpreter = Interpreter(model_content=content, delegates=[CLDelegate(strict=True, **options)])
    (output,) = run_on(interpreter, [feed])
    return output, interpreter


def _bytes_read(interpreter: Interpreter) -> int:
    """Return the size of all constants that launches read, those that lie in the model's memory included."""
    (delegation,) = interpreter._delegations
    args = {arg for plan in delegation.plans.values() for work in plan.works for arg in work.launch.args}
    return sum(a.size_bytes for a in args if isinstance(a, Const) or (isinstance(a, Operand) and a.data is not None))


def _feed(content: bytes) -> Array:
    (detail,) = Interpreter(model_content=content).get_input_details()
    return randn(np.random.default_rng(7), *detail["shape"])


@pytest.fixture(params=["CPU", "as on a GPU"])
def options(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """Options of the delegate; what is launched as on a GPU converts without the CPU's help."""
    if request.param == "CPU":
        return {}
    return devices.as_on_a_gpu(monkeypatch, tmp_path_factory.getbasetemp() / "half weights")


@pytest.mark.parametrize("build", _LARGE.values(), ids=_LARGE)
def test_weights_are_rounded_and_nothing_else(build: Build, options: dict[str, Any]) -> None:
    """The result is that of rounded weights, close to that of the weights as they are; and takes half the memory."""
    exact, rounded = (_content(build, rounded=rounded) for rounded in (False, True))
    feed = _feed(exact)
    got, interpreter = _run(exact, feed, precision="fp16", **options)
    compare.assert_close(got, oracle.run(rounded, [feed])[0], compare.DEVICE["float32"])
    compare.assert_close(got, oracle.run(exact, [feed])[0], _LOSS)
    _, in_floats = _run(exact, feed, **options)
    halves, floats = (_bytes_read(i) for i in (interpreter, in_floats))
    assert halves < 0.6 * floats


@pytest.mark.parametrize(
    ("build", "why"),
    [(_dense(1, 500, 500), "small"), (_dense(1, 1000, 300), "large numbers"), (_conv(3, 1, 190, 190, 32), "Winograd")],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_weights_that_stay_floats(build: Build, why: str) -> None:
    """Small weights, weights beyond the range of a half, and transformed ones."""
    content = _with_a_large_number(build) if why == "large numbers" else _content(build, rounded=False)
    feed = _feed(content)
    halves, _ = _run(content, feed, precision="fp16", tuning=Tuning())
    floats, _ = _run(content, feed, tuning=Tuning())
    np.testing.assert_array_equal(halves, floats)


def _with_a_large_number(build: Build) -> bytes:
    rng = np.random.default_rng(6)

    def weights(*shape: int) -> int:
        values = randn(rng, *shape)
        values[0, 0] = 1e5
        return g.const(values)

    g = Graph()
    return write(model(g.build(build(g, weights))))
