"""MaxPoolingWithArgmax2D, which says where the maxima stood, and its inverse, against loops over windows written apart.

The inverse is MaxUnpooling2D, or LiteRtMaxUnpooling2D.
"""

import numpy as np
import pytest
from flatbuffers import flexbuffers

from litecl.cases import Case
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.op import Op
from litecl.interpreter.ops.max_unpooling import (
    LITERT_MAX_UNPOOLING_2D,
    MAX_POOLING_WITH_ARGMAX_2D,
    MAX_UNPOOLING_2D,
)
from litecl.interpreter.options import CustomOptions
from litecl.perf.feeds import run_on
from support import devices
from support.build import randn
from support.shared import MODELS, needs_shared

RNG = np.random.default_rng(101)


def _on(content: bytes, inputs: list[Array], delegates: list[CLDelegate]) -> list[Array]:
    interpreter = Interpreter(content, delegates=delegates)
    outputs = run_on(interpreter, inputs)
    if delegates:
        assert all(row.claimed for row in interpreter.delegation_report().nodes)
    return outputs


def _run(op: Op, options: object, inputs: list[Array]) -> list[Array]:
    """Return the results of the CPU, which those of the devices equal."""
    content = write(Case("case", op, options, inputs).model())
    results = _on(content, inputs, [])
    for delegates in _delegates():
        for got, expected in zip(_on(content, inputs, delegates), results, strict=True):
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)
    return results


def _delegates() -> list[list[CLDelegate]]:
    return [[CLDelegate(device)] for device in devices.with_native()]


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
    fields = {"include_batch_in_index": False, "ksize": [1, *size, 1], "padding": padding, "strides": [1, *stride, 1]}
    options = CustomOptions(bytes(flexbuffers.Dumps(fields)))
    for got, expected in zip(
        _run(MAX_POOLING_WITH_ARGMAX_2D, options, [x]), _pooled(x, size, stride, before, shape), strict=True
    ):
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


def _structure(padding: int, stride: tuple[int, int], size: tuple[int, int], activation: int = 0) -> CustomOptions:
    """The 32 bytes of a TfLitePoolParams, widths before heights, as MediaPipe's hair segmentation has them."""
    return CustomOptions(np.array([padding, *stride[::-1], *size[::-1], activation, 0, 0], "<i4").tobytes())


