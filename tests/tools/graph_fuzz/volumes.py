"""Convolutions of volumes."""

import numpy as np

from litecl.interpreter.graph import ABSENT
from litecl.interpreter.ops.conv_3d import CONV_3D, Conv3DOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.schema import Padding
from tools.graph_fuzz.elementwise import fused
from tools.graph_fuzz.sketch import MOST_ELEMENTS, Sketch, T, Unfit

_MOST_PRODUCTS = 3_000_000


def conv_3d(s: Sketch) -> None:
    """CONV_3D of any window, stride and dilation, over images that are taken for the planes of a volume."""
    images = s.pick(T.FLOAT32, rank=4)
    shape, columns = s.shape_of(images), s.size(20)
    size = [int(n) for n in s.rng.integers(1, 4, 3)]
    depth = int(np.prod(size)) * shape[3]
    if int(np.prod(shape[:3])) * depth * columns > _MOST_PRODUCTS or int(np.prod(shape[:3])) * columns > MOST_ELEMENTS:
        raise Unfit("large")
    x = s.op(RESHAPE, [images, s.ints(1, *shape)], ReshapeOptions())
    stride = [int(n) for n in s.rng.integers(1, 3, 3)]
    dilation = [1, 1, 1] if max(stride) > 1 else [int(n) for n in s.rng.integers(1, 3, 3)]
    (d, w, h), (by_d, by_w, by_h) = stride, dilation
    options = Conv3DOptions(s.one_of(*Padding), d, w, h, fused(s, T.FLOAT32), by_d, by_w, by_h)
    filter_ = s.const(s.random(T.FLOAT32, (*size, shape[3], columns)) / np.float32(depth) ** np.float32(0.5))
    bias = s.const(s.random(T.FLOAT32, (columns,))) if s.chance(0.7) else ABSENT
    s.op(CONV_3D, [x, filter_, bias], options)
