"""NON_MAX_SUPPRESSION_V4 and _V5: the best boxes, none of which overlaps a better one by much.

Soft suppression (Bodla et al., 2017) lowers the score of a box that overlaps and considers it again.
"""

import heapq

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.arithmetic import lookup
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.schema import TensorType


@dataclass
class Candidate:
    """A box that may still be selected: its number, its score, and how many selected ones it was compared with."""

    box: int
    score: np.float32
    compared: int = 0


def overlaps(boxes: Array, box: int, others: Array) -> Array:
    """Return the intersection over union of one box with others; ``boxes`` [n, 4] hold opposite corners (y, x, y,
    x).
    """
    boxes = boxes[np.concatenate([[box], others])]
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    sides = np.minimum(high[0], high[1:]) - np.maximum(low[0], low[1:])
    shared = np.multiply(*np.maximum(sides, 0).T)
    areas = np.multiply(*(high - low).T)
    union = areas[0] + areas[1:] - shared
    real = (areas[0] > 0) & (areas[1:] > 0)
    ious: Array = np.divide(shared, union, out=np.zeros_like(shared), where=real)
    return ious


def select(
    boxes: Array, scores: Array, most: int, iou_threshold: float, score_threshold: float, sigma: float = 0.0
) -> tuple[list[int], list[np.float32]]:
    """Numbers and scores of the selected boxes, best first."""
    scale = np.float32(-0.5) / np.float32(sigma) if sigma > 0 else np.float32(0)
    wanted = np.flatnonzero(scores > score_threshold).tolist()
    queue = [(-float(scores[i]), i, Candidate(i, scores[i])) for i in wanted]
    heapq.heapify(queue)
    chosen: list[int] = []
    chosen_scores: list[np.float32] = []
    while queue and len(chosen) < most:
        limits.tick()
        candidate = heapq.heappop(queue)[2]
        before = candidate.score
        recent = np.array(chosen[candidate.compared :][::-1], np.int64)
        suppressed = _compare(candidate, overlaps(boxes, candidate.box, recent), iou_threshold, score_threshold, scale)
        candidate.compared = len(chosen)
        if suppressed:
            continue
        if candidate.score == before:
            chosen.append(candidate.box)
            chosen_scores.append(candidate.score)
        elif sigma > 0 and candidate.score > score_threshold:
            heapq.heappush(queue, (-float(candidate.score), candidate.box, candidate))
    return chosen, chosen_scores


def _compare(
    candidate: Candidate, ious: Array, iou_threshold: float, score_threshold: float, scale: np.float32
) -> bool:
    """Lower the score for every overlap; return whether one is so large that it excludes the box."""
    for iou in ious:
        if iou >= iou_threshold:
            return True
        if scale:
            # numpy's exponential of float32 differs between processors, and so would the choice of boxes.
            candidate.score = np.float32(candidate.score * lookup.exp(scale * iou * iou))
        if candidate.score <= score_threshold:
            break
    return False


def _infer(operands: int, inputs: Specs) -> int | None:
    """Return the number of rows of the outputs. Raises ShapeError where the operands do not fit."""
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
