"""MaxPoolingWithArgmax2D and MaxUnpooling2D: maxima of windows with their positions, and back.

There are two kinds, which differ in the options of the first and the type of the second's indices. TFLite's
(FlexBuffers, INT32) count the elements of an image, ``(y * width + x) * channels + channel``. MediaPipe's (a C
structure, FLOAT32), as in its hair segmentation model, count the taps of a window, ``row * its width + column``, and
add 0.1.
"""

from typing import Any

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import activation, require, types, window
from litecl.interpreter.kit.window import Window, fit
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.options import CustomOptions
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType

_PADDINGS = {"SAME": Padding.SAME, "VALID": Padding.VALID}
_C_PADDINGS = {1: Padding.SAME, 2: Padding.VALID}
_C_SIZES = (32, 40)  # of TfLitePoolParams, whose padding values later got offsets


@dataclass(frozen=True)
class Pooling:
    """Window and strides as (height, width); in_window: whether positions count the taps of a window."""

    padding: Padding
    strides: tuple[int, int]
    size: tuple[int, int]
    in_window: bool = False
    function: int = ActivationFunctionType.NONE

    def windows(self, height: int, width: int) -> tuple[Window, Window]:
        """Return the windows along height and width."""
        return (
            fit(self.padding, height, self.size[0], self.strides[0]),
            fit(self.padding, width, self.size[1], self.strides[1]),
        )


def c_structure(data: bytes) -> Pooling:
    """Read a TfLitePoolParams: padding, strides and window as (width, height), activation, Prepare's results."""
    if len(data) < 24:
        raise ModelError(f"expected options of at least 24 bytes, got {len(data)}")
    padding, stride_w, stride_h, size_w, size_h, function = np.frombuffer(data[:24], "<i4").tolist()
    if min(stride_w, stride_h, size_w, size_h) < 1 or padding not in _C_PADDINGS:
        raise ShapeError(f"padding {padding}, strides {stride_h}, {stride_w}, window {size_h}, {size_w}")
    return Pooling(_C_PADDINGS[padding], (stride_h, stride_w), (size_h, size_w), True, function)


def pooling_of(options: CustomOptions) -> Pooling:
    """Return the options of MaxPoolingWithArgmax2D, of either kind."""
    if len(options.data) in _C_SIZES and options.data[0] in _C_PADDINGS and not any(options.data[1:4]):
        return c_structure(options.data)
    fields = options.fields()
    size, strides = (_spatial(name, fields.get(name)) for name in ("ksize", "strides"))
    padding = fields.get("padding")
    if not isinstance(padding, str) or padding not in _PADDINGS:
        raise ShapeError(f"expected a padding of SAME or VALID, got {padding!r}")
    if fields.get("include_batch_in_index"):
        raise ModelError("include_batch_in_index is not supported")
    return Pooling(_PADDINGS[padding], strides, size)


def _spatial(name: str, values: Any) -> tuple[int, int]:
    """Return height and width from a field [1, height, width, 1]."""
    numbers = isinstance(values, list) and len(values) == 4 and all(type(value) is int for value in values)
    if not numbers or values[0] != 1 or values[3] != 1:
        raise ShapeError(f"expected {name} of [1, height, width, 1], got {values}")
    return values[1], values[2]


