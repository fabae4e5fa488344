"""Convolutions on a GPU that compute their input on the fly: by a depthwise convolution, or by gates."""

import numpy as np

from litecl.delegate.cl_op import Activation, Call, Step
from litecl.delegate.gpu.local_product import ByWindow
from litecl.delegate.gpu.target import GpuCall
from litecl.delegate.matmul.geometry import Geometry, geometry
from litecl.delegate.ops.gpu import products


def separable(depthwise: Call, pointwise: GpuCall) -> list[Step] | None:
    """Lower a depthwise convolution and the 1x1 convolution after it as one launch."""
    x, filter_, bias = depthwise.weighted
    out = depthwise.outputs[0]
    window = geometry(depthwise.options, x.shape, filter_.shape[1:3], 1, out.shape, depthwise.pads)
    added = np.zeros(window.columns, np.float32) if bias is None else bias.value
    return products.convolution(pointwise, ByWindow(x, window, filter_.value, added, depthwise.activation))


def gated(product: Call, pointwise: GpuCall) -> list[Step] | None:
    """Lower an image times gates and the 1x1 convolution after it as one launch.

    To the kernel the gates are a depthwise convolution of one tap, whose weights are computed.
    """
    x, gates = product.input(0), product.input(1)
    _, height, width, channels = x.shape
    sizes = {"height": height, "width": width, "out_height": height, "out_width": width}
    window = Geometry(images=1, channels=channels, group_channels=1, columns=channels, group_columns=1, **sizes)
    by_window = ByWindow(x, window, gates, np.zeros(channels, np.float32), Activation())
    return products.convolution(pointwise, by_window)
