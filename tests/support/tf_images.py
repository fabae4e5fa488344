"""TensorFlow functions on images, volumes, boxes and signals, one operator each."""

from typing import Any

import numpy as np
import tensorflow as tf

from litecl.interpreter.graph import Array
from support.tf_functions import TfFunction

raw = tf.raw_ops
_IMAGE = ((None, 6, 6, 3),)
_STATIC_IMAGE = ((2, 6, 6, 3),)
_random = np.random.default_rng(7)


def _weights(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def _f(name: str, function: Any, shapes: Any, low: float = -2.0, high: float = 2.0) -> TfFunction:
    return TfFunction(name, function, shapes, low, high)


_BOXES = np.float32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [0, 2.05, 1, 3], [3, 3, 4, 4], [3, 3, 4.5, 4]])


def _suppress(x: Any) -> Any:
    return tf.image.non_max_suppression(_BOXES, x, 4, 0.5, 0.1)


DETECTION = (
    _f("non max suppression", _suppress, ((6,),), 0, 1),
    _f(
        "non max suppression padded",
        lambda x: raw.NonMaxSuppressionV4(
            boxes=_BOXES,
            scores=x,
            max_output_size=4,
            iou_threshold=0.5,
            score_threshold=0.1,
            pad_to_max_output_size=True,
        ),
        ((6,),),
        0,
        1,
    ),
    _f(
        "soft non max suppression",
        lambda x: tf.image.non_max_suppression_with_scores(_BOXES[::2], x, 2, 0.5, 0.1, soft_nms_sigma=0.5),
        ((3,),),
        0,
        1,
    ),
)

SPECTRAL = (
    _f("magnitudes of a spectrum", lambda x: tf.abs(tf.signal.rfft(x)), ((None, 16),)),
    _f("parts of a spectrum", lambda x: (tf.math.real(tf.signal.rfft(x)), tf.math.imag(tf.signal.rfft(x))), ((2, 16),)),
    _f("short-time spectrum", lambda x: tf.abs(tf.signal.stft(x, 16, 8, 16)), ((2, 64),)),
    _f("padded spectrum", lambda x: tf.abs(tf.signal.rfft(x, [32])), ((2, 20),)),
    _f("spectrum of images", lambda x: tf.abs(tf.signal.rfft2d(x)), ((2, 8, 16),)),
    _f("frames", lambda x: tf.signal.frame(x, 8, 4), ((2, 32),)),
    _f("overlap and add", lambda x: tf.signal.overlap_and_add(x, 4), ((2, 5, 8),)),
    _f("discrete cosine transform", lambda x: tf.signal.dct(x), ((2, 16),)),
)

