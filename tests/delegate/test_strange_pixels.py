"""A pixel that is infinite, or no number, changes no result that it has no part in."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Quantization
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.schema import Padding
from litecl.perf.feeds import run_on
from support import oracle
from support.build import Graph, model, randn

RNG = np.random.default_rng(8)
LARGE = 1e38
Make = Callable[[Graph, int, np.random.Generator], int]


def few_columns(g: Graph, x: int, rng: np.random.Generator) -> int:
    weights = g.const(randn(rng, 2, 1, 1, 4)), g.const(randn(rng, 2))
    return g.op(CONV_2D, [x, *weights], Conv2DOptions(Padding.SAME, 1, 1))


def lines(g: Graph, x: int, rng: np.random.Generator) -> int:
    return g.op(CONV_2D, [x, g.const(randn(rng, 5, 3, 3, 4)), None], Conv2DOptions(Padding.SAME, 1, 1))


def depthwise(g: Graph, x: int, rng: np.random.Generator) -> int:
    options = DepthwiseConv2DOptions(Padding.SAME, 1, 1, depth_multiplier=1)
    return g.op(DEPTHWISE_CONV_2D, [x, g.const(randn(rng, 1, 3, 3, 4)), None], options)


def upwards(g: Graph, x: int, rng: np.random.Generator) -> int:
    shape = g.const(np.array([1, 32, 32, 2], np.int32))
    return g.op(TRANSPOSE_CONV, [shape, g.const(randn(rng, 2, 2, 2, 4)), x], TransposeConvOptions(Padding.SAME, 2, 2))


def hybrid_depthwise(g: Graph, x: int, size: tuple[int, int], dilation: tuple[int, int], padding: Padding) -> int:
    weights = g.const(RNG.integers(1, 127, (1, *size, 3)).astype(np.int8), 0.02)
    by = Quantization(np.float32([0.02, 0.01, 0.03]), np.zeros(3, np.int64), 3)
    g.tensors[weights] = replace(g.tensors[weights], quantization=by)
    options = DepthwiseConv2DOptions(padding, 1, 1, 1, dilation_h_factor=dilation[0], dilation_w_factor=dilation[1])
    return g.op(DEPTHWISE_CONV_2D, [x, weights, g.const(randn(RNG, 3))], options)


def widely_dilated(g: Graph, x: int) -> int:
    """Dilate so widely that all windows over an image of one row see nothing."""
    row = g.op(SLICE, [x, g.const(np.int32([0, 1, 0, 0])), g.const(np.int32([2, 1, 5, 3]))], NoOptions())
    return hybrid_depthwise(g, row, (2, 2), (3, 3), Padding.SAME)


def widely_padded(g: Graph, x: int) -> int:
    """Pad with so many zeros that the first windows see nothing else."""
    wider = g.op(PAD, [x, g.const(np.int32([[0, 0], [4, 1], [0, 3], [0, 0]]))], NoOptions())
    return hybrid_depthwise(g, wider, (3, 3), (1, 1), Padding.VALID)


def barely_padded(g: Graph, x: int) -> int:
    wider = g.op(PAD, [x, g.const(np.int32([[0, 0], [1, 1], [0, 1], [0, 0]]))], NoOptions())
    return hybrid_depthwise(g, wider, (3, 3), (1, 1), Padding.VALID)


def with_gaps(g: Graph, x: int) -> int:
    """Between the pixels of the result that one of the image reaches."""
    weights = g.const(RNG.integers(1, 127, (2, 2, 2, 3)).astype(np.int8), 0.02)
    shape = g.const(np.int32([2, 12, 10, 2]))
    return g.op(TRANSPOSE_CONV, [shape, weights, x], TransposeConvOptions(Padding.SAME, 2, 3))


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("number", [np.inf, np.nan, 1.0])
@pytest.mark.parametrize("make", [widely_dilated, widely_padded, barely_padded, with_gaps])
def test_images_that_are_quantized_at_run_time(make: Callable[[Graph, int], int], number: float) -> None:
    """A number that is none spoils its image, but for what no pixel reaches, as in LiteRT's reference kernels, which
    make some number of NaN, though.
    """
    g = Graph()
    content = write(model(g.build(make(g, g.input((2, 4, 5, 3))))))
    image = randn(np.random.default_rng(6), 2, 4, 5, 3)
    image[0, 1, 2, 1] = number
    answers = []
    for delegates in ([], [CLDelegate(num_threads=1, strict=True)]):
        interpreter = Interpreter(content, delegates=delegates)
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, image)
        interpreter.invoke()
        answers.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
        assert not delegates or interpreter.delegation_report().claimed == len(interpreter.delegation_report().nodes)
    np.testing.assert_allclose(*answers, rtol=1e-4, atol=1e-4)
    assert np.isfinite(answers[0][1]).all()
    if number != number:
        return
    (wanted,) = oracle.run(content, [image])
    np.testing.assert_array_equal(np.abs(answers[0]) < LARGE, np.abs(wanted) < LARGE)  # where it clamps infinities
    np.testing.assert_allclose(answers[0][1], wanted[1], rtol=1e-4, atol=1e-4)


def finite(image: Array, make: Make, **options: Any) -> Array:
    """Return where the results of one operator are finite."""
    g = Graph()
    made = make(g, g.input(image.shape), np.random.default_rng(7))
    interpreter = Interpreter(model(g.build(made)), **options)
    run_on(interpreter, [image])
    return np.isfinite(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


@pytest.mark.parametrize("make", [few_columns, lines, depthwise, upwards])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_strange_pixels(make: Make, num_threads: int) -> None:
    image = randn(np.random.default_rng(5), 1, 16, 16, 4)
    image[0, 3, 5, 1], image[0, 7, 8, 2] = np.inf, np.nan
    got = finite(image, make, delegates=[CLDelegate(num_threads=num_threads, strict=True)])
    want = finite(image, make)
    assert not want.all() and want.mean() > 0.8
    np.testing.assert_array_equal(got, want)
