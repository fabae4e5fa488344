"""``Converter(fp16_safe=...)``: a model of smaller numbers that computes the same, to the last bit."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cli.parser import main
from litecl.converter import Converter
from litecl.converter.quantization.powers import POWERS, PRODUCTS
from litecl.converter.quantization.report import Rescaled
from litecl.halves import Emulation
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model
from litecl.interpreter.integers import Integers
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.binary import (
    ADD,
    DIV,
    MUL,
    SQUARED_DIFFERENCE,
    SUB,
    AddOptions,
    DivOptions,
    MulOptions,
    SubOptions,
)
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.reduce import MEAN, ReducerOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.unary import LOGISTIC, SQRT
from litecl.interpreter.schema import ActivationFunctionType, Padding
from litecl.perf.feeds import run_on
from support import oracle
from support.all_cases import CASES
from support.build import Graph, model, randn
from support.half_models import FAILING

RELU, RELU6 = ActivationFunctionType.RELU, ActivationFunctionType.RELU6
LAST = np.array([-1], np.int32)
Build = Callable[[Graph, np.random.Generator], int]


def _dense(g: Graph, rng: Any, x: int, columns: int, depth: int, scale: float, act: Any = RELU) -> int:
    weights, bias = g.const(randn(rng, columns, depth, scale=scale)), g.const(randn(rng, columns, scale=scale))
    return g.op(FULLY_CONNECTED, [x, weights, bias], FullyConnectedOptions(act, keep_num_dims=True))


def _pair(g: Graph, rng: Any, act: Any = RELU) -> int:
    """Two layers: the first's results are about 400,000."""
    return _dense(g, rng, _dense(g, rng, g.input((3, 20)), 16, 20, 3e4, act), 5, 16, 1e-6, ActivationFunctionType.NONE)


def _image(g: Graph, rng: Any) -> int:
    """Convolutions with a residual, a pooling and a layer; biases and a constant that is added."""
    x = g.input((1, 8, 8, 4))
    y = g.op(
        CONV_2D,
        [x, g.const(randn(rng, 8, 3, 3, 4, scale=2e4)), g.const(randn(rng, 8, scale=1e4))],
        Conv2DOptions(Padding.SAME, 1, 1, RELU),
    )
    z = g.op(
        DEPTHWISE_CONV_2D,
        [y, g.const(randn(rng, 1, 3, 3, 8)), g.const(randn(rng, 8))],
        DepthwiseConv2DOptions(Padding.SAME, 1, 1, 1),
    )
    z = g.op(ADD, [z, g.op(ADD, [y, g.const(randn(rng, 8, scale=5e3))], AddOptions())], AddOptions(RELU))
    z = g.op(AVERAGE_POOL_2D, [z], Pool2DOptions(Padding.VALID, 8, 8, 8, 8))
    z = g.op(RESHAPE, [z, g.const(np.array([1, 8], np.int32))], ReshapeOptions((1, 8)))
    return _dense(g, rng, z, 6, 8, 1e-6, ActivationFunctionType.NONE)


def _normed(g: Graph, rng: Any) -> int:
    """A stream of two layers, and its LayerNorm in parts: squares pass 65504, whatever divides them is exact."""
    x = g.input((6, 32))
    stream = g.op(ADD, [_dense(g, rng, x, 32, 32, 60.0), _dense(g, rng, x, 32, 32, 90.0)], AddOptions())
    keep = ReducerOptions(keep_dims=True)
    mean = g.op(MEAN, [stream, g.const(LAST)], keep)
    variance = g.op(MEAN, [g.op(SQUARED_DIFFERENCE, [stream, mean], NoOptions()), g.const(LAST)], keep)
    root = g.op(SQRT, [g.op(ADD, [variance, g.const(np.float32(1e-5))], AddOptions())], NoOptions())
    y = g.op(DIV, [g.op(SUB, [stream, mean], SubOptions()), root], DivOptions())
    return g.op(MUL, [y, g.const(randn(rng, 32))], MulOptions())


