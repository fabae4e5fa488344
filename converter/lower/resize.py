"""Resizes images."""

from collections.abc import Callable

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.interpreter.op import Op
from litecl.interpreter.ops.resize import (
    RESIZE_BILINEAR,
    RESIZE_NEAREST_NEIGHBOR,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
)

_Options = Callable[[bool, bool], ResizeBilinearOptions | ResizeNearestNeighborOptions]


def _resize(op: Op, options: _Options) -> Lowering:
    def lower(b: Builder) -> Value:
        # TensorFlow interpolates integers in float32 too, and returns float32.
        images = b.cast(b.node.input(0), b.node.output.type)
        corners, centers = bool(b.node.attrs["align_corners"]), bool(b.node.attrs["half_pixel_centers"])
        if corners and centers:
            raise b.error("it has both align_corners and half_pixel_centers, which TensorFlow refuses to run")
        return b.op(op, [images, b.int32(b.node.input(1))], options(corners, centers))

    return lower


LOWERINGS: dict[str, Lowering] = {
    "ResizeBilinear": _resize(RESIZE_BILINEAR, ResizeBilinearOptions),
    "ResizeNearestNeighbor": _resize(RESIZE_NEAREST_NEIGHBOR, ResizeNearestNeighborOptions),
}
