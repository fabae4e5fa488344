"""Colours, patches, crops and morphology of images [N,H,W,C], and pooling of volumes [N,D,H,W,C]."""

from collections.abc import Callable

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.conv import geometry, lowest, zero_bias
from litecl.converter.lower.expression import Expression, formula
from litecl.converter.records import Dims
from litecl.interpreter.op import Op
from litecl.interpreter.ops import reduce
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.pad import PADV2
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.space_to_batch_nd import BATCH_TO_SPACE_ND, SPACE_TO_BATCH_ND
from litecl.interpreter.ops.split import SPLIT, SplitOptions
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.schema import Padding, TensorType


def _channels(x: Expression) -> list[Expression]:
    """Return the three channels of an image, each [...,1]."""
    shape = (*x.b.shape(x.value)[:-1], 1)
    outputs = [x.b.value(x.type, shape) for _ in range(3)]
    axis = x.b.const(len(shape) - 1, np.int32)
    return [Expression(x.b, value) for value in x.b.ops(SPLIT, [axis, x.value], SplitOptions(3), outputs)]


def _joined(*parts: Expression) -> Expression:
    b = parts[0].b
    shape = b.shape(parts[0].value)
    values = [part.value for part in parts]
    options = ConcatenationOptions(len(shape) - 1)
    return Expression(b, b.op(CONCATENATION, values, options, type=parts[0].type, shape=(*shape[:-1], len(parts))))


def _hsv(x: Expression) -> list[Expression]:
    """Return hue, saturation and value of colours."""
    red, green, blue = _channels(x)
    value = red.maximum(green).maximum(blue)
    spread = value - red.minimum(green).minimum(blue)
    is_gray = spread.equals(0)
    scale = 1 / (is_gray.select(spread.constant(1), spread) * 6)
    sixth = green.equals(value).select((blue - red) * scale + 2 / 6, (red - green) * scale + 4 / 6)
    hue = is_gray.select(spread, red.equals(value).select((green - blue) * scale, sixth))
    saturation = spread / value.equals(0).select(value.constant(1), value)
    return [hue.less(0).select(hue + 1, hue), saturation, value]


def _rgb(hue: Expression, saturation: Expression, value: Expression) -> Expression:
    """Return colours: red is full around hue 0, green around 1/3, blue around 2/3."""
    distance = (hue * 6 - hue.constant([3, 2, 4])).abs() * hue.constant([1, -1, -1]) + hue.constant([-1, 2, 2])
    return ((distance.maximum(0).minimum(1) - 1) * saturation + 1) * value


def _adjust_hue(x: Expression, delta: Expression) -> Expression:
    hue, saturation, value = _hsv(x)
    moved = hue + delta
    return _rgb(moved - moved.floor(), saturation, value)


def _adjust_saturation(x: Expression, factor: Expression) -> Expression:
    hue, saturation, value = _hsv(x)
    return _rgb(hue, (saturation * factor).maximum(0).minimum(1), value)


def _adjust_contrast(x: Expression, factor: Expression) -> Expression:
    mean = x.reduce(reduce.MEAN, [-3, -2], keep=True)
    return (x - mean) * factor + mean


def _patches(b: Builder) -> Value:
    """Return patches as the channels of a convolution whose filters each pick one element."""
    attrs = b.node.attrs
    x = b.cast(b.node.input(0), TensorType.FLOAT32)
    (_, height, width, _), channels = attrs["ksizes"], b.shape(x)[-1]
    if channels is None:
        raise b.error("the number of its channels must be known; give input_shapes")
    count = height * width * channels
    filters = b.const(np.eye(count, dtype=np.float32).reshape(count, height, width, channels))
    options = Conv2DOptions(
        padding=Padding[attrs["padding"]],
        stride_h=attrs["strides"][1],
        stride_w=attrs["strides"][2],
        dilation_h_factor=attrs["rates"][1],
        dilation_w_factor=attrs["rates"][2],
    )
    return b.cast(b.op(CONV_2D, [x, filters, zero_bias(b, filters, 0)], options, type=x.type), b.node.output.type)


