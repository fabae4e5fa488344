"""FLOAT16: products against float64, operators against LiteRT's float32 kernels, mixed types against its default."""

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.cases.halves import fits, halved
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array, Quantization
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding
from litecl.interpreter.schema import TensorType as T
from support.all_cases import CASES, expected
from support.build import Graph, model, randn

RELU = ActivationFunctionType.RELU


def halves(*shape: int, scale: float = 1.0, seed: int = 1) -> Array:
    return randn(np.random.default_rng(seed), *shape, scale=scale).astype(np.float16)


def run(op: Op, x: Array, others: list[Array | None], options: Any) -> Array:
    """Return the result of an operator, and compare it with the device's."""
    g = Graph()
    y = g.op(op, [g.input(x.shape, T.of(x.dtype)), *(None if o is None else g.const(o) for o in others)], options)
    results = []
    for delegates in ([], [CLDelegate()]):
        interpreter = Interpreter(model(g.build(y)), delegates=delegates)
        interpreter.allocate_tensors()
        interpreter.set_tensor(g.inputs[0], x)
        interpreter.invoke()
        results.append(interpreter.get_tensor(y))
    np.testing.assert_allclose(*results, rtol=1e-3, atol=1e-3)
    assert results[0].dtype == np.float16
    return results[0]