IMAGES = (
    _f("pool 1d", lambda x: tf.nn.max_pool1d(x, 2, 2, "SAME"), ((None, 6, 3),)),
    _f("conv 1d", lambda x: tf.nn.conv1d(x, _weights(3, 3, 4), 1, "SAME"), ((None, 6, 3),)),
    _f("grouped conv", lambda x: tf.nn.conv2d(x, _weights(3, 3, 2, 4), 1, "SAME"), ((2, 6, 6, 4),)),
    _f("dilated conv", lambda x: tf.nn.conv2d(x, _weights(3, 3, 3, 4), 1, "SAME", dilations=2), _IMAGE),
    _f("depthwise conv", lambda x: tf.nn.depthwise_conv2d(x, _weights(3, 3, 3, 2), (1, 1, 1, 1), "SAME"), _IMAGE),
    _f(
        "depthwise conv with computed filters",
        lambda x, y: tf.nn.depthwise_conv2d(x, y * 2, (1, 1, 1, 1), "SAME"),
        (*_IMAGE, (3, 3, 3, 2)),
    ),
    _f(
        "separable conv",
        lambda x: tf.nn.separable_conv2d(x, _weights(3, 3, 3, 2), _weights(1, 1, 6, 4), (1, 1, 1, 1), "SAME"),
        _IMAGE,
    ),
    _f(
        "transposed conv",
        lambda x: tf.nn.conv2d_transpose(x, _weights(3, 3, 4, 3), (2, 12, 12, 4), 2, "SAME"),
        _STATIC_IMAGE,
    ),
    _f("conv 3d", lambda x: tf.nn.conv3d(x, _weights(2, 2, 2, 3, 4), (1, 1, 1, 1, 1), "SAME"), ((1, 4, 4, 4, 3),)),
    _f(
        "transposed conv 3d",
        lambda x: tf.nn.conv3d_transpose(x, _weights(2, 2, 2, 4, 3), (1, 8, 8, 8, 4), 2, "SAME"),
        ((1, 4, 4, 4, 3),),
    ),
    _f("resize by bicubic curves", lambda x: tf.image.resize(x, [9, 4], "bicubic"), _IMAGE),
    _f("resize by areas", lambda x: tf.image.resize(x, [3, 4], "area"), _IMAGE),
    _f("resize by lanczos", lambda x: tf.image.resize(x, [9, 4], "lanczos3"), _IMAGE),
    _f("resize antialiased", lambda x: tf.image.resize(x, [3, 4], antialias=True), _IMAGE),
    _f("resize with padding", lambda x: tf.image.resize_with_pad(x, 9, 12), _STATIC_IMAGE),
    _f("central crop", lambda x: tf.image.central_crop(x, 0.5), _STATIC_IMAGE),
    _f("flip", tf.image.flip_left_right, _STATIC_IMAGE),
    _f("rotate by 90 degrees", tf.image.rot90, _STATIC_IMAGE),
    _f("transpose image", tf.image.transpose, _STATIC_IMAGE),
    _f("image gradients", tf.image.image_gradients, _STATIC_IMAGE),
    _f("sobel edges", tf.image.sobel_edges, _STATIC_IMAGE),
    _f("total variation", tf.image.total_variation, _STATIC_IMAGE),
    _f("standardization", tf.image.per_image_standardization, _STATIC_IMAGE),
    _f("grayscale", tf.image.rgb_to_grayscale, _STATIC_IMAGE, 0, 1),
    _f("rgb to yuv", tf.image.rgb_to_yuv, _STATIC_IMAGE, 0, 1),
    _f("rgb to hsv", tf.image.rgb_to_hsv, _STATIC_IMAGE, 0, 1),
    _f("hsv to rgb", tf.image.hsv_to_rgb, _STATIC_IMAGE, 0, 1),
    _f("contrast", lambda x: tf.image.adjust_contrast(x, 1.5), _STATIC_IMAGE, 0, 1),
    _f("brightness", lambda x: tf.image.adjust_brightness(x, 0.2), _STATIC_IMAGE, 0, 1),
    _f("gamma", lambda x: tf.image.adjust_gamma(x, 1.5), _STATIC_IMAGE, 0, 1),
    _f("hue", lambda x: tf.image.adjust_hue(x, 0.2), _STATIC_IMAGE, 0, 1),
    _f("saturation", lambda x: tf.image.adjust_saturation(x, 0.5), _STATIC_IMAGE, 0, 1),
    _f(
        "patches",
        lambda x: tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
        _IMAGE,
    ),
    _f(
        "crop and resize",
        lambda x: tf.image.crop_and_resize(x, [[0.1, 0.1, 0.8, 0.9], [0.0, 0.2, 1.0, 0.7]], [0, 1], [4, 5]),
        _STATIC_IMAGE,
    ),
    _f("dilation", lambda x: tf.nn.dilation2d(x, _FILTER, (1,) * 4, "SAME", "NHWC", (1,) * 4), _IMAGE),
    _f("erosion", lambda x: tf.nn.erosion2d(x, _FILTER, (1,) * 4, "SAME", "NHWC", (1,) * 4), _IMAGE),
    _f("max pool 3d", lambda x: tf.nn.max_pool3d(x, 2, 2, "SAME"), ((2, 5, 6, 6, 3),)),
    _f("average pool 3d", lambda x: tf.nn.avg_pool3d(x, 2, 2, "SAME"), ((2, 5, 6, 6, 3),)),
    _f(
        "maxima with their places",
        lambda x: tf.nn.max_pool_with_argmax(x, [3, 2], [2, 1], "SAME", include_batch_in_index=True),
        _IMAGE,
    ),
    _f(
        "maxima with places in images",
        lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "VALID", output_dtype=tf.int32),
        _IMAGE,
    ),
    *(
        _f(
            f"warp {mode} {kind}".lower(),
            lambda x, y, m=mode, k=kind: _warped(x, y, m, k),
            ((None, 6, 6, 3), (None, 8)),
        )
        for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST")
        for kind in ("NEAREST", "BILINEAR")
    ),
    TfFunction(
        "channels first",
        lambda x: _channels_first(x),
        ((None, 6, 8, 9),),
        reference=lambda x: _channels_last(x),
    ),
    _f("structural similarity", lambda x, y: tf.image.ssim(x, y, 1.0, filter_size=3), (*_STATIC_IMAGE, *_STATIC_IMAGE)),
    _f("warp of images of one kind", lambda x: _warped(x, _TRANSFORM, "REFLECT", "BILINEAR"), _IMAGE),
    _f(
        "patches of volumes",
        lambda x: raw.ExtractVolumePatches(input=x, ksizes=[1, 2, 2, 2, 1], strides=[1, 2, 1, 2, 1], padding="SAME"),
        ((2, 3, 4, 4, 2),),
    ),
    _f("space to batch of old", lambda x: raw.SpaceToBatch(input=x, paddings=[[0, 0], [0, 0]], block_size=2), _IMAGE),
)


