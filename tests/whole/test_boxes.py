"""Random boxes for NON_MAX_SUPPRESSION and TFLite_Detection_PostProcess: all back ends select as LiteRT does.

Scores and corners are drawn from few values, so that many are equal and boxes have no area or swapped corners.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.cases.quantize import affine
from litecl.cases.values import scalar
from litecl.delegate import CLDelegate
from litecl.delegate.ops import detection_postprocess
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.kit import heaps
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.detection_postprocess import DETECTION_POSTPROCESS, DetectionOptions
from litecl.interpreter.ops.non_max_suppression import NON_MAX_SUPPRESSION_V4, NON_MAX_SUPPRESSION_V5
from litecl.interpreter.schema import TensorType
from litecl.perf.feeds import run_on
from support import devices, oracle

_STRANGE = (np.nan, np.inf, -np.inf)


def _ours(content: bytes, feeds: Any, delegates: list[CLDelegate]) -> list[Array]:
    interpreter = Interpreter(model_content=content, delegates=delegates)
    outputs = run_on(interpreter, feeds)
    if delegates:
        (row,) = interpreter.delegation_report().nodes
        assert row.claimed, row.reason
    return outputs


def _delegates(device: Any) -> list[list[CLDelegate]]:
    return [[]] if device is None else [[CLDelegate(device, num_threads=n)] for n in (1, 2)]


def _some_strange(rng: np.random.Generator, x: Array, values: tuple[float, ...] = _STRANGE) -> Array:
    for _ in range(3):
        x.flat[rng.integers(x.size)] = rng.choice(values)
    return x


def _suppression(rng: np.random.Generator) -> Case:
    n, most = int(rng.integers(1, 70)), int(rng.choice([1, 5, 20, 100]))
    boxes = rng.choice([0, 0.1, 0.25, 0.3, 0.5, 0.75, 1.0], (n, 4)) if rng.random() < 0.5 else rng.random((n, 4))
    scores = rng.choice([0.1, 0.2, 0.3, 0.5, 0.9, 0.0, -0.0], n) if rng.random() < 0.5 else rng.random(n)
    boxes, scores = (
        _some_strange(rng, x.astype(np.float32)) if rng.random() < 0.2 else x.astype(np.float32)
        for x in (boxes, scores)
    )
    thresholds = [
        rng.choice([0.0, 0.3, 0.5, 0.7, 1.0, 1.5, -1.0, np.nan, np.inf]),
        rng.choice([0.0, 0.2, -np.inf, np.inf, np.nan, 0.15, -1.0]),
    ]
    soft = bool(rng.random() < 0.5)
    sigma = [rng.choice([0.0, 0.1, 0.5, 5.0, np.inf])] if soft else []
    inputs = [boxes, scores, scalar(most), *(scalar(float(value), np.float32) for value in (*thresholds, *sigma))]
    op = NON_MAX_SUPPRESSION_V5 if soft else NON_MAX_SUPPRESSION_V4
    return Case("random", op, NoOptions(), inputs, frozenset({2, 5} if soft else {2}))


@devices.on_each_and_the_cpu
@pytest.mark.parametrize("seed", range(80))
def test_suppression(seed: int, device: Any) -> None:
    """Indices and their number are LiteRT's; scores are within a last place of its exponential."""
    case = _suppression(np.random.default_rng([7, seed]))
    content = write(case.model())
    expected = oracle.run(content, case.feeds, oracle.RESOLVERS["reference"])
    for delegates in _delegates(device):
        got = _ours(content, case.feeds, delegates)
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6 if a.dtype == np.float32 else 0)


def _detector(rng: np.random.Generator) -> Case:
    n, classes, background = int(rng.integers(1, 40)), int(rng.choice([1, 2, 5, 16, 37])), int(rng.integers(0, 2))
    regular = bool(rng.random() < 0.5)
    options = DetectionOptions(
        max_detections=int(rng.choice([1, 3, 10, 50])),
        max_classes_per_detection=1 if regular else int(rng.choice([1, 1, 2, 3, 9])),
        detections_per_class=int(rng.choice([1, 2, 5, 100])),
        use_regular_nms=regular,
        nms_score_threshold=float(rng.choice([0.0, 0.1, 0.5, -np.inf, 1e-8])),
        nms_iou_threshold=float(rng.choice([0.1, 0.5, 0.6, 1.0])),
        num_classes=classes,
        **{f"{side}_scale": float(rng.choice([10.0, 5.0, 3.3])) for side in "yxhw"},
    )
    shapes = (1, n, int(rng.choice([4, 6]))), (1, n, classes + background)
    if rng.random() < 0.5:
        integers = [rng.integers(0, 256, shape).astype(np.uint8) for shape in (*shapes, (n, 4))]
        integers[1] //= np.uint8(rng.choice([1, 50]))
        quantization = {0: affine(0.05, 128), 1: affine(1 / 256, int(rng.integers(0, 3))), 2: affine(0.004, 0)}
        return Case("bytes", DETECTION_POSTPROCESS, options, integers, frozenset({2}), quantization=quantization)
    few = rng.choice([0.1, 0.2, 0.3, 0.5, 0.9, 0.0, -0.0], shapes[1])
    anchors = np.concatenate([rng.random((n, 2)), rng.uniform(0, 0.4, (n, 2))], 1)
    floats = [2 * rng.standard_normal(shapes[0]), few if rng.random() < 0.5 else rng.random(shapes[1]), anchors]
    arrays: list[Array] = [x.astype(np.float32) for x in floats]
    several = regular or options.max_classes_per_detection > 1 < classes
    of_scores = _STRANGE if several else (np.inf, -np.inf)  # LiteRT's best class beside NaN depends on the processor
    for x, values in zip(arrays, ((*_STRANGE, 1e3, 5e3, -5e3), of_scores, (np.nan, np.inf, 0.0)), strict=True):
        if rng.random() < 0.2:
            _some_strange(rng, x, values)
    arrays[2][:, 2:] = np.maximum(arrays[2][:, 2:], 0)
    return Case("floats", DETECTION_POSTPROCESS, options, arrays, frozenset({2}))


