"""Arguments of TensorFlow's raw operators on images and volumes, and of gradients."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from support.raw_arguments import c, f, i, n, p

_IMAGE, _VOLUME = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}, (1, 4, 4, 4, 2)
_CUBE = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
_SIDES, _STEPS = [1, 2, 2, 1], [1, 1, 1, 1]
_STEPS_3D = [1, 1, 1, 1, 1]
_FILTER, _FILTER_3D = (2, 2, 3, 4), (2, 2, 2, 2, 3)
_BOXES = np.float32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [0, 2.1, 1, 3], [0, 5, 1, 6]])
_SCORES = np.float32([0.9, 0.75, 0.6, 0.95, 0.5])
_CROP = {"boxes": np.float32([[0.1, 0.1, 0.8, 0.9], [0, 0.2, 0.5, 0.7]]), "box_ind": i(0, 1)}
_RANGE = {"min": np.float32(-1), "max": np.float32(1.5)}
_PICTURE = p(1, 5, 5, 3)


def _pooled(size: int = 2) -> dict[str, Any]:
    return {"orig_input": f(1, 4, 4, 2), "orig_output": f(1, size, size, 2)}


IMAGES: Mapping[str, Mapping[str, Any]] = {
    "AdjustContrastv2": {"images": _PICTURE, "contrast_factor": c(1.4, np.float32)},
    "AdjustHue": {"images": _PICTURE, "delta": c(0.1, np.float32)},
    "AdjustSaturation": {"images": _PICTURE, "scale": c(1.4, np.float32)},
    "AvgPool": {"value": f(1, 4, 4, 2), **_IMAGE},
    "AvgPool3D": {"input": f(*_VOLUME), **_CUBE},
    "AvgPool3DGrad": {"orig_input_shape": c(_VOLUME), "grad": f(1, 2, 2, 2, 2), **_CUBE},
    "AvgPoolGrad": {"orig_input_shape": c([1, 4, 4, 2]), "grad": f(1, 2, 2, 2), **_IMAGE},
    "CombinedNonMaxSuppression": {
        "boxes": _BOXES[None, :, None] / 6,
        "scores": p(1, 5, 2),
        "max_output_size_per_class": c(3),
        "max_total_size": c(4),
        "iou_threshold": c(0.5, np.float32),
        "score_threshold": c(0.2, np.float32),
    },
    "Conv2D": {"input": f(1, 4, 4, 3), "filter": f(*_FILTER), "strides": _STEPS, "padding": "SAME"},
    "Conv2DBackpropFilter": {
        "input": f(1, 4, 4, 3),
        "filter_sizes": c(_FILTER),
        "out_backprop": f(1, 4, 4, 4),
        "strides": _STEPS,
        "padding": "SAME",
    },
    "Conv2DBackpropInput": {
        "input_sizes": c([1, 4, 4, 3]),
        "filter": f(*_FILTER),
        "out_backprop": f(1, 4, 4, 4),
        "strides": _STEPS,
        "padding": "SAME",
    },
    "Conv3D": {"input": f(*_VOLUME), "filter": f(*_FILTER_3D), "strides": _STEPS_3D, "padding": "SAME"},
    "Conv3DBackpropFilterV2": {
        "input": f(*_VOLUME),
        "filter_sizes": c(_FILTER_3D),
        "out_backprop": f(1, 4, 4, 4, 3),
        "strides": _STEPS_3D,
        "padding": "SAME",
    },
    "Conv3DBackpropInputV2": {
        "input_sizes": c(_VOLUME),
        "filter": f(*_FILTER_3D),
        "out_backprop": f(1, 4, 4, 4, 3),
        "strides": _STEPS_3D,
        "padding": "SAME",
    },
    "CropAndResize": {"image": f(2, 5, 5, 2), **_CROP, "crop_size": c([3, 3])},
    "CropAndResizeGradBoxes": {"grads": f(2, 3, 3, 2), "image": f(2, 5, 5, 2), **_CROP},
    "CropAndResizeGradImage": {"grads": f(2, 3, 3, 2), **_CROP, "image_size": c([2, 5, 5, 2]), "T": "float"},
    "DepthwiseConv2dNative": {"input": f(1, 4, 4, 3), "filter": f(2, 2, 3, 2), "strides": _STEPS, "padding": "SAME"},
    "Dilation2D": {
        "input": f(1, 5, 5, 2),
        "filter": c(f(2, 2, 2), np.float32),
        "strides": _STEPS,
        "rates": _STEPS,
        "padding": "SAME",
    },
    "Dilation2DBackpropFilter": {
        "input": f(1, 5, 5, 2),
        "filter": f(2, 2, 2),
        "out_backprop": f(1, 5, 5, 2),
        "strides": _STEPS,
        "rates": _STEPS,
        "padding": "SAME",
    },
    "Dilation2DBackpropInput": {
        "input": f(1, 5, 5, 2),
        "filter": f(2, 2, 2),
        "out_backprop": f(1, 5, 5, 2),
        "strides": _STEPS,
        "rates": _STEPS,
        "padding": "SAME",
    },
    "ExtractImagePatches": {
        "images": f(1, 5, 5, 2),
        "ksizes": _SIDES,
        "strides": _STEPS,
        "rates": _STEPS,
        "padding": "VALID",
    },
    "FakeQuantWithMinMaxVars": {"inputs": f(3, 4), "min": c(-1, np.float32), "max": c(1.5, np.float32)},
    "FakeQuantWithMinMaxVarsGradient": {"gradients": f(3, 4), "inputs": f(3, 4), **_RANGE},
    "FakeQuantWithMinMaxVarsPerChannel": {
        "inputs": c(f(3, 2), np.float32),
        "min": c([-1, -1], np.float32),
        "max": c([1, 2], np.float32),
    },
    "FakeQuantWithMinMaxVarsPerChannelGradient": {
        "gradients": f(3, 2),
        "inputs": f(3, 2),
        "min": np.float32([-1, -1]),
        "max": np.float32([1, 2]),
    },
    "FusedPadConv2D": {
        "input": f(1, 4, 4, 3),
        "paddings": c([[0, 0], [1, 1], [2, 0], [0, 0]]),
        "filter": f(*_FILTER),
        "mode": "REFLECT",
        "strides": _STEPS,
        "padding": "VALID",
    },
    "FusedResizeAndPadConv2D": {
        "input": f(1, 4, 4, 3),
        "size": c([6, 6]),
        "paddings": c([[0, 0], [1, 1], [2, 0], [0, 0]]),
        "filter": f(*_FILTER),
        "mode": "REFLECT",
        "strides": _STEPS,
        "padding": "VALID",
    },
    "MaxPool": {"input": f(1, 4, 4, 2), **_IMAGE},
    "MaxPool3D": {"input": f(*_VOLUME), **_CUBE},
    "MaxPool3DGrad": {"orig_input": f(*_VOLUME), "orig_output": f(1, 2, 2, 2, 2), "grad": f(1, 2, 2, 2, 2), **_CUBE},
    "MaxPool3DGradGrad": {"orig_input": f(*_VOLUME), "orig_output": f(1, 2, 2, 2, 2), "grad": f(*_VOLUME), **_CUBE},
    "MaxPoolGrad": {**_pooled(), "grad": f(1, 2, 2, 2), **_IMAGE},
    "MaxPoolGradGrad": {**_pooled(), "grad": f(1, 4, 4, 2), **_IMAGE},
    **{
        name: {**_pooled(), "grad": grad, "ksize": c(_SIDES), "strides": c(_SIDES), "padding": "VALID"}
        for name, grad in (("MaxPoolGradV2", f(1, 2, 2, 2)), ("MaxPoolGradGradV2", f(1, 4, 4, 2)))
    },
    "MaxPoolGradWithArgmax": {
        "input": f(1, 4, 4, 1),
        "grad": f(1, 2, 2, 1),
        "argmax": n(0, 3, 8, 15).reshape(1, 2, 2, 1),
        **_IMAGE,
    },
    "MaxPoolV2": {"input": f(1, 4, 4, 2), "ksize": c(_SIDES), "strides": c(_SIDES), "padding": "VALID"},
    "MaxPoolWithArgmax": {"input": f(1, 4, 4, 2), **_IMAGE},
    "MirrorPadGrad": {"input": f(4, 7), "paddings": c([[1, 0], [2, 1]]), "mode": "REFLECT"},
    "NonMaxSuppression": {"boxes": _BOXES, "scores": _SCORES, "max_output_size": c(3)},
    "NonMaxSuppressionWithOverlaps": {
        "overlaps": p(5, 5),
        "scores": _SCORES,
        "max_output_size": c(3),
        "overlap_threshold": c(0.5, np.float32),
        "score_threshold": c(0.2, np.float32),
    },
    **{name: {"images": f(1, 4, 4, 2), "size": c([6, 7])} for name in ("ResizeBilinear", "ResizeNearestNeighbor")},
    "ResizeNearestNeighborGrad": {"grads": f(1, 6, 6, 2), "size": c([4, 4])},
    "ResizeBilinearGrad": {"grads": f(1, 6, 6, 2), "original_image": f(1, 4, 4, 2)},
    "StridedSliceGrad": {
        "shape": c([4, 4]),
        "begin": c([0, 1]),
        "end": c([3, 4]),
        "strides": c([1, 2]),
        "dy": f(3, 2),
    },
    "QuantizeAndDequantizeV2": {"input": f(3, 4), "input_min": c(-2, np.float32), "input_max": c(2, np.float32)},
    "QuantizeAndDequantizeV4": {"input": f(3, 4), "input_min": c(-2, np.float32), "input_max": c(2, np.float32)},
    "ResizeArea": {"images": f(1, 4, 4, 2), "size": c([6, 7])},
    "ResizeBicubic": {"images": f(1, 4, 4, 2), "size": c([6, 7])},
    "RGBToHSV": {"images": p(1, 4, 4, 3)},
    "HSVToRGB": {"images": p(1, 4, 4, 3)},
    "DrawBoundingBoxes": {"images": p(1, 8, 8, 3), "boxes": np.float32([[[0.1, 0.2, 0.7, 0.9]]])},
    "ExtractGlimpse": {"input": f(1, 8, 8, 2), "size": c([3, 3]), "offsets": f(1, 2) / 4},
    "ScaleAndTranslate": {
        "images": f(1, 4, 4, 2),
        "size": c([6, 7]),
        "scale": c([1.5, 1.75], np.float32),
        "translation": c([0, 0], np.float32),
    },
}