_FILTERS, _BIAS, _DEEP, _UP = _weights(3, 2, 6, 6), _weights(6), _weights(3, 3, 6, 2), _weights(3, 3, 4, 6)


def _channels_first(x: Any) -> Any:
    """Convolutions, poolings and what lies between them."""
    y = tf.nn.conv2d(x, _FILTERS, 1, [[0, 0], [0, 0], [1, 1], [1, 0]], "NCHW")
    y = tf.nn.relu(tf.nn.bias_add(y, _BIAS, "NCHW")) * 0.5 + x
    deep = tf.nn.depthwise_conv2d(y, _DEEP, (1, 1, 2, 2), "SAME", "NCHW")
    pooled = [tf.nn.max_pool2d(y, [3, 2], [2, 1], "SAME", "NCHW"), tf.nn.avg_pool2d(y, 2, 2, "VALID", "NCHW")]
    doubled = tf.stack([tf.shape(y)[0], 4, 16, 18])
    return y, deep, *pooled, tf.nn.conv2d_transpose(y, _UP, doubled, 2, "SAME", "NCHW")


def _channels_last(x: Any) -> Any:
    """The same with channels last; images of arguments and results have them first."""
    x = tf.transpose(x, [0, 2, 3, 1])
    y = tf.nn.conv2d(x, _FILTERS, 1, [[0, 0], [1, 1], [1, 0], [0, 0]])
    y = tf.nn.relu(y + _BIAS) * 0.5 + x
    deep = tf.nn.depthwise_conv2d(y, _DEEP, (1, 2, 2, 1), "SAME")
    pooled = [tf.nn.max_pool2d(y, [3, 2], [2, 1], "SAME"), tf.nn.avg_pool2d(y, 2, 2, "VALID")]
    doubled = tf.stack([tf.shape(y)[0], 16, 18, 4])
    results = (y, deep, *pooled, tf.nn.conv2d_transpose(y, _UP, doubled, 2, "SAME"))
    return [tf.transpose(result, [0, 3, 1, 2]) for result in results]


_TRANSFORM = np.float32([[0.3, 0.2, -0.5, 0.1, 0.2, 0.3, 0.5, 0.2]])


def _warped(x: Any, transforms: Any, mode: str, kind: str) -> Any:
    small = transforms * np.float32([4, 4, 4, 4, 4, 4, 0.01, 0.01])
    return raw.ImageProjectiveTransformV3(
        images=x, transforms=small, output_shape=[5, 7], interpolation=kind, fill_mode=mode, fill_value=0.5
    )


_FILTER = np.random.default_rng(2).random((3, 3, 3)).astype(np.float32) * 0.3
