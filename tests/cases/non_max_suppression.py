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


# Of few different scores and corners, so that many are equal, and some boxes have no area.
_equal_scores = _rng.choice([0.1, 0.2, 0.5, 0.9], 40).astype(np.float32)
_equal_boxes = _rng.choice([0.0, 0.1, 0.3, 0.75, 1.0], (40, 4)).astype(np.float32)
_wild_boxes, _wild_scores = _equal_boxes.copy(), _equal_scores.copy()
_wild_boxes[[3, 8, 21], [0, 2, 3]] = [np.nan, np.inf, -np.inf]
_wild_scores[[2, 9, 30]] = [np.nan, np.inf, -np.inf]


def _v4(name: str, boxes: Array, scores: Array, most: int, iou: float, score: float, device: str | None = None) -> Case:
    inputs = [boxes, scores, scalar(most), scalar(iou, np.float32), scalar(score, np.float32)]
    return Case(name, NON_MAX_SUPPRESSION_V4, NoOptions(), inputs, frozenset({2}), device=device)


def _v5(
    name: str,
    most: int,
    iou: float,
    score: float,
    sigma: float,
    boxes: Array = _boxes,
    scores: Array = _scores,
    constants: frozenset[int] = frozenset({2, 5}),
    device: str | None = None,
) -> Case:
    thresholds = [scalar(value, np.float32) for value in (iou, score, sigma)]
    inputs = [boxes, scores, scalar(most), *thresholds]
    return Case(name, NON_MAX_SUPPRESSION_V5, NoOptions(), inputs, constants, device=device)


CASES = (
    _v4("overlaps", _boxes, _scores, 10, 0.3, 0.1),
    _v4("one", _boxes, _scores, 1, 0.3, 0.1),
    _v4("more than there are", _boxes, _scores, 60, 0.5, 0.0),
    _v4("none", _boxes, _scores, 5, 0.5, 2.0),
    _v4("no output", _boxes, _scores, 0, 0.5, 0.0, device="an output has no elements"),
    _v4("corners in any order", _boxes[:, [2, 1, 0, 3]], _scores, 20, 0.4, 0.2),
    _v4("no boxes", np.zeros((0, 4), np.float32), np.zeros(0, np.float32), 3, 0.5, 0.0, device="no elements"),
    _v4("equal scores and boxes without an area", _equal_boxes, _equal_scores, 30, 0.5, 0.1),
    _v4("NaN and infinities", _wild_boxes, _wild_scores, 40, 0.3, -np.inf),
    _v4("no threshold of scores", _boxes, _wild_scores, 40, 0.3, -np.inf),
    _v4("thresholds NaN", _boxes, _scores, 40, np.nan, np.nan),
    _v4("overlap NaN", _boxes, _scores, 40, np.nan, 0.2),
    _v4("score of infinity", _boxes, _wild_scores, 40, 0.5, np.inf),
    _v4("every box excludes all others", _boxes, _scores, 40, 0.0, 0.1),
    _v4("an overlap that none reaches: the best box again and again", _boxes, _scores, 12, 1.5, 0.1),
    _v5("hard", 12, 0.3, 0.1, 0.0),
    _v5("soft", 30, 1.0, 0.05, 0.5),
    _v5("soft and hard", 30, 0.6, 0.2, 0.3),
    _v5("soft, more than vectors hold", 40, 1.0, 0.0, 0.5),
    _v5("soft, equal scores", 40, 0.7, 0.05, 0.5, _equal_boxes, _equal_scores),
    _v5("soft, NaN and infinities", 40, 0.9, -np.inf, 0.5, _wild_boxes, _wild_scores),
    _v5("sigma of infinity", 30, 0.6, 0.2, np.inf, _equal_boxes, _equal_scores),
    _v5("a computed sigma", 30, 0.6, 0.2, 0.3, constants=frozenset({2}), device="soft_nms_sigma is not a constant"),
)