@pytest.mark.parametrize(
    ("padding", "size", "stride", "before", "shape"),
    [(1, (2, 2), (2, 2), (0, 0), (3, 4)), (2, (3, 2), (1, 2), (0, 0), (3, 3)), (1, (3, 3), (2, 2), (1, 1), (3, 4))],
)
def test_mediapipe_counts_within_the_window(
    padding: int, size: tuple[int, int], stride: tuple[int, int], before: tuple[int, int], shape: tuple[int, int]
) -> None:
    x = randn(RNG, 2, 5, 7, 3)
    values, places = _run(MAX_POOLING_WITH_ARGMAX_2D, _structure(padding, stride, size, activation=1), [x])
    expected, elements = _pooled(x, size, stride, before, shape)
    np.testing.assert_array_equal(values, np.maximum(expected, 0))
    assert places.dtype == np.float32
    row, column = np.divmod(elements // 3, 7)
    taps_y = row - np.arange(shape[0])[:, None, None] * stride[0] + before[0]
    taps_x = column - np.arange(shape[1])[:, None] * stride[1] + before[1]
    np.testing.assert_array_equal(places, (taps_y * size[1] + taps_x).astype(np.float32) + np.float32(0.1))


@pytest.mark.parametrize("stride", [(2, 2), (2, 3), (1, 1)])
def test_mediapipe_puts_values_where_they_stood_in_the_window(stride: tuple[int, int]) -> None:
    values, size = randn(RNG, 2, 3, 4, 2), (2, 3)
    places = RNG.integers(0, 6, values.shape)
    shape = (6, 12)
    before = [max(0, (n - 1) * s + k - n * k) // 2 for n, s, k in zip((3, 4), stride, size, strict=True)]
    (got,) = _run(MAX_UNPOOLING_2D, _structure(1, stride, size), [values, places.astype(np.float32) + np.float32(0.1)])
    expected = np.zeros((2, *shape, 2), np.float32)
    for b, r, c, d in np.ndindex(*values.shape):
        tap = places[b, r, c, d]
        expected[b, r * stride[0] - before[0] + tap // 3, c * stride[1] - before[1] + tap % 3, d] = values[b, r, c, d]
    np.testing.assert_array_equal(got, expected)
    for wrong in (6.1, -1.0, np.nan):
        with pytest.raises(ModelError, match="out of range"):
            _run(MAX_UNPOOLING_2D, _structure(1, stride, size), [values, np.full(values.shape, wrong, np.float32)])


@pytest.mark.parametrize("channels", [1, 3, 16, 37])
@pytest.mark.parametrize("in_window", [False, True])
def test_strange_numbers_and_any_width(in_window: bool, channels: int) -> None:
    """NaN is larger than nothing, and of a window without a number the place is 0; ``_run`` compares the devices."""
    x = RNG.choice([-np.inf, np.nan, 0.0, -0.0, 1.0, np.inf, -3.4e38], (2, 6, 9, channels)).astype(np.float32)
    fields = {"include_batch_in_index": False, "ksize": [1, 3, 2, 1], "padding": "SAME", "strides": [1, 2, 3, 1]}
    options = _structure(1, (2, 3), (3, 2)) if in_window else CustomOptions(bytes(flexbuffers.Dumps(fields)))
    values, places = _run(MAX_POOLING_WITH_ARGMAX_2D, options, [x])
    lowest = values == np.finfo(np.float32).min
    expected = 0.1 if in_window else np.broadcast_to(np.arange(channels), places.shape)[lowest]
    np.testing.assert_array_equal(places[lowest], np.float32(expected) if in_window else expected)
    back = _structure(1, (2, 3), (2, 3) if in_window else (3, 2))
    _run(MAX_UNPOOLING_2D, back, [values, np.minimum(places, 5) if in_window else places // 2])


@pytest.mark.parametrize("stride", [(2, 3), (1, 2)])
@pytest.mark.parametrize("in_window", [False, True])
def test_a_device_leaves_out_what_has_no_place(in_window: bool, stride: tuple[int, int]) -> None:
    """A kernel cannot raise, and writes nothing outside of its result."""
    values = randn(RNG, 1, 3, 4, 5)
    places = RNG.integers(0, 6, values.shape).astype(np.float32 if in_window else np.int32)
    wrong = RNG.random(values.shape) < 0.5
    for outside in (-1, -7, 2**30, -(2**31), *((np.nan, np.inf, 6) if in_window else ())):
        given = np.where(wrong, outside, places).astype(places.dtype)
        content = write(Case("wrong", MAX_UNPOOLING_2D, _structure(1, stride, (2, 3)), [values, given]).model())
        expected = np.zeros((1, *((6, 12) if in_window else (3 * stride[0], 4 * stride[1])), 5), np.float32)
        for b, r, c, d in np.argwhere(~wrong):
            tap = int(places[b, r, c, d])
            if in_window:
                expected[b, r * stride[0] + tap // 3, c * stride[1] + tap % 3, d] = values[b, r, c, d]
            else:
                expected.ravel()[tap] = values[b, r, c, d]
        for delegates in _delegates():
            (got,) = _on(content, [values, given], delegates)
            np.testing.assert_array_equal(got, expected)


@needs_shared
def test_a_published_model_with_unpooling_runs() -> None:
    interpreter = Interpreter(str(MODELS / "google-ai-edge-LiteRT/max_unpooling_2d.tflite"))
    interpreter.allocate_tensors()
    interpreter.invoke()
    (detail,) = interpreter.get_output_details()
    assert interpreter.get_tensor(detail["index"]).shape == tuple(detail["shape"])
