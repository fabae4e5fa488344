"""Pieces of a line whose windows all reach beyond the image's sides, or none: a kernel has code for these alone."""

from dataclasses import replace
from itertools import product

from litecl.delegate.matmul.geometry import Geometry

SHAPE = Geometry(
    **dict.fromkeys(("images", "height", "width", "channels", "group_channels"), 1),
    **dict.fromkeys(("out_height", "out_width", "columns", "group_columns"), 1),
)


def _reach(g: Geometry, pixels: int, margin: int = 0) -> set[bool]:
    """Return whether each piece of a line reads a column that is farther outside the image than a margin, by looking at
    every tap of every pixel.
    """
    found = set()
    for first in range(0, g.out_width, pixels):
        start = max(0, min(first, g.out_width - pixels))
        read = (
            (start + t) * g.stride_x - g.pad_x + k * g.dilation_x for t in range(pixels) for k in range(g.kernel_width)
        )
        found.add(any(not -margin <= column < g.width + margin for column in read))
    return found


def test_all_or_none() -> None:
    seen, near = set(), set()
    for width, taps, stride, pad, pixels in product(range(1, 13), (1, 2, 3, 5), (1, 2, 3), (0, 1, 2), (3, 4, 5, 6)):
        g = replace(SHAPE, width=width, kernel_width=taps, stride_x=stride, pad_x=pad)
        for out_width in {1, max(1, (width + 2 * pad - taps) // stride + 1), max(1, (width - taps) // stride + 1)}:
            g = replace(g, out_width=out_width)
            reach = _reach(g, pixels)
            assert g.guarded(pixels) == ({"GUARDED": int(*reach)} if len(reach) == 1 else {}), (g, pixels)
            seen.add(frozenset(reach))
            if pixels <= out_width:
                far = True in _reach(g, pixels, margin=taps // 2)
                assert g.near != far, (g, pixels)
                near.add((far, max(reach)))
    assert len(seen) == 3
    assert len(near) == 3  # nothing that lies inside is far
