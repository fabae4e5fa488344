"""A pixel that is infinite, or no number, changes no result that it has no part in."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.schema import Padding
from support.build import Graph, model, randn

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


def finite(image: Array, make: Make, **options: Any) -> Array:
    """Return where the results of one operator are finite."""
    g = Graph()
    made = make(g, g.input(image.shape), np.random.default_rng(7))
    interpreter = Interpreter(model(g.build(made)), **options)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
    interpreter.invoke()
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
