"""TFLite_Detection_PostProcess: decoded boxes, sorted by score, without those that overlap a better one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Const, Launch, Operand, Record, Refusal, Scratch, Step
from litecl.delegate.kit.claims import Specs, constant, given, is_quantized
from litecl.delegate.kit.schedule import Chunks, chunks
from litecl.delegate.ops.non_max_suppression import BOX_ROWS, CANDIDATE_BYTES, rounded_up, too_long
from litecl.delegate.quantized.integers import per_tensor
from litecl.interpreter.arithmetic.fixed_point import scale_of, zero_point_of
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.ops.detection_postprocess import (
    DETECTION_POSTPROCESS,
    DetectionOptions,
    score_table,
    whole_eights,
)
from litecl.interpreter.ops.quantize import dequantize

_KERNEL = "detection_postprocess"
_ANCHORS = 2
_INT_BYTES = 4
_SMALLEST, _LARGEST, _BYTE = 1e-30, 1e30, 255
_DECODING = 64  # operations, about


@dataclass(frozen=True)
class DetectionPostprocess(Record):
    """Sizes and numbers of a detector's boxes.

    encoding_step, score_step: elements from box to box. first_class: after the background. wanted: the classes of a box
    that are written, of ``width`` rows. most: boxes that a suppression selects at most. room: ``most`` rounded up to
    whole vectors, the floats of a row of their corners or areas. rows: of the outputs.
    """

    boxes: int
    encoding_step: int
    score_step: int
    first_class: int
    classes: int
    wanted: int
    width: int
    most: int
    max_detections: int
    rows: int
    room: int
    score_threshold: float
    iou_threshold: float
    y_scale: float
    x_scale: float
    h_scale: float
    w_scale: float
    boxes_zero: float
    boxes_scale: float


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    if refusal := constant(inputs, anchors=_ANCHORS) or _of_bytes(given(inputs, 0)) or _of_bytes(given(inputs, 1)):
        return refusal
    if (_anchors(given(inputs, _ANCHORS))[:, 2:] < 0).any():
        return Refusal("an anchor of negative size")  # its boxes have one too, which the CPU reports
    return too_long(_comparisons(options, given(inputs, 0).static_shape[1]))


def _of_bytes(spec: TensorSpec) -> Refusal | None:
    """Refuse scales and zero points with which bytes may not represent distinct numbers in a known order."""
    if not is_quantized(spec):
        return None
    if refusal := per_tensor(spec):
        return refusal
    usual = _SMALLEST <= abs(scale_of(spec)) <= _LARGEST and 0 <= zero_point_of(spec) <= _BYTE
    return None if usual else Refusal(f"scale {scale_of(spec)} and zero point {zero_point_of(spec)}")


def _most(options: DetectionOptions, boxes: int) -> int:
    """Return how many boxes a suppression selects at most."""
    per_class = options.detections_per_class if options.use_regular_nms else options.max_detections
    return min(per_class, options.max_detections, boxes)


def _comparisons(options: DetectionOptions, boxes: int) -> int:
    """Return how often boxes, or their scores, are compared at most."""
    most = _most(options, boxes)
    if not options.use_regular_nms:
        return boxes * most
    selected = options.num_classes * most
    return options.num_classes * boxes * most + selected * min(options.max_detections, selected)


def _anchors(spec: TensorSpec) -> Array:
    assert spec.data is not None
    if spec.quantization is not None and is_quantized(spec):
        return dequantize(spec.data, spec.quantization)
    return spec.data


def _scaling(spec: TensorSpec) -> tuple[float, float]:
    return (float(zero_point_of(spec)), float(scale_of(spec))) if is_quantized(spec) else (0.0, 1.0)


def _numbers(call: Call) -> DetectionPostprocess:
    options: DetectionOptions = call.options
    encodings, scores = (call.input(i) for i in (0, 1))
    _, boxes, columns = scores.shape
    most = _most(options, boxes)
    return DetectionPostprocess(
        boxes,
        encodings.shape[2],
        columns,
        columns - options.num_classes,
        options.num_classes,
        min(options.max_classes_per_detection, options.num_classes),
        options.max_classes_per_detection,
        most,
        min(options.max_detections, most * options.num_classes),
        call.outputs[1].spec.size,
        rounded_up(most, call.target.vector_width),
        options.nms_score_threshold,
        options.nms_iou_threshold,
        *(options.y_scale, options.x_scale, options.h_scale, options.w_scale),
        *_scaling(encodings.spec),
    )


def _defines(call: Call) -> dict[str, str | int | float]:
    macros = {"BYTES_OF_BOXES": is_quantized(call.input(0).spec), "DECODED": call.options.use_regular_nms}
    return {name: 1 for name, holds in macros.items() if holds}


def _items(share: Chunks) -> int:
    return share.needed[0]


def _lower(call: Call) -> list[Step]:
    select, scores = _regular if call.options.use_regular_nms else _fast, call.input(1)
    if not is_quantized(scores.spec):
        return select(call, scores)
    size, real = scores.spec.size, Scratch(4 * scores.spec.size)
    share = chunks(_KERNEL, size, call.target)
    args = scores, Const(score_table(scores.spec)), real, np.int32(whole_eights(size)), *share.args
    return [share.launch("real_scores", args, _defines(call)), *select(call, real)]


def _fast(call: Call, scores: Operand | Scratch) -> list[Step]:
    d, defines = _numbers(call), _defines(call)
    encodings = call.input(0)
    share = chunks(_KERNEL, d.boxes, call.target, work=d.classes)
    keys, order, other = (Scratch(_INT_BYTES * d.boxes) for _ in range(3))
    best = Scratch(CANDIDATE_BYTES * d.wanted * _items(share))
    kept, chosen = Scratch(4 * BOX_ROWS * d.room), Scratch(_INT_BYTES * d.most)
    anchors = Const(np.ascontiguousarray(_anchors(call.input(_ANCHORS).spec)))
    selecting = (encodings, anchors, scores, keys, order, other, kept, chosen, best, *call.outputs, d)
    return [
        share.launch("best_classes", (scores, keys, best, d, *share.args), defines),
        _alone(call, "fast_suppression", selecting, defines, _comparisons(call.options, d.boxes)),
    ]


def _regular(call: Call, scores: Operand | Scratch) -> list[Step]:
    d, defines = _numbers(call), _defines(call)
    encodings = call.input(0)
    by_box = chunks(_KERNEL, d.boxes, call.target, work=_DECODING)
    by_class = chunks(_KERNEL, d.classes, call.target, work=d.boxes)
    keys, order, other = (Scratch(_INT_BYTES * d.boxes * _items(by_class)) for _ in range(3))
    kept = Scratch(4 * BOX_ROWS * d.room * _items(by_class))
    chosen, counts = Scratch(_INT_BYTES * d.most * d.classes), Scratch(_INT_BYTES * d.classes)
    corners, best = Scratch(4 * 4 * d.boxes), Scratch(CANDIDATE_BYTES * d.max_detections)
    anchors = Const(np.ascontiguousarray(_anchors(call.input(_ANCHORS).spec)))
    selecting = (corners, scores, keys, order, other, kept, chosen, counts, d, *by_class.args)
    return [
        by_box.launch("decode_boxes", (encodings, anchors, corners, d, *by_box.args), defines),
        by_class.launch("regular_suppression", selecting, defines, _comparisons(call.options, d.boxes)),
        _alone(call, "best_detections", (corners, scores, chosen, counts, best, *call.outputs, d), defines),
    ]


def _alone(
    call: Call, entry: str, args: tuple[Any, ...], defines: dict[str, str | int | float], flops: int = 0
) -> Launch:
    return chunks(_KERNEL, 1, call.target).launch(entry, args, defines, flops)


CL_OPS = (
    ClOp(
        DETECTION_POSTPROCESS,
        claim=_claim,
        lower=_lower,
        cpu_only=True,
        float64=lambda options, inputs, outputs: True,
    ),
)