@devices.on_each_and_the_cpu
@pytest.mark.parametrize("seed", range(80))
def test_detections(seed: int, device: Any) -> None:
    """Boxes, classes, scores and their number are LiteRT's, and other rows are zeros, which LiteRT does not write."""
    case = _detector(np.random.default_rng([11, seed]))
    content, options = write(case.model()), case.options
    expected = oracle.run(content, case.feeds, oracle.RESOLVERS["reference"])
    count, width = int(expected[3].item()), options.max_classes_per_detection
    column = np.arange(options.max_detections * width) % width
    written = (np.arange(len(column)) < count * width) & (column < options.num_classes)
    for delegates in _delegates(device):
        got = _ours(content, case.feeds, delegates)
        assert got[3] == count
        for a, b in zip(got[:3], expected[:3], strict=True):
            np.testing.assert_array_equal(a[0, written], b[0, written])
            assert not a[0, ~written].any()


def _anchored(anchors: Array, options: DetectionOptions) -> Case:
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal((1, len(anchors), 4)), rng.random((1, len(anchors), 2)), anchors]
    return Case("anchors", DETECTION_POSTPROCESS, options, [x.astype(np.float32) for x in inputs], frozenset({2}))


_OPTIONS = DetectionOptions(3, 1, 3, False, 0.1, 0.5, 2, 10.0, 10.0, 5.0, 5.0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [("a negative size", "an anchor of negative size"), ("computed anchors", "anchors is not a constant")],
)
def test_detectors_that_the_device_leaves_alone(change: str, reason: str) -> None:
    """A kernel cannot report a box of negative size, as the CPU does."""
    anchors = np.full((5, 4), 0.3)
    if change == "a negative size":
        anchors[2, 3] = -0.1
    case = _anchored(anchors, _OPTIONS)
    if change == "computed anchors":
        case = replace(case, constants=frozenset())
    interpreter = Interpreter(model_content=write(case.model()), delegates=[CLDelegate(device="native")])
    interpreter.allocate_tensors()
    assert interpreter.delegation_report().nodes[0].reason == reason


@pytest.mark.parametrize("scales", [[0.0], [1e-45], [1e37], [np.nan], [0.1, 0.2]])
@pytest.mark.parametrize("position", [0, 1])
def test_bytes_that_stand_for_no_different_numbers(position: int, scales: list[float]) -> None:
    """Their order is not that of the numbers."""
    quantizations = [affine(0.05, 128), affine(1 / 256, 0)]
    zeros = np.zeros(len(scales), np.int64)
    quantizations[position] = Quantization(np.array(scales, np.float32), zeros, quantized_dimension=2)
    boxes, scores = (
        TensorSpec(TensorType.UINT8, (1, 5, columns), quantization=by)
        for columns, by in zip((4, 2), quantizations, strict=True)
    )
    anchors = TensorSpec(TensorType.FLOAT32, (5, 4), data=np.ones((5, 4), np.float32))
    (detector,) = detection_postprocess.CL_OPS
    assert detector.claim(_OPTIONS, [boxes, scores, anchors], []) is not None


@pytest.mark.parametrize("regular", [False, True])
def test_what_takes_longer_than_a_time_limit_allows(regular: bool) -> None:
    """The interpreter heeds the limit between selections, which a kernel cannot."""
    boxes = [TensorSpec(TensorType.FLOAT32, (1, 100_000, 4)), TensorSpec(TensorType.FLOAT32, (1, 100_000, 2))]
    anchors = TensorSpec(TensorType.FLOAT32, (100_000, 4), data=np.ones((100_000, 4), np.float32))
    options = replace(_OPTIONS, max_detections=30_000, detections_per_class=30_000, use_regular_nms=regular)
    (detector,) = detection_postprocess.CL_OPS
    assert detector.claim(replace(options, max_detections=100), [*boxes, anchors], []) is None
    refusal = detector.claim(options, [*boxes, anchors], [])
    assert refusal is not None
    assert "comparisons of boxes" in refusal.reason


@pytest.mark.parametrize("seed", range(5))
def test_a_heap_sorts(seed: int) -> None:
    """Whatever its order of equal elements."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 9, 40).tolist()
    assert heaps.partial_sort(values, 13, int.__lt__) == sorted(values)[:13]
    heap: list[int] = []
    for value in values:
        heaps.push(heap, value, int.__lt__)
    assert [heaps.pop(heap, int.__lt__) for _ in values] == sorted(values, reverse=True)
