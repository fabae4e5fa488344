"""Convolutions of volumes."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.graph import ABSENT
from litecl.interpreter.ops.conv_3d import CONV_3D, Conv3DOptions
from litecl.interpreter.ops.conv_3d_transpose import CONV_3D_TRANSPOSE
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.schema import Padding
from litecl.random_graphs.elementwise import fused
from litecl.random_graphs.sketch import MOST_ELEMENTS, Sketch, T, Unfit

_MOST_PRODUCTS = 3_000_000


def conv_3d(s: Sketch) -> None:
    """CONV_3D of any window, stride and dilation, over images that are taken for the planes of a volume."""
    images = s.pick(T.FLOAT32, rank=4)
    shape, columns, size = s.shape_of(images), s.size(20), _window(s)
    depth = _depth(shape, columns, size)
    x = s.op(RESHAPE, [images, s.ints(1, *shape)], ReshapeOptions())
    stride = _window(s, most=2)
    dilation = [1, 1, 1] if max(stride) > 1 else _window(s, most=2)
    filter_ = s.const(s.random(T.FLOAT32, (*size, shape[3], columns)) / np.float32(depth) ** np.float32(0.5))
    bias = s.const(s.random(T.FLOAT32, (columns,))) if s.chance(0.7) else ABSENT
    s.op(CONV_3D, [x, filter_, bias], _options(s, s.one_of(*Padding), stride, dilation))


def conv_3d_transpose(s: Sketch) -> None:
    """CONV_3D_TRANSPOSE of any window, stride and dilation, whose output is as large as padding SAME makes it."""
    images = s.pick(T.FLOAT32, rank=4)
    shape, columns, size, stride = s.shape_of(images), s.size(20), _window(s), _window(s, most=2)
    depth = _depth([n * by for n, by in zip(shape, (*stride, 1), strict=True)], columns, size)
    x = s.op(RESHAPE, [images, s.ints(1, *shape)], ReshapeOptions())
    filter_ = s.const(s.random(T.FLOAT32, (*size, columns, shape[3])) / np.float32(depth) ** np.float32(0.5))
    large = [n * by for n, by in zip(shape[:3], stride, strict=True)]
    inputs = [s.ints(1, *large, columns), filter_, x]
    inputs += [s.const(s.random(T.FLOAT32, (columns,)))] if s.chance(0.7) else []
    s.op(CONV_3D_TRANSPOSE, inputs, _options(s, Padding.SAME, stride, _window(s, most=2)))


def _window(s: Sketch, most: int = 3) -> list[int]:
    """Return numbers along depth, height and width."""
    return [int(n) for n in s.rng.integers(1, most + 1, 3)]


def _depth(shape: Sequence[int], columns: int, size: Sequence[int]) -> int:
    """Return the elements of a window. Raises Unfit where there would be too many products."""
    depth, positions = int(np.prod(size)) * shape[3], int(np.prod(shape[:3]))
    if positions * depth * columns > _MOST_PRODUCTS or positions * columns > MOST_ELEMENTS:
        raise Unfit("large")
    return depth


def _options(s: Sketch, padding: Padding, stride: Sequence[int], dilation: Sequence[int]) -> Conv3DOptions:
    (d, h, w), (by_d, by_h, by_w) = stride, dilation
    return Conv3DOptions(padding, d, w, h, fused(s, T.FLOAT32), by_d, by_w, by_h)
