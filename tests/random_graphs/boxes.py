"""Families of nodes that decide by comparisons, of elements that no node computes: boxes, places of maxima, buckets,
and spectra.
"""

import numpy as np

from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.bucketize import BUCKETIZE, BucketizeOptions
from litecl.interpreter.ops.detection_postprocess import DETECTION_POSTPROCESS, DetectionOptions
from litecl.interpreter.ops.max_unpooling import (
    LITERT_MAX_UNPOOLING_2D,
    MAX_POOLING_WITH_ARGMAX_2D,
    MAX_UNPOOLING_2D,
)
from litecl.interpreter.ops.non_max_suppression import NON_MAX_SUPPRESSION_V4, NON_MAX_SUPPRESSION_V5
from litecl.interpreter.ops.spectral import COMPLEX_ABS, IMAG, REAL, RFFT2D
from litecl.interpreter.options import CustomOptions
from litecl.random_graphs.elementwise import NUMBERS
from litecl.random_graphs.sketch import Sketch, T


def suppression(s: Sketch) -> None:
    """NON_MAX_SUPPRESSION_V4 and _V5."""
    n, most = s.size(40), s.size(20)
    boxes, scores = s.exact(T.FLOAT32, (n, 4)), s.exact(T.FLOAT32, (n,))
    thresholds = [s.one_of(0.0, 0.3, 0.6, 1.0), s.one_of(-1.0, 0.0, 0.4)]
    soft = s.chance(0.5)
    sigma = [s.one_of(0.0, 0.5)] if soft else []
    numbers = [s.const(np.array(number, np.float32)) for number in (*thresholds, *sigma)]
    op = NON_MAX_SUPPRESSION_V5 if soft else NON_MAX_SUPPRESSION_V4
    s.node(op, [boxes, scores, s.const(np.array(most, np.int32)), *numbers], NoOptions())


def detection(s: Sketch) -> None:
    """TFLite_Detection_PostProcess of floats and of bytes, with fast and with regular suppression."""
    n, classes, regular = s.size(30), s.one_of(1, 3, 20), s.chance(0.4)
    options = DetectionOptions(
        max_detections=s.one_of(1, 5, 20),
        max_classes_per_detection=1 if regular else s.one_of(1, 2),
        detections_per_class=s.one_of(2, 100),
        use_regular_nms=regular,
        nms_score_threshold=s.one_of(-10.0, 0.2),
        nms_iou_threshold=s.one_of(0.3, 0.6),
        num_classes=classes,
        **{f"{side}_scale": s.one_of(5.0, 10.0) for side in "yxhw"},
    )
    columns, anchors = classes + s.one_of(0, 1), np.abs(s.random(T.FLOAT32, (n, 4)))
    if s.chance(0.5):
        of_bytes = [s.exact(T.UINT8, (1, n, k), s.affine(T.UINT8, 0.02)) for k in (4, columns)]
        inputs = [*of_bytes, s.const(s.random(T.UINT8, (n, 4)), T.UINT8, s.affine(T.UINT8, 0.004, 0))]
    else:
        inputs = [*(s.exact(T.FLOAT32, (1, n, k)) for k in (4, columns)), s.const(anchors)]
    s.node(DETECTION_POSTPROCESS, inputs, options)


def _structure(padding: int, stride: tuple[int, int], size: tuple[int, int]) -> CustomOptions:
    return CustomOptions(np.array([padding, *stride[::-1], *size[::-1], 0, 0, 0], "<i4").tobytes())


def places(s: Sketch) -> None:
    """MaxPoolingWithArgmax2D, and MaxUnpooling2D of what it returns, by either name."""
    size = s.one_of((2, 2), (1, 3), (3, 2))
    stride = size if s.chance(0.6) else (1, 2)
    shape = (s.one_of(1, 2), size[0] * s.one_of(1, 3), size[1] * s.one_of(2, 4), s.size(20))
    options = _structure(s.one_of(1, 2), stride, size)
    values, taps = s.node(MAX_POOLING_WITH_ARGMAX_2D, [s.exact(T.FLOAT32, shape)], options)
    s.op(s.one_of(MAX_UNPOOLING_2D, LITERT_MAX_UNPOOLING_2D), [values, taps], options)


def buckets(s: Sketch) -> None:
    """BUCKETIZE."""
    boundaries = tuple(sorted(s.random(T.FLOAT32, (s.size(40),)).tolist()))
    x = s.exact(s.one_of(*NUMBERS), s.shape(s.one_of(1, 2, 3)))
    s.op(BUCKETIZE, [x], BucketizeOptions(boundaries))


def spectrum(s: Sketch) -> None:
    """RFFT2D, and a part of what it returns."""
    x = s.pick(T.FLOAT32, rank=range(2, 5))
    spectra = s.op(RFFT2D, [x, s.ints(s.one_of(1, 1, 4), s.one_of(2, 16, 64))])
    s.pool.remove(spectra)  # nothing else takes complex numbers
    s.op(s.one_of(COMPLEX_ABS, REAL, IMAG), [spectra])


FAMILIES = {"boxes": (suppression, detection, places, buckets, spectrum)}
"""By the name that themes know."""