def _dilation(b: Builder) -> Value:
    """Return the maximum of window plus filter, with an operator per filter element."""
    attrs = b.node.attrs
    filters = b.known(1, "filter")
    size, shape = b.shape(b.node.input(0)), b.shape(b.node.output)
    strides, rates = attrs["strides"][1:3], attrs["rates"][1:3]
    if None in size[1:3] or None in shape[1:3]:
        raise b.error("the size of its images must be known; give input_shapes")
    reach = [(shape[i + 1] - 1) * strides[i] + (filters.shape[i] - 1) * rates[i] + 1 for i in (0, 1)]  # type: ignore[operator]
    missing = [max(reach[i] - (size[i + 1] or 0), 0) for i in (0, 1)]
    pads = [[0, 0], *([m // 2, m - m // 2] for m in missing), [0, 0]]
    padded = (size[0], *(max(r, s or 0) for r, s in zip(reach, size[1:3], strict=True)), size[3])
    x = b.op(PADV2, [b.node.input(0), b.const(pads, np.int32), b.scalar(lowest(b))], shape=padded)
    result = None
    for row, column in np.ndindex(*filters.shape[:2]):
        begin = [0, row * rates[0], column * rates[1], 0]
        end = [0, *(begin[i + 1] + (shape[i + 1] - 1) * strides[i] + 1 for i in (0, 1)), 0]  # type: ignore[operator]
        bounds = [b.const(bound, np.int32) for bound in (begin, end, [1, *strides, 1])]
        window = b.op(STRIDED_SLICE, [x, *bounds], StridedSliceOptions(begin_mask=9, end_mask=9))
        moved = Expression(b, window) + Expression(b, b.const(filters[row, column]))
        result = moved if result is None else result.maximum(moved)
    assert result is not None
    return result.value


def _crop_and_resize(b: Builder) -> Value:
    images, boxes, of_image = (Expression(b, b.node.input(i)) for i in range(3))
    size = [int(n) for n in b.known(3, "crop size")]
    *_, height, width, channels = b.shape(images.value)
    count = b.shape(boxes.value)[0]
    if height is None or width is None:
        raise b.error("the size of its images must be known; give input_shapes")
    outside = float(b.node.attrs["extrapolation_value"])
    taken = _gathered(images, of_image, 0, 0, (count, height, width, channels))
    rows, valid_rows = _sampled(taken, boxes, 1, height, size[0], (count, size[0], width, channels))
    crops, valid = _sampled(rows, boxes, 2, width, size[1], (count, *size, channels))
    return valid.select(valid_rows.select(crops, outside), outside).value


def _sampled(
    x: Expression, boxes: Expression, axis: int, size: int, wanted: int, shape: Dims
) -> tuple[Expression, Expression]:
    """Sample rows or columns of images between the ends given by boxes; return them, and which are inside."""
    b, count = x.b, x.b.shape(boxes.value)[0]
    first, last = (_column(boxes, axis - 1), _column(boxes, axis + 1))
    steps = np.arange(wanted) / (wanted - 1) if wanted > 1 else np.full(1, 0.5)
    places = (first + (last - first) * first.constant(steps)) * (size - 1)
    inside = places.constant(0).at_most(places)
    inside = inside.select(places.at_most(size - 1), False)
    is_nearest = b.node.attrs["method"] == "nearest"
    low = (places + 0.5 if is_nearest else places).floor()
    below = _gathered(x, _bounded(low, size), axis, 1, shape)
    spread = (wanted if axis == 1 else 1, wanted if axis == 2 else 1, 1)
    target, result = [-1 if count is None else count, *spread], (count, *spread)
    flags = inside.reshape(target, result)
    if is_nearest:
        return below, flags
    above = _gathered(x, _bounded(low + 1, size), axis, 1, shape)
    return below + (above - below) * (places - low).reshape(target, result), flags


def _column(boxes: Expression, index: int) -> Expression:
    b = boxes.b
    bounds = [b.const(bound, np.int32) for bound in ([0, index], [0, index + 1], [1, 1])]
    column = b.op(
        STRIDED_SLICE,
        [boxes.value, *bounds],
        StridedSliceOptions(begin_mask=1, end_mask=1),
        type=boxes.type,
        shape=(b.shape(boxes.value)[0], 1),
    )
    return Expression(b, column)


def _bounded(places: Expression, size: int) -> Expression:
    return places.maximum(0).minimum(size - 1).cast(TensorType.INT32)


def _gathered(x: Expression, indices: Expression, axis: int, batch_dims: int, shape: Dims) -> Expression:
    operands = [x.value, x.b.int32(indices.value)]
    return Expression(x.b, x.b.op(GATHER, operands, GatherOptions(axis, batch_dims), type=x.type, shape=shape))


def _pool_3d(op: Op) -> Lowering:
    """Return the lowering that pools each slice over height and width, and then over depth."""

    def lower(b: Builder) -> Value:
        g = geometry(b, b.node.input(0))
        x, window = Expression(b, g.x), b.node.attrs["ksize"][1:4]
        batch, depth, height, width, channels = b.shape(x.value)
        _, deep, high, wide, _ = b.shape(b.node.output)
        if None in (depth, height, width, channels, deep, high, wide):
            raise b.error("the size of its volumes must be known; give input_shapes")
        slices = None if batch is None else batch * (depth or 0)
        image = x.reshape([-1, height or 0, width or 0, channels or 0], (slices, height, width, channels))
        flat = _pooled(image, op, window[1:], g.strides[1:], g.padding, (slices, high, wide, channels))
        area = (high or 0) * (wide or 0)
        columns = flat.reshape([-1, depth or 0, area, channels or 0], (batch, depth, area, channels))
        pooled = _pooled(columns, op, (window[0], 1), (g.strides[0], 1), g.padding, (batch, deep, area, channels))
        return b.reshape(pooled.value, [-1, *(d or 0 for d in (deep, high, wide, channels))])

    return lower


def _pooled(
    x: Expression, op: Op, window: tuple[int, ...], strides: tuple[int, ...], padding: Padding, shape: Dims
) -> Expression:
    options = Pool2DOptions(
        padding=padding,
        stride_h=strides[0],
        stride_w=strides[1],
        filter_height=window[0],
        filter_width=window[1],
    )
    return Expression(x.b, x.b.op(op, [x.value], options, type=x.type, shape=shape))


def _blocks(op: Op) -> Lowering:
    """Return the lowering of a legacy operator, whose blocks are square."""

    def lower(b: Builder) -> Value:
        size = b.const([b.node.attrs["block_size"]] * 2, np.int32)
        return b.op(op, [b.node.input(0), size, b.int32(b.node.input(1))])

    return lower


_FORMULAS: dict[str, Callable[..., Expression]] = {
    "RGBToHSV": lambda x: _joined(*_hsv(x)),
    "HSVToRGB": lambda x: _rgb(*_channels(x)),
    "AdjustHue": _adjust_hue,
    "AdjustSaturation": _adjust_saturation,
    "AdjustContrastv2": _adjust_contrast,
}

LOWERINGS: dict[str, Lowering] = {name: formula(body) for name, body in _FORMULAS.items()} | {
    "ExtractImagePatches": _patches,
    "Dilation2D": _dilation,
    "CropAndResize": _crop_and_resize,
    "MaxPool3D": _pool_3d(MAX_POOL_2D),
    "AvgPool3D": _pool_3d(AVERAGE_POOL_2D),
    "SpaceToBatch": _blocks(SPACE_TO_BATCH_ND),
    "BatchToSpace": _blocks(BATCH_TO_SPACE_ND),
}
