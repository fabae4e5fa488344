"""MaxPoolingWithArgmax2D, which says where the maxima stood, and its inverse, against loops over windows written apart.

The inverse is MaxUnpooling2D, or LiteRtMaxUnpooling2D.
"""

import numpy as np
import pytest

from build import randn
from cases import Case
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array
from litecl.interpreter.op import Op
from litecl.interpreter.ops.max_unpooling import (
    LITERT_MAX_UNPOOLING_2D,
    MAX_POOLING_WITH_ARGMAX_2D,
    MAX_UNPOOLING_2D,
    MaxPoolingWithArgmax2DOptions,
)
from litecl.interpreter.options import CustomOptions
from litecl.interpreter.writer import write
from shared import MODELS, needs_shared

RNG = np.random.default_rng(101)


def _run(op: Op, options: object, inputs: list[Array]) -> list[Array]:
    interpreter = Interpreter(write(Case("case", op, options, inputs).model()))
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def _pooled(x: Array, size: tuple[int, int], stride: tuple[int, int], before: tuple[int, int], shape: tuple[int, int]):
    values = np.zeros((len(x), *shape, x.shape[3]), np.float32)
    places = np.zeros(values.shape, np.int32)
    for b, r, c, d in np.ndindex(*values.shape):
        y0, x0 = r * stride[0] - before[0], c * stride[1] - before[1]
        window = {
            (row, column): x[b, row, column, d]
            for row in range(max(0, y0), min(x.shape[1], y0 + size[0]))
            for column in range(max(0, x0), min(x.shape[2], x0 + size[1]))
        }
        row, column = max(window, key=lambda place: window[place])
        values[b, r, c, d] = window[row, column]
        places[b, r, c, d] = (row * x.shape[2] + column) * x.shape[3] + d
    return values, places


@pytest.mark.parametrize(
    ("size", "stride", "padding", "before", "shape"),
    [
        ((2, 2), (2, 2), "VALID", (0, 0), (2, 3)),
        ((3, 2), (1, 2), "VALID", (0, 0), (3, 3)),
        ((3, 3), (2, 2), "SAME", (1, 1), (3, 4)),
    ],
)
def test_maxima_and_their_places(
    size: tuple[int, int], stride: tuple[int, int], padding: str, before: tuple[int, int], shape: tuple[int, int]
) -> None:
    x = randn(RNG, 2, 5, 7, 3)
    options = MaxPoolingWithArgmax2DOptions((1, *size, 1), (1, *stride, 1), padding)
    for got, expected in zip(_run(MAX_POOLING_WITH_ARGMAX_2D, options, [x]), _pooled(x, size, stride, before, shape),
                             strict=True):  # fmt: skip
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("op", [MAX_UNPOOLING_2D, LITERT_MAX_UNPOOLING_2D], ids=lambda op: op.name)
@pytest.mark.parametrize(("padding", "shape"), [(1, (4, 6)), (2, (5, 7))])
def test_unpooling_puts_values_where_they_stood(op: Op, padding: int, shape: tuple[int, int]) -> None:
    values = randn(RNG, 2, 2, 3, 2)
    size = shape[0] * shape[1] * 2
    places = np.stack([RNG.permutation(size)[:12] for _ in range(2)]).reshape(values.shape).astype(np.int32)
    options = CustomOptions(np.array([padding, 2, 2, 3, 3, 0, 0, 0, 0, 0], "<i4").tobytes())
    (got,) = _run(op, options, [values, places])
    expected = np.zeros((2, size), np.float32)
    for image in range(2):
        for place, value in zip(places[image].ravel(), values[image].ravel(), strict=True):
            expected[image, place] = value
    np.testing.assert_array_equal(got, expected.reshape(2, *shape, 2))
    places[0, 0, 0, 0] = size
    with pytest.raises(ModelError, match="out of range"):
        _run(op, options, [values, places])


@needs_shared
def test_a_published_model_with_unpooling_runs() -> None:
    interpreter = Interpreter(str(MODELS / "google-ai-edge-LiteRT/max_unpooling_2d.tflite"))
    interpreter.allocate_tensors()
    interpreter.invoke()
    (detail,) = interpreter.get_output_details()
    assert interpreter.get_tensor(detail["index"]).shape == tuple(detail["shape"])
