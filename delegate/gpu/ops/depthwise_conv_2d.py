"""The share of a GPU's work-item of DEPTHWISE_CONV_2D: a few pixels of some channels."""

from litecl.delegate.gpu.pixel_groups import pixel_share
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.matmul.geometry import Geometry
from litecl.delegate.ops.depthwise_conv_2d import Depthwise, Share
from litecl.delegate.ops.quantized import depthwise_conv_2d as quantized


def share_of(g: Geometry, target: GpuTarget) -> Share:
    """Give a work-item a few pixels of a vector of channels."""
    share = pixel_share(target, g.images * g.out_height, g.out_width, g.channels, g.taps)
    return Share(Depthwise(g, 1, share.pixels, share.width), 1, share.pixels, share.local, share.tiled)


def quantized_share_of(g: Geometry, flat: int, target: GpuTarget) -> quantized.Share:
    """Give a work-item a few pixels of a line, in vectors if channels fill whole ones."""
    width = target.vector_width if g.channels % (4 * target.vector_width) == 0 else 1
    return quantized.Share(width, 1, 4 * width, lines_whole=False)
