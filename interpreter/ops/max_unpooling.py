"""MaxPoolingWithArgmax2D and MaxUnpooling2D: maxima of windows with where they stood, and back.

An index counts the elements of one image, (y * width + x) * channels + channel.
"""

from dataclasses import dataclass

import numpy as np

from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.ops import require, types
from litecl.interpreter.ops.window import Window, fit
from litecl.interpreter.options import CustomOptions
from litecl.interpreter.schema import Padding, TensorType

_POOL = "MaxPoolingWithArgmax2D"
_UNPOOL = "MaxUnpooling2D"
_PADDINGS = {"SAME": Padding.SAME, "VALID": Padding.VALID}


@dataclass(frozen=True)
class MaxPoolingWithArgmax2DOptions:
    ksize: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    padding: str = ""
    include_batch_in_index: bool = False


def _windows(options: MaxPoolingWithArgmax2DOptions, height: int, width: int) -> tuple[Window, Window]:
    for name, values in (("ksize", options.ksize), ("strides", options.strides)):
        if len(values) != 4 or values[0] != 1 or values[3] != 1:
            raise ShapeError(f"{_POOL}: expected {name} of [1, height, width, 1], got {list(values)}")
    if options.padding not in _PADDINGS:
        raise ShapeError(f"{_POOL}: expected a padding of SAME or VALID, got {options.padding!r}")
    padding = _PADDINGS[options.padding]
    return (
        fit(_POOL, padding, height, options.ksize[1], options.strides[1]),
        fit(_POOL, padding, width, options.ksize[2], options.strides[2]),
    )


def _infer_pool(options: MaxPoolingWithArgmax2DOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(_POOL, inputs, 1)
    require.types(_POOL, x, types.FLOAT)
    require.rank(_POOL, x, exactly=4)
    if options.include_batch_in_index:
        raise ModelError(f"{_POOL}: include_batch_in_index is not supported")
    batch, height, width, channels = x.static_shape
    rows, columns = _windows(options, height, width)
    shape = (batch, rows.output, columns.output, channels)
    return [TensorSpec(x.type, shape), TensorSpec(TensorType.INT32, shape)]


def _run_pool(options: MaxPoolingWithArgmax2DOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    batch, height, width, channels = x.shape
    rows, columns = _windows(options, height, width)
    borders = ((0, 0), (rows.before, rows.after), (columns.before, columns.after), (0, 0))
    lowest = types.limits(x.dtype)[0]
    padded = np.pad(x, borders, constant_values=lowest)
    best = np.full((batch, rows.output, columns.output, channels), lowest, x.dtype)
    places = np.zeros(best.shape, np.int64)
    for v in range(rows.size):
        for u in range(columns.size):
            values = padded[:, rows.tap(v), columns.tap(u)]
            y = (np.arange(rows.output) * rows.stride - rows.before + v)[:, None]
            place = y * width + np.arange(columns.output) * columns.stride - columns.before + u
            better = values > best
            best = np.where(better, values, best)
            places = np.where(better, place[None, :, :, None], places)
    return [best, (places * channels + np.arange(channels)).astype(np.int32)]


def _unpooled(options: CustomOptions, height: int, width: int) -> tuple[int, int]:
    """The size of the output, from TfLitePoolParams: padding, strides (width, height) and window (width, height)."""
    if len(options.data) < 20:
        raise ModelError(f"{_UNPOOL}: expected options of at least 20 bytes, got {len(options.data)}")
    padding, stride_w, stride_h, size_w, size_h = np.frombuffer(options.data[:20], "<i4").tolist()
    if min(stride_w, stride_h, size_w, size_h) < 1 or padding not in (1, 2):
        raise ShapeError(f"{_UNPOOL}: padding {padding}, strides {stride_h}, {stride_w}, window {size_h}, {size_w}")
    if padding == 1:  # SAME
        return height * stride_h, width * stride_w
    return (height - 1) * stride_h + size_h, (width - 1) * stride_w + size_w


def _infer_unpool(options: CustomOptions, inputs: Specs) -> list[TensorSpec]:
    x, places = require.present(_UNPOOL, inputs, 2)
    require.types(_UNPOOL, x, types.FLOAT)
    require.types(_UNPOOL, places, (TensorType.INT32,))
    require.rank(_UNPOOL, x, exactly=4)
    if x.shape != places.shape:
        raise ShapeError(f"{_UNPOOL}: indices {list(places.static_shape)} for shape {list(x.static_shape)}")
    batch, height, width, channels = x.static_shape
    return [TensorSpec(x.type, (batch, *_unpooled(options, height, width), channels))]


def _run_unpool(options: CustomOptions, inputs: Inputs) -> list[Array]:
    x, places = require.arrays(inputs, 2)
    batch, height, width, channels = x.shape
    shape = (batch, *_unpooled(options, height, width), channels)
    result = np.zeros((batch, require.elements(_UNPOOL, shape[1:])), x.dtype)
    flat = require.indices(_UNPOOL, places.reshape(batch, -1), result.shape[1])
    # One image after another, and of two values for one place the later one counts.
    result[np.arange(batch)[:, None], flat] = x.reshape(batch, -1)
    return [result.reshape(shape)]


MAX_POOLING_WITH_ARGMAX_2D = Op(
    _POOL, options=MaxPoolingWithArgmax2DOptions, infer=_infer_pool, run=_run_pool, custom=True
)
MAX_UNPOOLING_2D = Op(_UNPOOL, options=CustomOptions, infer=_infer_unpool, run=_run_unpool, custom=True)
LITERT_MAX_UNPOOLING_2D = Op(
    "LiteRtMaxUnpooling2D", options=CustomOptions, infer=_infer_unpool, run=_run_unpool, custom=True
)
