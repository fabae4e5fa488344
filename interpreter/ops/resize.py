"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: an image sampled on another grid.

Positions are computed in float32, as in TFLite (reference/resize_bilinear.h, resize_nearest_neighbor.h): the last bit
decides which pixel is nearest.
"""

from collections.abc import Collection
from typing import Any

import numpy as np

from litecl.interpreter.arithmetic import halves
from litecl.interpreter.arithmetic.fixed_point import round_half_away
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import SHARING
from litecl.interpreter.kit import lowest, require, types
from litecl.interpreter.op import Infer, Inputs, Op, Specs
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class ResizeBilinearOptions:
    align_corners: bool = False
    half_pixel_centers: bool = False


@dataclass(frozen=True)
class ResizeNearestNeighborOptions:
    align_corners: bool = False
    half_pixel_centers: bool = False


Options = ResizeBilinearOptions | ResizeNearestNeighborOptions

_INTEGERS = (TensorType.UINT8, TensorType.INT8, TensorType.INT16)
_COPIED = (
    *types.FLOAT,
    *_INTEGERS,
    TensorType.FLOAT16,
    TensorType.INT32,
    TensorType.UINT32,
    TensorType.UINT16,
    TensorType.BOOL,
)


def scale(options: Options, length: int, size: int) -> np.float32:
    """Return the input elements per output step, along a dimension that goes from ``length`` to ``size``."""
    if options.align_corners and size > 1:
        return np.float32(length - 1) / np.float32(size - 1)
    return np.float32(length) / np.float32(size)


def interpolation(options: Options, length: int, size: int) -> tuple[Array, Array, Array]:
    """Return, for every output position, the two input positions around it and its distance from the first."""
    steps = np.arange(size, dtype=np.float32)
    centre = np.float32(0.5)
    ratio = scale(options, length, size)
    at = (steps + centre) * ratio - centre if options.half_pixel_centers else steps * ratio
    lower = np.clip(np.floor(at), 0, length - 1).astype(np.intp)  # past the last only if both options are set
    upper = np.minimum(np.ceil(at), length - 1).astype(np.intp)
    return lower, upper, at - lower.astype(np.float32)


def nearest(options: Options, length: int, size: int) -> Array:
    """Return, for every output position, the nearest input position."""
    steps = np.arange(size, dtype=np.float32) + np.float32(0.5 if options.half_pixel_centers else 0.0)
    at = steps * scale(options, length, size)
    # Positions are not negative: adding a half and truncating rounds halves up, as TfLiteRound does.
    whole = np.floor(at.astype(np.float64) + 0.5) if options.align_corners else np.floor(at)
    return np.clip(whole, 0, length - 1).astype(np.intp)


def _infer(allowed: Collection[TensorType]) -> Infer:
    def infer(options: Options, inputs: Specs) -> list[TensorSpec]:
        x, size = require.present(inputs, 2)
        require.types(x, allowed)
        require.rank(x, exactly=4)
        require.filled(x, (1, 2))
        require.types(size, (TensorType.INT32,))
        require.rank(size, exactly=1)
        if size.static_shape != (2,):
            raise ShapeError(f"expected a size of 2 elements, got shape {list(size.static_shape)}")
        if size.data is None:
            return [TensorSpec(x.type, None)]
        height, width = (int(n) for n in size.data)
        if min(height, width) < 1:
            raise ShapeError(f"expected a size of at least 1, got {height} and {width}")
        return [TensorSpec(x.type, (x.static_shape[0], height, width, x.static_shape[3]))]

    return infer


def _run_bilinear(options: ResizeBilinearOptions, inputs: Inputs) -> list[Array]:
    x, size = require.arrays(inputs, 2)
    if x.dtype.kind == "i":
        return [_bilinear_of_integers(options, x, size)]
    if x.dtype.kind == "u":
        return [_bilinear_of_bytes(options, x, size)]
    for axis in (1, 2):
        lower, upper, distance = interpolation(options, x.shape[axis], int(size[axis - 1]))
        weight = distance.reshape(-1, *(1,) * (x.ndim - 1 - axis))
        with np.errstate(all="ignore"):
            x = x.take(lower, axis) * (np.float32(1) - weight) + x.take(upper, axis) * weight
    return [x]


def _bilinear_of_bytes(options: ResizeBilinearOptions, x: Array, size: Array) -> Array:
    """Interpolate in float32, corner by corner, and round."""
    (top, bottom, down), (left, right, along) = (
        interpolation(options, x.shape[axis], int(size[axis - 1])) for axis in (1, 2)
    )
    down, along = down.reshape(-1, 1, 1), along.reshape(-1, 1)
    up, back = np.float32(1) - down, np.float32(1) - along
    wide = x.astype(np.float32)
    corners = ((top, left, up, back), (bottom, left, down, back), (top, right, up, along), (bottom, right, down, along))
    parts = [wide.take(row, 1).take(column, 2) * vertical * horizontal for row, column, vertical, horizontal in corners]
    return round_half_away(parts[0] + parts[1] + parts[2] + parts[3]).astype(x.dtype)


def _bilinear_of_integers(options: ResizeBilinearOptions, x: Array, size: Array) -> Array:
    """Interpolate with positions in units of 1/1024, and round once."""
    result = x.astype(np.int64)
    for axis in (1, 2):
        lower, upper, distance = fixed_interpolation(options, x.shape[axis], int(size[axis - 1]))
        weight = distance.reshape(-1, *(1,) * (x.ndim - 1 - axis))
        result = result.take(lower, axis) * (1024 - weight) + result.take(upper, axis) * weight
    rounded = (np.abs(result) + (1 << 19)) >> 20
    return np.asarray(np.sign(result) * rounded, x.dtype)


def fixed_interpolation(options: Options, length: int, size: int) -> tuple[Array, Array, Array]:
    """Return ``interpolation`` in units of 1/1024, with divisions that truncate as C's do."""
    steps = np.arange(size, dtype=np.int64)
    aligned = options.align_corners and size > 1
    whole, parts = (length - 1, size - 1) if aligned else (length, size)
    ratio = (1024 * whole + parts // 2) // parts
    at = steps * ratio + (ratio // 2 - 512 if options.half_pixel_centers else 0)
    lower = np.clip(np.trunc(at / 1024).astype(np.int64), 0, length - 1)
    upper = np.minimum(np.trunc((at + 1023) / 1024).astype(np.int64), length - 1)
    return lower, upper, at - 1024 * lower


def _run_nearest(options: ResizeNearestNeighborOptions, inputs: Inputs) -> list[Array]:
    x, size = require.arrays(inputs, 2)
    for axis in (1, 2):
        x = x.take(nearest(options, x.shape[axis], int(size[axis - 1])), axis)
    return [x]


def _lowest(options: Any, inputs: Specs) -> int:
    return 3 if options.half_pixel_centers else 1


def _lowest_nearest(options: Any, inputs: Specs) -> int:
    return 3 if options.half_pixel_centers or options.align_corners else 1


RESIZE_BILINEAR = halves.also(
    Op(
        "RESIZE_BILINEAR",
        versions=range(1, 5),
        options=ResizeBilinearOptions,
        infer=_infer((*types.FLOAT, *_INTEGERS)),
        run=_run_bilinear,
        integers=SHARING,
        lowest=lowest.most(_lowest, lowest.integers(2, 4)),
    )
)
RESIZE_NEAREST_NEIGHBOR = Op(
    "RESIZE_NEAREST_NEIGHBOR",
    versions=range(1, 5),
    options=ResizeNearestNeighborOptions,
    infer=_infer(_COPIED),
    run=_run_nearest,
    integers=SHARING,
    lowest=lowest.most(_lowest_nearest, lowest.integers(2, 4)),
)