def _infer_pool(options: CustomOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.types(x, types.FLOAT)
    require.rank(x, exactly=4)
    pooling = pooling_of(options)
    batch, height, width, channels = x.static_shape
    rows, columns = pooling.windows(height, width)
    shape = (batch, rows.output, columns.output, channels)
    return [TensorSpec(x.type, shape), TensorSpec(TensorType.FLOAT32 if pooling.in_window else TensorType.INT32, shape)]


def _run_pool(options: CustomOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    pooling = pooling_of(options)
    batch, height, width, channels = x.shape
    rows, columns = pooling.windows(height, width)
    lowest = types.limits(x.dtype)[0]
    padded = window.pad(x, (rows, columns), lowest)
    best = np.full((batch, rows.output, columns.output, channels), lowest, x.dtype)
    indices = np.zeros(best.shape, np.int64)
    for v in range(rows.size):
        for u in range(columns.size):
            limits.tick()
            values = padded[:, rows.tap(v), columns.tap(u)]
            y = (np.arange(rows.output) * rows.stride - rows.before + v)[:, None]
            index = y * width + np.arange(columns.output) * columns.stride - columns.before + u
            better = values > best
            best = np.where(better, values, best)
            indices = np.where(better, v * columns.size + u if pooling.in_window else index[None, :, :, None], indices)
    best = activation.apply(pooling.function, best)
    if pooling.in_window:
        return [best, indices.astype(np.float32) + np.float32(0.1)]
    return [best, (indices * channels + np.arange(channels)).astype(np.int32)]


def _unpooled(pooling: Pooling, height: int, width: int, in_window: bool) -> tuple[int, int]:
    """Return the size of the output."""
    if in_window:
        return height * pooling.size[0], width * pooling.size[1]
    if pooling.padding == Padding.SAME:
        return height * pooling.strides[0], width * pooling.strides[1]
    return (height - 1) * pooling.strides[0] + pooling.size[0], (width - 1) * pooling.strides[1] + pooling.size[1]


def _infer_unpool(options: CustomOptions, inputs: Specs) -> list[TensorSpec]:
    x, indices = require.present(inputs, 2)
    require.types(x, types.FLOAT)
    require.types(indices, (TensorType.INT32, TensorType.FLOAT32))
    require.rank(x, exactly=4)
    if x.shape != indices.shape:
        raise ShapeError(f"indices {list(indices.static_shape)} for shape {list(x.static_shape)}")
    batch, height, width, channels = x.static_shape
    pooling = c_structure(options.data)
    size = _unpooled(pooling, height, width, indices.type == TensorType.FLOAT32)
    return [TensorSpec(x.type, (batch, *size, channels))]


def _run_unpool(options: CustomOptions, inputs: Inputs) -> list[Array]:
    x, indices = require.arrays(inputs, 2)
    batch, height, width, channels = x.shape
    pooling = c_structure(options.data)
    in_window = indices.dtype.kind == "f"
    shape = (batch, *_unpooled(pooling, height, width, in_window), channels)
    result = np.zeros((batch, require.elements(shape[1:])), x.dtype)
    in_image = _in_image(pooling, indices, shape[1:3]) if in_window else indices
    flat = require.indices(in_image.reshape(batch, -1), result.shape[1])
    # Image by image; of two values for one position the later one counts.
    result[np.arange(batch)[:, None], flat] = x.reshape(batch, -1)
    return [result.reshape(shape)]


def _in_image(pooling: Pooling, indices: Array, size: tuple[int, ...]) -> Array:
    """Convert taps of windows to elements of an image of ``size`` (height, width). Raises ModelError for other taps."""
    taps = pooling.size[0] * pooling.size[1]
    if indices.size and not (indices.min() > -1 and indices.max() < taps):  # refuses NaN too
        raise ModelError(f"index {indices.min()} to {indices.max()} out of range for {taps} taps of a window")
    coordinates = []
    for axis, tap in enumerate(np.divmod(indices.astype(np.int64), pooling.size[1]), start=1):
        count, stride, extent = indices.shape[axis], pooling.strides[axis - 1], pooling.size[axis - 1]
        before = max(0, (count - 1) * stride + extent - size[axis - 1]) // 2
        origin = (np.arange(count) * stride - before).reshape(-1, *(1,) * (3 - axis))
        coordinates.append(require.indices(origin + tap, size[axis - 1]))
    channels = indices.shape[3]
    return np.asarray((coordinates[0] * size[1] + coordinates[1]) * channels + np.arange(channels))


MAX_POOLING_WITH_ARGMAX_2D = Op(
    "MaxPoolingWithArgmax2D", options=CustomOptions, infer=_infer_pool, run=_run_pool, custom=True
)
MAX_UNPOOLING_2D = Op("MaxUnpooling2D", options=CustomOptions, infer=_infer_unpool, run=_run_unpool, custom=True)
LITERT_MAX_UNPOOLING_2D = Op(
    "LiteRtMaxUnpooling2D", options=CustomOptions, infer=_infer_unpool, run=_run_unpool, custom=True
)
