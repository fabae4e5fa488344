"""The pass that lets a reader of an image assume the zeros around it."""

from collections.abc import Callable

import numpy as np
import pytest

from litecl.delegate.plan.passes.pads import pads
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.pad import MIRROR_PAD, PAD, PADV2, MirrorPadOptions
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.unary import EXP
from litecl.interpreter.schema import Padding
from support.nets import DOMAINS, IMAGE, Net, Variant, conv, depthwise, pool, transposed
from support.regions import UPDATE, after, names, text

AROUND = ((0, 0), (2, 1), (1, 3), (0, 0))


def padded(g: Net, x: int, around: tuple[tuple[int, int], ...] = AROUND) -> int:
    return g.apply(PAD, [x, g.const(np.array(around, np.int32))])


def with_value(g: Net, x: int, value: int) -> int:
    return g.apply(PADV2, [x, g.const(np.array(AROUND, np.int32)), value])


_READERS: dict[str, Variant] = {
    "conv": conv(8, 3),
    "in groups": conv(6, 3, groups=2),
    "depthwise": depthwise(1),
    "pool": pool(MAX_POOL_2D),
}


@pytest.mark.parametrize("reader", _READERS.values(), ids=_READERS)
def test_part_of_the_reader(reader: Variant) -> None:
    g = Net(DOMAINS["float"])
    (line,) = text(after([pads], g, reader(g, padded(g, g.x(IMAGE))))).splitlines()
    assert "(%0" in line
    assert line.endswith(", pads 2 1 1 3, #1 #0")


@pytest.mark.parametrize(("domain", "fuses"), [("hybrid", True), ("int8", False), ("uint8", False), ("int16", False)])
def test_types(domain: str, fuses: bool) -> None:
    """The zero of integers is their zero point, which no integer kernel sees to."""
    g = Net(DOMAINS[domain])
    graph = after([pads], g, conv(8, 3)(g, padded(g, g.x(IMAGE))))
    assert names(graph) == (["CONV_2D"] if fuses else ["PAD", "CONV_2D"])


def same_padding(g: Net, x: int) -> int:
    return g.apply(AVERAGE_POOL_2D, [padded(g, x)], Pool2DOptions(Padding.SAME, 1, 1, 3, 3))


def as_filter(g: Net, x: int) -> int:
    """Return a convolution whose padded operand is the filter, not the image."""
    return g.op(CONV_2D, [g.x((1, 20, 20, 8)), padded(g, x), None], Conv2DOptions(Padding.VALID, 1, 1))


def mirrored(g: Net, x: int) -> int:
    return g.op(MIRROR_PAD, [x, g.const(np.array(AROUND, np.int32))], MirrorPadOptions())


_KEPT: dict[str, Callable[[Net, int], int]] = {
    "another number": lambda g, x: conv(8, 3)(g, with_value(g, x, g.const(np.float32(1)))),
    "a number that is fed": lambda g, x: conv(8, 3)(g, with_value(g, x, g.input(()))),
    "channels": lambda g, x: conv(8, 3)(g, padded(g, x, ((0, 0), (1, 1), (1, 1), (0, 1)))),
    "images": lambda g, x: conv(8, 3)(g, padded(g, x, ((1, 0), (1, 1), (1, 1), (0, 0)))),
    "a mirrored border": lambda g, x: conv(8, 3)(g, mirrored(g, x)),
    "a reader that pads by itself": same_padding,
    "a reader that cannot": lambda g, x: transposed(8)(g, padded(g, x)),
    "a reader of another kind": lambda g, x: g.apply(EXP, [padded(g, x)]),
    "a filter": as_filter,
}


@pytest.mark.parametrize("build", _KEPT.values(), ids=_KEPT)
def test_kept(build: Callable[[Net, int], int]) -> None:
    g = Net(DOMAINS["float"])
    y = build(g, g.x(IMAGE))
    graph = after([pads], g, y)
    assert len(graph.nodes) == 2
    assert "pads" not in text(graph)


def test_read_by_others() -> None:
    """By another node, by the same node again, or after the region."""
    g = Net(DOMAINS["float"])
    twice, kept, one = (padded(g, g.x(IMAGE)) for _ in range(3))
    outputs = [conv(8, 3)(g, twice), pool(MAX_POOL_2D)(g, twice), conv(8, 3)(g, kept), conv(8, 3)(g, one)]
    graph = after([pads], g, *outputs, kept)
    assert names(graph) == ["PAD", "PAD", "CONV_2D", "MAX_POOL_2D", "CONV_2D", "CONV_2D"]
    assert ["pads" in line for line in text(graph).splitlines()] == [False] * 5 + [True]


def test_an_image_that_is_updated() -> None:
    """The reader may run after the update of a state, and would then pad the new value."""
    g = Net(DOMAINS["float"])
    image = g.variable(IMAGE)
    y = conv(8, 3)(g, padded(g, image))
    assert names(after([pads], g, y)) == ["CONV_2D"]
    g.op(UPDATE, [g.x(IMAGE), image], NoOptions())
    assert names(after([pads], g, y)) == ["PAD", "CONV_2D", "UPDATE"]
