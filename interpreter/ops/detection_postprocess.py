"""TFLite_Detection_PostProcess: the boxes of an object detector, decoded from their anchors, without overlapping ones.

Formulas: kernels/detection_postprocess.cc. ``fast`` suppression looks at the best class of every box, ``regular``
suppression at every class separately.
"""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.arithmetic.fixed_point import affine, scale_of, zero_point_of
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import heaps, require, types
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.ops.non_max_suppression import overlaps
from litecl.interpreter.ops.quantize import dequantize
from litecl.interpreter.schema import TensorType

_EIGHT = 8


@dataclass(frozen=True)
class DetectionOptions:
    max_detections: int = 0
    max_classes_per_detection: int = 0
    detections_per_class: int = 100
    use_regular_nms: bool = False
    nms_score_threshold: float = 0.0
    nms_iou_threshold: float = 0.0
    num_classes: int = 0
    y_scale: float = 0.0
    x_scale: float = 0.0
    h_scale: float = 0.0
    w_scale: float = 0.0


def _infer(options: DetectionOptions, inputs: Specs) -> list[TensorSpec]:
    boxes, scores, anchors = require.present(inputs, 3)
    for spec, rank in ((boxes, 3), (scores, 3), (anchors, 2)):
        require.types_or_quantized(spec, types.FLOAT, (TensorType.UINT8,))
        require.rank(spec, exactly=rank)
    count = boxes.static_shape[1]
    fits = boxes.static_shape[0] == scores.static_shape[0] == 1 and scores.static_shape[1] == count
    if not fits or boxes.static_shape[2] < 4 or anchors.static_shape != (count, 4):
        shapes = ", ".join(str(list(spec.static_shape)) for spec in (boxes, scores, anchors))
        raise ShapeError(f"expected [1, n, 4], [1, n, classes] and [n, 4], got {shapes}")
    if not 1 <= options.num_classes <= scores.static_shape[2]:
        raise ShapeError(f"{options.num_classes} classes of {scores.static_shape[2]} scores")
    if min(options.max_detections, options.max_classes_per_detection, options.detections_per_class) < 1:
        raise ShapeError("expected at least one detection and one class per detection")
    if not 0 < options.nms_iou_threshold <= 1:
        raise ShapeError(f"expected nms_iou_threshold of (0, 1], got {options.nms_iou_threshold}")
    rows = require.elements([options.max_detections, options.max_classes_per_detection])
    shapes_ = ((1, rows, 4), (1, rows), (1, rows), (1,))
    return [TensorSpec(TensorType.FLOAT32, shape) for shape in shapes_]


def decode(options: DetectionOptions, boxes: Array, anchors: Array) -> Array:
    """Return corners (y, x, y, x) of boxes given as centre and size relative to their anchors."""
    scales = np.array([options.y_scale, options.x_scale, options.h_scale, options.w_scale], np.float32)
    relative = boxes[:, :4].astype(np.float64) / scales.astype(np.float64)
    anchors = anchors.astype(np.float64)
    centre = (relative[:, :2] * anchors[:, 2:] + anchors[:, :2]).astype(np.float32)
    half = (0.5 * np.exp(relative[:, 2:]) * anchors[:, 2:]).astype(np.float32)
    return np.concatenate([centre - half, centre + half], axis=1)


def _best(options: DetectionOptions, corners: Array, scores: Array, most: int) -> list[int]:
    """Return boxes by one score each, best first; none overlaps a better one by more than the threshold."""
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] >= np.float32(options.nms_score_threshold)]
    chosen: list[int] = []
    while order.size and len(chosen) < most:
        limits.tick()
        chosen.append(int(order[0]))
        ious = overlaps(corners[chosen[-1]], corners[order[1:]])
        order = order[1:][~(ious > np.float32(options.nms_iou_threshold))]
    return chosen


def _fast(options: DetectionOptions, corners: Array, scores: Array) -> tuple[Array, Array, Array]:
    """Return rows of the result, boxes and classes: every selected box with its best classes."""
    wanted = min(options.max_classes_per_detection, options.num_classes)
    classes = _best_classes(scores, wanted)
    best = scores[np.arange(len(scores)), classes[:, 0]]
    chosen = np.array(_best(options, corners, best, options.max_detections), np.int64)
    width = options.max_classes_per_detection
    rows = (np.arange(len(chosen))[:, None] * width + np.arange(wanted)).reshape(-1)
    boxes = np.repeat(chosen, wanted)
    kinds = classes[chosen].reshape(-1)
    return rows, boxes, kinds


