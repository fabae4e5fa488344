"""NON_MAX_SUPPRESSION_V4 and _V5: the best boxes; none overlaps a better one by much.

Soft suppression (Bodla et al., 2017) lowers the score of a box that overlaps and considers it again.
"""

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.arithmetic import lookup
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import heaps, require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class Candidate:
    """A box that may still be selected: its number, its score, and how many selected ones it was compared with."""

    box: int
    score: np.float32
    compared: int = 0


def _below(a: Candidate, b: Candidate) -> bool:
    return bool(a.score < b.score)


def _lesser(a: Array, b: Array) -> Array:
    """Return C++'s std::min, which returns the first of NaN and a number."""
    return np.where(b < a, b, a)


def _greater(a: Array, b: Array) -> Array:
    return np.where(a < b, b, a)


def overlaps(first: Array, second: Array) -> Array:
    """Return intersections over unions of boxes [n, 4] or [4], opposite corners (y, x, y, x).

    A box without an area overlaps none.
    """
    with np.errstate(all="ignore"):
        corners = [(b[..., :2], b[..., 2:]) for b in (first, second)]
        lows, highs = ([extreme(*pair) for pair in corners] for extreme in (_lesser, _greater))
        areas = [np.multiply(*(high - low).T) for low, high in zip(lows, highs, strict=True)]
        shared = np.multiply(*_greater(_lesser(*highs) - _greater(*lows), np.zeros(2, np.float32)).T)
        none = (areas[0] <= 0) | (areas[1] <= 0)
        return np.where(none, np.float32(0), shared / (areas[0] + areas[1] - shared))


def select(
    boxes: Array, scores: Array, most: int, iou_threshold: float, score_threshold: float, sigma: float = 0.0
) -> tuple[list[int], list[np.float32]]:
    """Return numbers and scores of the selected boxes, best first; in the order and as often as TFLite selects them.

    A selected box is considered again. It overlaps itself, so it is selected again only if it has no area, or if
    ``iou_threshold`` is above 1.
    """
    scale = np.float32(-0.5) / np.float32(sigma) if sigma > 0 else None
    queue: list[Candidate] = []
    for box in np.flatnonzero(scores > np.float32(score_threshold)).tolist():
        heaps.push(queue, Candidate(box, scores[box]), _below)
    most = min(most, len(queue))
    chosen: list[Candidate] = []
    while queue and len(chosen) < most:
        limits.tick()
        candidate = heaps.pop(queue, _below)
        recent = boxes[[one.box for one in reversed(chosen[candidate.compared :])]]
        ious = overlaps(boxes[candidate.box], recent)
        score = _suppressed(candidate.score, ious, np.float32(iou_threshold), np.float32(score_threshold), scale)
        if score is None:
            continue
        compared = Candidate(candidate.box, score, len(chosen))
        if score == candidate.score:
            chosen.append(compared)
        if score > score_threshold:
            heaps.push(queue, compared, _below)
    return [one.box for one in chosen], [one.score for one in chosen]


def _suppressed(
    score: np.float32, ious: Array, iou_threshold: np.float32, score_threshold: np.float32, scale: np.float32 | None
) -> np.float32 | None:
    """Return the score lowered for every overlap, None if one is so large that it excludes the box."""
    for iou in ious:
        if iou >= iou_threshold:
            return None
        if scale is not None:
            # numpy's float32 exponential differs between processors, and so would the choice of boxes.
            score = np.float32(score * lookup.exp(scale * iou * iou))
        if score <= score_threshold:
            break
    return score


def _infer(operands: int, inputs: Specs) -> int | None:
    """Return the number of rows of the outputs. Raises ShapeError if the operands do not fit."""
    boxes, scores, most, *thresholds = require.present(inputs, operands)
    for spec in (boxes, scores, *thresholds):
        require.types(spec, types.FLOAT)
    require.types(most, (TensorType.INT32,))
    require.rank(scores, exactly=1)
    if boxes.static_shape != (*scores.static_shape, 4):
        raise ShapeError(f"boxes {list(boxes.static_shape)} for scores {list(scores.static_shape)}")
    for spec in (most, *thresholds):
        require.rank(spec, exactly=0)
    count = require.integer(most)
    if count is not None and count < 0:
        raise ShapeError(f"expected a max_output_size of at least 0, got {count}")
    return count


def _padded(values: list[int] | list[np.float32], count: int, dtype: type) -> Array:
    result: Array = np.zeros(count, dtype)
    result[: len(values)] = values
    return result


def _infer_v4(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    count = _infer(5, inputs)
    return [TensorSpec(TensorType.INT32, None if count is None else (count,)), TensorSpec(TensorType.INT32, ())]


def _run_v4(options: NoOptions, inputs: Inputs) -> list[Array]:
    boxes, scores, most, *thresholds = require.arrays(inputs, 5)
    chosen, _ = select(boxes, scores, int(most.item()), *(float(t.item()) for t in thresholds))
    return [_padded(chosen, int(most.item()), np.int32), np.array(len(chosen), np.int32)]


def _infer_v5(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    count = _infer(6, inputs)
    shape = None if count is None else (count,)
    outputs = ((TensorType.INT32, shape), (TensorType.FLOAT32, shape), (TensorType.INT32, ()))
    return [TensorSpec(type_, shape) for type_, shape in outputs]


def _run_v5(options: NoOptions, inputs: Inputs) -> list[Array]:
    boxes, scores, most, *thresholds = require.arrays(inputs, 6)
    sigma = float(thresholds[2].item())
    if sigma < 0:
        raise ShapeError(f"expected a soft_nms_sigma of at least 0, got {sigma}")
    count = int(most.item())
    chosen, kept = select(boxes, scores, count, *(float(t.item()) for t in thresholds))
    return [_padded(chosen, count, np.int32), _padded(kept, count, np.float32), np.array(len(chosen), np.int32)]


NON_MAX_SUPPRESSION_V4 = Op("NON_MAX_SUPPRESSION_V4", options=NoOptions, infer=_infer_v4, run=_run_v4)
NON_MAX_SUPPRESSION_V5 = Op("NON_MAX_SUPPRESSION_V5", options=NoOptions, infer=_infer_v5, run=_run_v5)
