"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: an image sampled on another grid.

Positions are computed in float32, as TFLite does (reference/resize_bilinear.h, resize_nearest_neighbor.h): the last
bit decides which pixel is nearest.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Infer, Inputs, Op, Specs
from litecl.interpreter.ops import require, types
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

_COPIED = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16)


def scale(options: Options, length: int, size: int) -> np.float32:
    """Input elements a step of the output, along a dimension that goes from ``length`` to ``size``."""
    if options.align_corners and size > 1:
        return np.float32(length - 1) / np.float32(size - 1)
    return np.float32(length) / np.float32(size)


def interpolation(options: Options, length: int, size: int) -> tuple[Array, Array, Array]:
    """For every output position the two input positions between which it lies, and its distance from the first."""
    steps = np.arange(size, dtype=np.float32)
    centre = np.float32(0.5)
    ratio = scale(options, length, size)
    at = (steps + centre) * ratio - centre if options.half_pixel_centers else steps * ratio
    lower = np.maximum(np.floor(at), 0).astype(np.intp)
    upper = np.minimum(np.ceil(at), length - 1).astype(np.intp)
    return lower, upper, at - lower.astype(np.float32)


def nearest(options: Options, length: int, size: int) -> Array:
    """For every output position the input position nearest to it."""
    steps = np.arange(size, dtype=np.float32) + np.float32(0.5 if options.half_pixel_centers else 0.0)
    at = steps * scale(options, length, size)
    # Positions are not negative: adding a half and truncating rounds halves up, as TfLiteRound does.
    whole = np.floor(at.astype(np.float64) + 0.5) if options.align_corners else np.floor(at)
    return np.clip(whole, 0, length - 1).astype(np.intp)


def _infer(name: str, allowed: Collection[TensorType]) -> Infer:
    def infer(options: Options, inputs: Specs) -> list[TensorSpec]:
        x, size = require.present(name, inputs, 2)
        require.types(name, x, allowed)
        require.rank(name, x, exactly=4)
        require.types(name, size, (TensorType.INT32,))
        require.rank(name, size, exactly=1)
        if options.align_corners and options.half_pixel_centers:
            raise ShapeError(f"{name}: expected at most one of align_corners and half_pixel_centers, got both")
        if size.static_shape != (2,):
            raise ShapeError(f"{name}: expected a size of 2 elements, got shape {list(size.static_shape)}")
        if size.data is None:
            return [TensorSpec(x.type, None)]
        height, width = (int(n) for n in size.data)
        if min(height, width) < 1:
            raise ShapeError(f"{name}: expected a size of at least 1, got {height} and {width}")
        return [TensorSpec(x.type, (x.static_shape[0], height, width, x.static_shape[3]))]

    return infer


def _run_bilinear(options: ResizeBilinearOptions, inputs: Inputs) -> list[Array]:
    x, size = require.arrays(inputs, 2)
    for axis in (1, 2):
        lower, upper, distance = interpolation(options, x.shape[axis], int(size[axis - 1]))
        weight = distance.reshape(-1, *(1,) * (x.ndim - 1 - axis))
        x = x.take(lower, axis) * (np.float32(1) - weight) + x.take(upper, axis) * weight
    return [x]


def _run_nearest(options: ResizeNearestNeighborOptions, inputs: Inputs) -> list[Array]:
    x, size = require.arrays(inputs, 2)
    for axis in (1, 2):
        x = x.take(nearest(options, x.shape[axis], int(size[axis - 1])), axis)
    return [x]


RESIZE_BILINEAR = Op(
    "RESIZE_BILINEAR",
    versions=range(1, 5),
    options=ResizeBilinearOptions,
    infer=_infer("RESIZE_BILINEAR", types.FLOAT),
    run=_run_bilinear,
)
RESIZE_NEAREST_NEIGHBOR = Op(
    "RESIZE_NEAREST_NEIGHBOR",
    versions=range(1, 5),
    options=ResizeNearestNeighborOptions,
    infer=_infer("RESIZE_NEAREST_NEIGHBOR", _COPIED),
    run=_run_nearest,
)