def _best_classes(scores: Array, wanted: int) -> Array:
    """Return the classes of each row's highest scores, best first. Equal ones come in order if one class is wanted,
    else as a partial sort leaves them.
    """
    if wanted == 1:
        usable = np.where(np.isnan(scores), -np.inf, scores)
        usable[np.isnan(scores[:, 0]), 0] = np.inf  # nothing is greater than NaN
        return np.asarray(np.argmax(usable, axis=1))[:, None]
    return np.array([_partly_sorted(row, wanted) for row in scores.tolist()], np.int64).reshape(-1, wanted)


def _partly_sorted(scores: list[float], wanted: int) -> list[int]:
    return heaps.partial_sort(list(range(len(scores))), wanted, lambda a, b: scores[a] > scores[b])


def _regular(options: DetectionOptions, corners: Array, scores: Array) -> tuple[Array, Array, Array]:
    """Return rows of the result, boxes and classes: the best of all classes' boxes."""
    most = min(options.detections_per_class, options.max_detections)
    columns = scores.T
    pairs = [(box, kind) for kind, column in enumerate(columns) for box in _best(options, corners, column, most)]
    boxes, kinds = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1))
    order = np.argsort(-columns[kinds, boxes], kind="stable")[: options.max_detections]
    return np.arange(len(order)), boxes[order], kinds[order]


def _detect(options: DetectionOptions, boxes: Array, scores: Array, anchors: Array) -> list[Array]:
    with np.errstate(all="ignore"):
        corners = decode(options, boxes[0], anchors)
    if np.any(corners[:, :2] > corners[:, 2:]):
        raise ModelError("a decoded box has a negative size")
    own = scores[0][:, scores.shape[2] - options.num_classes :]  # without the background
    select = _regular if options.use_regular_nms else _fast
    rows, positions, kinds = select(options, corners, own)
    count = options.max_detections * options.max_classes_per_detection
    results = [np.zeros((count, 4), np.float32), np.zeros(count, np.float32), np.zeros(count, np.float32)]
    for result, values in zip(results, (corners[positions], kinds, own[positions, kinds]), strict=True):
        result[rows] = values
    detections = len(rows) if options.use_regular_nms else len(np.unique(rows // options.max_classes_per_detection))
    return [*(result[None] for result in results), np.array([detections], np.float32)]


def _bind(options: DetectionOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    boxes, scores, anchors = require.present(inputs, 3)
    table = score_table(scores) if require.is_quantized(scores) else None

    def run(options: DetectionOptions, inputs: Inputs) -> list[Array]:
        encodings, raw, centres = require.arrays(inputs, 3)
        return _detect(
            options, _real(encodings, boxes), raw if table is None else _scores(raw, table), _real(centres, anchors)
        )

    return run


def _real(x: Array, spec: TensorSpec) -> Array:
    return dequantize(x, affine(spec)) if require.is_quantized(spec) else x


def score_table(spec: TensorSpec) -> Array:
    """Return the numbers that bytes of scores stand for [2, 256]: in whole eights of the tensor, and after them.

    LiteRT's vector instructions (NEON, and SSE in their place) add scale * byte and scale * -zero_point, each rounded.
    """
    scale, zero, byte = np.float64(scale_of(spec)), zero_point_of(spec), np.arange(256)
    with np.errstate(all="ignore"):
        in_eights = np.float32(scale) * byte.astype(np.float32) + np.float32(scale * -zero)
        return np.stack([in_eights, np.float32(scale * (byte - zero))])


def whole_eights(size: int) -> int:
    """Return how many of a tensor's elements are in whole eights."""
    return size // _EIGHT * _EIGHT


def _scores(raw: Array, table: Array) -> Array:
    byte, whole = raw.reshape(-1), whole_eights(raw.size)
    return np.concatenate([table[0][byte[:whole]], table[1][byte[whole:]]]).reshape(raw.shape)


DETECTION_POSTPROCESS = Op(
    "TFLite_Detection_PostProcess",
    options=DetectionOptions,
    infer=_infer,
    run=require.unbound,
    bind=_bind,
    custom=True,
)