SAFE: dict[str, Build] = {"linear and RELU": _pair, "an image network": _image, "a LayerNorm in parts": _normed}


def _made(build: Build) -> tuple[Model, Array]:
    g, rng = Graph(), np.random.default_rng(8)
    y = build(g, rng)
    made = model(g.build(y))
    return made, randn(rng, *made.subgraphs[0].tensors[made.subgraphs[0].inputs[0]].static_shape)


def _error(content: bytes, feed: Array, expected: Array) -> float:
    """The error in halves, relative to the largest magnitude."""
    interpreter = Interpreter(model_content=content, delegates=[Emulation("both")])
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], feed)
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return float(np.nan_to_num(np.abs(got - expected), nan=np.inf).max() / np.abs(expected).max())


def _converted(made: Model, data: Any) -> tuple[bytes, Rescaled]:
    converter = Converter.from_tflite(made, fp16_safe=data)
    content = converter.convert()
    assert converter.report.rescaled is not None
    return content, converter.report.rescaled


@pytest.mark.parametrize("name", SAFE)
def test_the_same_to_the_last_bit_and_safe_in_halves(name: str) -> None:
    made, feed = _made(SAFE[name])
    content, rescaled = _converted(made, [[feed]])
    (expected,) = oracle.run(write(made), [feed])
    np.testing.assert_array_equal(oracle.run(content, [feed])[0], expected)
    other = 2 * feed[..., ::-1]  # of inputs that were no samples too
    np.testing.assert_array_equal(oracle.run(content, [other])[0], oracle.run(write(made), [other])[0])
    assert rescaled.powers
    assert (rescaled.left, rescaled.undone, rescaled.is_random) == ({}, "", False)
    assert not _error(write(made), feed, expected) < 0.1
    assert _error(content, feed, expected) < 0.02


_FIXED: dict[str, Build] = {
    "RELU6 between": lambda g, rng: _pair(g, rng, RELU6),
    "TANH between": lambda g, rng: _pair(g, rng, ActivationFunctionType.TANH),
    "gates": lambda g, rng: _gated(g, rng),
    "the output itself": lambda g, rng: _dense(g, rng, g.input((3, 20)), 16, 20, 3e4),
}


def _gated(g: Graph, rng: Any) -> int:
    """x logistic(x): the function needs x as it is."""
    x = _dense(g, rng, g.input((3, 20)), 16, 20, 3e4, ActivationFunctionType.NONE)
    swish = g.op(MUL, [x, g.op(LOGISTIC, [x], NoOptions())], MulOptions())
    return _dense(g, rng, swish, 5, 16, 1e-6, ActivationFunctionType.NONE)


@pytest.mark.parametrize("name", _FIXED)
def test_what_cannot_be_rescaled_is_told(name: str) -> None:
    """And the file stays as it is."""
    made, feed = _made(_FIXED[name])
    content, rescaled = _converted(made, [[feed]])
    assert content == write(made)
    if name in ("RELU6 between", "TANH between"):  # whose results are small; what is within no range shows
        assert (rescaled.powers, rescaled.left) == ({}, {})
        return
    assert rescaled.powers == {}
    assert max(rescaled.left.values()) > 65504
    assert "litecl bisect --fp16" in str(rescaled)


def _homogeneous() -> list[Op]:
    moving = [op for op in {c.op: c for c in CASES} if isinstance(op.integers, Integers) and op.integers.moves]
    return list(dict.fromkeys([*PRODUCTS, *POWERS, *moving]))


