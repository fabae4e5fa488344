"""Cases of TFLite_Detection_PostProcess."""

from typing import Any

import numpy as np

from litecl.cases import Case, rng
from litecl.cases.quantize import affine
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.detection_postprocess import DETECTION_POSTPROCESS, DetectionOptions

_rng = rng(83)
_BOXES = 40
_encodings = (_rng.standard_normal((1, _BOXES, 4)) * [2, 2, 1, 1]).astype(np.float32)
_scores = _rng.permutation(np.linspace(0, 1, _BOXES * 4)).reshape(1, _BOXES, 4).astype(np.float32)
_anchors = np.concatenate([_rng.uniform(0, 1, (_BOXES, 2)), _rng.uniform(0.1, 0.4, (_BOXES, 2))], 1).astype(np.float32)


def _options(**more: Any) -> DetectionOptions:
    given: dict[str, Any] = {
        "max_detections": 8,
        "max_classes_per_detection": 1,
        "detections_per_class": 5,
        "use_regular_nms": False,
        "nms_score_threshold": 0.1,
        "nms_iou_threshold": 0.4,
        "num_classes": 3,
        "y_scale": 10.0,
        "x_scale": 10.0,
        "h_scale": 5.0,
        "w_scale": 5.0,
    }
    return DetectionOptions(**(given | more))


def _case(name: str, scores: Array = _scores, **more: Any) -> Case:
    inputs = [_encodings, scores, _anchors]
    return Case(name, DETECTION_POSTPROCESS, _options(**more), inputs, frozenset({2}))


def _quantized(name: str, scores: tuple[float, int] = (1 / 256, 0), **more: Any) -> Case:
    inputs = [_rng.integers(0, 256, shape).astype(np.uint8) for shape in ((1, _BOXES, 4), (1, _BOXES, 4), (_BOXES, 4))]
    quantization = {0: affine(0.05, 128), 1: affine(*scores), 2: affine(0.004, 0)}
    return Case(name, DETECTION_POSTPROCESS, _options(**more), inputs, frozenset({2}), quantization=quantization)


_few_scores = _rng.choice([0.2, 0.5, 0.9], (1, _BOXES, 40)).astype(np.float32)
_wild_scores = _few_scores.copy()
_wild_scores[0, [1, 2, 5, 9], [1, 20, 39, 8]] = [np.nan, np.nan, np.inf, -np.inf]


CASES = (
    _case("fast"),
    _case("fast, no background", num_classes=4),
    _case("fast, everything overlaps little", nms_iou_threshold=1.0, max_detections=30),
    # LiteRT leaves rows unwritten where fewer boxes are found, so that there are enough in every case of the fast kind.
    _case("fast, high threshold", nms_score_threshold=0.9, max_detections=2),
    _case("regular", use_regular_nms=True),
    _case("regular, few a class", use_regular_nms=True, detections_per_class=2, max_detections=12),
    _case("regular, high threshold", use_regular_nms=True, nms_score_threshold=0.95),
    _case("fast, several classes of equal scores", _few_scores, num_classes=39, max_classes_per_detection=3),
    _case("fast, more classes than there are", num_classes=3, max_classes_per_detection=3),
    # Of one class of many, LiteRT's instructions for several numbers find another one beside NaN than comparisons do.
    _case("fast, infinities", np.nan_to_num(_wild_scores, posinf=np.inf, neginf=-np.inf), num_classes=39),
    _case("fast, several classes, NaN", _wild_scores, num_classes=39, max_classes_per_detection=2, max_detections=3),
    _case("regular, NaN and infinities", _wild_scores, num_classes=40, use_regular_nms=True),
    _quantized("uint8"),
    _quantized("uint8, several classes", max_classes_per_detection=2),
    _quantized("uint8 regular", use_regular_nms=True),
    _quantized("uint8, the largest integer is the lowest score", (-1 / 256, 255)),
    _quantized("uint8, another zero point", (0.0107, 37)),
    _quantized("uint8 regular, another zero point", (0.0093, 21), use_regular_nms=True),
)
