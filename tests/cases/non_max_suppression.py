"""Cases of NON_MAX_SUPPRESSION_V4 and _V5."""

import numpy as np

from litecl.cases import Case, rng
from litecl.cases.values import scalar
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.non_max_suppression import NON_MAX_SUPPRESSION_V4, NON_MAX_SUPPRESSION_V5

_rng = rng(61)
_corners = _rng.uniform(0, 1, (40, 2))
_boxes = np.concatenate([_corners, _corners + _rng.uniform(-0.1, 0.5, (40, 2))], axis=1).astype(np.float32)
_scores = _rng.permutation(np.linspace(0.05, 0.95, 40)).astype(np.float32)


def _v4(name: str, boxes: Array, scores: Array, most: int, iou: float, score: float) -> Case:
    inputs = [boxes, scores, scalar(most), scalar(iou, np.float32), scalar(score, np.float32)]
    return Case(name, NON_MAX_SUPPRESSION_V4, NoOptions(), inputs, frozenset({2}))


def _v5(name: str, most: int, iou: float, score: float, sigma: float) -> Case:
    thresholds = [scalar(value, np.float32) for value in (iou, score, sigma)]
    inputs = [_boxes, _scores, scalar(most), *thresholds]
    return Case(name, NON_MAX_SUPPRESSION_V5, NoOptions(), inputs, frozenset({2}))


CASES = (
    _v4("overlaps", _boxes, _scores, 10, 0.3, 0.1),
    _v4("more than there are", _boxes, _scores, 60, 0.5, 0.0),
    _v4("none", _boxes, _scores, 5, 0.5, 2.0),
    _v4("no output", _boxes, _scores, 0, 0.5, 0.0),
    _v4("corners in any order", _boxes[:, [2, 1, 0, 3]], _scores, 20, 0.4, 0.2),
    _v4("no boxes", np.zeros((0, 4), np.float32), np.zeros(0, np.float32), 3, 0.5, 0.0),
    _v5("hard", 12, 0.3, 0.1, 0.0),
    _v5("soft", 30, 1.0, 0.05, 0.5),
    _v5("soft and hard", 30, 0.6, 0.2, 0.3),
)