@pytest.mark.parametrize("bias", [None, halves(9), halves(9).astype(np.float32)], ids=["none", "half", "float"])
def test_fully_connected(bias: Array | None) -> None:
    x, weights = halves(5, 300), halves(9, 300, seed=2)
    options = FullyConnectedOptions(fused_activation_function=RELU)
    got = run(FULLY_CONNECTED, x, [weights, bias], options)
    wanted = x.astype(np.float64) @ weights.T.astype(np.float64) + (0 if bias is None else bias)
    np.testing.assert_allclose(got, np.maximum(wanted, 0), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("adj_x", [False, True])
@pytest.mark.parametrize("adj_y", [False, True])
def test_batch_matmul(adj_x: bool, adj_y: bool) -> None:
    x, y = halves(2, 3, 5, 300), halves(3, 300, 7, seed=2)
    options = BatchMatMulOptions(adj_x=adj_x, adj_y=adj_y)
    given = [np.ascontiguousarray(a.swapaxes(-1, -2)) if turned else a for a, turned in ((x, adj_x), (y, adj_y))]
    got = run(BATCH_MATMUL, given[0], [given[1]], options)
    np.testing.assert_allclose(got, x.astype(np.float64) @ y.astype(np.float64), rtol=1e-3, atol=1e-3)


def test_sums_beyond_halves() -> None:
    """Sums that leave the range and come back do not overflow; results that stay there are infinite."""
    x = np.array([[60000, 60000, -60000, 1], [60000, 60000, 0, 0]], np.float16)
    got = run(FULLY_CONNECTED, x, [np.ones((1, 4), np.float16), None], FullyConnectedOptions())
    np.testing.assert_array_equal(got, [[60000], [np.inf]])


@pytest.mark.parametrize(("x", "weights"), [(np.float16, np.float32), (np.float32, np.float16), (np.float16, np.int8)])
def test_other_types_beside_halves(x: type, weights: type) -> None:
    with pytest.raises((LiteclError, AssertionError), match=r"FLOAT|INT"):
        run(FULLY_CONNECTED, np.ones((1, 4), x), [np.ones((2, 4), weights), None], FullyConnectedOptions())


_REAL = (
    *("ABS", "ADD", "ADD_N", "ARG_MAX", "ARG_MIN", "ATAN2", "AVERAGE_POOL_2D", "BATCH_MATMUL", "CEIL", "CONV_2D"),
    *("COS", "CUMSUM", "DEPTHWISE_CONV_2D", "DIV", "ELU", "EXP", "FLOOR", "FLOOR_DIV", "FLOOR_MOD", "FULLY_CONNECTED"),
    *("GELU", "GREATER", "HARD_SWISH", "L2_NORMALIZATION", "L2_POOL_2D", "LEAKY_RELU", "LOG", "LOG_SOFTMAX"),
    *("LOGISTIC", "MAXIMUM", "MAX_POOL_2D", "MEAN", "MINIMUM", "MUL", "NEG", "POW", "PRELU", "REDUCE_MAX"),
    *("REDUCE_PROD", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "RESIZE_BILINEAR", "ROUND", "RSQRT", "SIGN"),
    *("SIN", "SOFTMAX", "SQRT", "SQUARE", "SQUARED_DIFFERENCE", "SUB", "SUM", "TANH", "TRANSPOSE_CONV", "ZEROS_LIKE"),
)


def _cases(name: str) -> list[Case]:
    suitable = (c for c in CASES if c.op.name == name and fits(c) and all(x is None or x.size for x in c.inputs))
    return list(islice(suitable, 3))


@pytest.mark.parametrize("device", [None, "native"])
@pytest.mark.parametrize("name", _REAL)
def test_rounds_once(name: str, device: str | None) -> None:
    """The results are those of LiteRT's float32 kernels, rounded, give or take the last bit of FLOAT16."""
    cases = _cases(name)
    assert cases
    for case in cases:
        half = halved(case)
        real = replace(case, inputs=[x.astype(np.float32) if _is_half(x) else x for x in half.inputs])
        interpreter = Interpreter(half.model(), delegates=[] if device is None else [CLDelegate(device)])
        interpreter.allocate_tensors()
        for detail, feed in zip(interpreter.get_input_details(), half.feeds, strict=True):
            interpreter.set_tensor(detail["index"], feed)
        interpreter.invoke()
        for detail, wanted in zip(interpreter.get_output_details(), expected(real), strict=True):
            _assert_a_step_apart(interpreter.get_tensor(detail["index"]), wanted)


def _is_half(x: Array | None) -> bool:
    return x is not None and x.dtype == np.float16


def _assert_a_step_apart(got: Array, wanted: Array) -> None:
    if wanted.dtype != np.float32:
        np.testing.assert_array_equal(got, wanted)
        return
    assert got.dtype == np.float16
    with np.errstate(over="ignore"):
        rounded = wanted.astype(np.float16)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    steps = np.spacing(np.abs(wanted.astype(np.float64)).clip(2.0**-14, 65504).astype(np.float16)).astype(np.float64)
    assert (same | (np.abs(got.astype(np.float64) - wanted) <= steps)).all()


@pytest.mark.parametrize("op", [unary.LOGISTIC, unary.TANH, unary.HARD_SWISH])
def test_steps_are_not_rounded(op: Op) -> None:
    """Every half is within half a step, and a float32's error, of the float64 result."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    x = every[np.isfinite(every)]
    functions = {"LOGISTIC": lambda x: 1 / (1 + np.exp(-x)), "TANH": np.tanh}
    g = Graph()
    y = g.op(op, [g.input(x.shape, T.FLOAT16)], NoOptions())
    interpreter = Interpreter(model(g.build(y)))
    interpreter.allocate_tensors()
    interpreter.set_tensor(g.inputs[0], x)
    interpreter.invoke()
    real = x.astype(np.float64)
    with np.errstate(over="ignore"):
        wanted = functions.get(op.name, lambda x: x * np.clip(x + 3, 0, 6) / 6)(real)
        step = np.spacing(np.abs(wanted).astype(np.float16)).astype(np.float64)
    assert (np.abs(interpreter.get_tensor(y).astype(np.float64) - wanted) <= 0.501 * step).all()


@pytest.mark.parametrize("bias", [np.float16, np.float32])
def test_bias_of_either_type(bias: type) -> None:
    rng = np.random.default_rng(3)
    image, taps, added = (rng.integers(-4, 5, shape) for shape in ((1, 5, 5, 3), (4, 3, 3, 3), (4,)))
    constants = frozenset({1, 2})
    inputs = [image.astype(np.float16), taps.astype(np.float16), added.astype(bias)]
    _assert_as_litert(Case("bias", CONV_2D, Conv2DOptions(Padding.SAME, 1, 1), inputs, constants, kernels="default"))


def test_half_weights_of_a_transposed_convolution() -> None:
    """LiteRT widens them; it takes such weights for CONV_2D too, but reads them as other numbers."""
    rng = np.random.default_rng(3)
    inputs = [
        np.array([1, 6, 6, 4], np.int32),
        rng.integers(-4, 5, (4, 2, 2, 3)).astype(np.float16),
        rng.integers(-4, 5, (1, 3, 3, 3)).astype(np.float32),
    ]
    options = TransposeConvOptions(Padding.SAME, 2, 2)
    _assert_as_litert(Case("weights", TRANSPOSE_CONV, options, inputs, frozenset({0, 1}), kernels="default"))


def _assert_as_litert(case: Case) -> None:
    for delegates in ([], [CLDelegate("native")]):
        interpreter = Interpreter(case.model(), delegates=delegates)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], case.feeds[0])
        interpreter.invoke()
        got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        np.testing.assert_array_equal(got, expected(case)[0], strict=True)


@pytest.mark.parametrize("weights", [np.float32, np.int8])
def test_refused_weights_of_a_convolution(weights: type) -> None:
    scale = {} if weights is np.float32 else {1: Quantization(np.ones(1, np.float32), np.zeros(1, np.int64))}
    inputs = [np.ones((1, 5, 5, 3), np.float16), np.ones((4, 3, 3, 3), weights), np.ones(4, np.float16)]
    case = Case("refused", CONV_2D, Conv2DOptions(Padding.SAME, 1, 1), inputs, frozenset({1, 2}), quantization=scale)
    with pytest.raises(LiteclError, match=r"input 1 .*expected type FLOAT16, got"):
        case.model()


@pytest.mark.parametrize("device", [None, "native"])
def test_a_mean_of_many(device: str | None) -> None:
    """LiteRT's AVERAGE_POOL_2D adds up in FLOAT16, whose whole numbers end at 2048."""
    x = np.ones((1, 64, 64, 8), np.float16)
    case = Case("ones", AVERAGE_POOL_2D, Pool2DOptions(Padding.VALID, 1, 1, 64, 64), [x], kernels="default")
    interpreter = Interpreter(case.model(), delegates=[] if device is None else [CLDelegate(device)])
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    assert (interpreter.get_tensor(interpreter.get_output_details()[0]["index"]) == 1).all()
    assert (expected(case)[0] < 1).all()