@pytest.mark.parametrize("op", _homogeneous(), ids=lambda op: op.name)
def test_operators_keep_powers_of_two(op: Op) -> None:
    """Whatever the options of a case: with operands times powers of two, results are the same times theirs."""
    x, y, added = PRODUCTS.get(op, (None, None, None))
    powers = {x: 4, y: -8, added: -4} if op in PRODUCTS else {}
    factor = -4 if op in PRODUCTS else int(4 * POWERS.get(op, 1))
    plain, rng, seen = (ActivationFunctionType.NONE, RELU), np.random.default_rng(4), 0
    for case in (c for c in CASES if c.op is op and not c.types and not c.quantization):
        floats = [i for i, v in enumerate(case.inputs) if v is not None and v.dtype == np.float32]
        is_empty = any(v is not None and not v.size for v in case.inputs)  # the largest of none is the least float
        if is_empty or not floats or getattr(case.options, "fused_activation_function", plain[0]) not in plain:
            continue
        drawn = [randn(rng, *np.shape(v)) if i in floats else v for i, v in enumerate(case.inputs)]
        scaled = [np.ldexp(v, powers.get(i, 4)) if i in floats else v for i, v in enumerate(drawn)]
        cases = (replace(case, inputs=inputs) for inputs in (drawn, scaled))
        for a, b in zip(*(run_on(Interpreter(each.model()), each.feeds) for each in cases), strict=True):
            np.testing.assert_array_equal(b, np.ldexp(a, factor) if a.dtype == np.float32 else a, err_msg=str(case))
        seen += 1
    assert seen


def test_an_input_stays_as_it_is() -> None:
    case = FAILING["a sum over pixels"]()
    _, rescaled = _converted(Interpreter(model_content=case.content).model, [[case.feed]])
    assert [name.partition("_")[0] for name in rescaled.left] == ["SUM"]


def test_models_that_are_safe_stay() -> None:
    made, feed = _made(lambda g, rng: _dense(g, rng, g.input((3, 20)), 16, 20, 0.1))
    for data in ([[feed]], True):
        content, rescaled = _converted(made, data)
        assert content == write(made)
        assert (rescaled.powers, rescaled.left, rescaled.is_random) == ({}, {}, data is True)


def test_weights_in_halves_besides() -> None:
    """The weights that are stored as halves are those that were rescaled."""
    made, feed = _made(_pair)
    converter = Converter.from_tflite(made, "float16", [[feed]])
    content = converter.convert()
    (expected,) = oracle.run(write(made), [feed])
    assert np.abs(oracle.run(content, [feed])[0] - expected).max() < 2e-3 * np.abs(expected).max()
    assert _error(content, feed, expected) < 0.02
    with pytest.raises(ConversionError, match='fp16_safe: expected a model in float, or quantize="float16"'):
        Converter.from_tflite(made, "int8", True)


def test_weights_that_would_lose_digits_in_floats() -> None:
    """Numbers near the least float: what is not exact is not done."""
    made, feed = _made(lambda g, rng: _tiny(g, rng))
    content, rescaled = _converted(made, [[feed]])
    assert content == write(made)
    assert "would lose digits" in rescaled.undone
    assert rescaled.left


def _tiny(g: Graph, rng: Any) -> int:
    bias = randn(rng, 16, scale=3e-38)
    weights = randn(rng, 16, 20, scale=3e4)
    weights[0] = 0  # this channel is its bias alone
    x = g.op(FULLY_CONNECTED, [g.input((3, 20)), g.const(weights), g.const(np.abs(bias))], FullyConnectedOptions(RELU))
    return _dense(g, rng, x, 5, 16, 1e-6, ActivationFunctionType.NONE)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, feed = _made(_normed)
    source, data, output = (tmp_path / name for name in ("a.tflite", "samples.npz", "b.tflite"))
    source.write_bytes(write(made))
    np.savez(data, main_in0=feed)
    arguments = ["convert", str(source), "-o", str(output), "--fp16-safe"]
    assert main([*arguments, "--calibrate", str(data), "--json"]) == 0
    rescaled = json.loads(capsys.readouterr().out)["conversion"]["rescaled"]
    assert (bool(rescaled["powers"]), rescaled["left"]) == (True, {})
    np.testing.assert_array_equal(oracle.run(output.read_bytes(), [feed])[0], oracle.run(write(made), [feed])[0])
    assert main(arguments) == 0
    assert "ranges are those of random inputs" in capsys.readouterr().out
    assert main(["bisect", str(output), "--input", f"main_in0={tmp_path / 'x.npy'}", "--fp16", "both"]) == 1  # no file
