"""PAD as part of the convolution or pool that reads the image, against LiteRT's reference kernels."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.pad import PAD, PADV2
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, L2_POOL_2D, MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.unary import EXP
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support import compare, devices, oracle
from support.build import Graph, model, randn

RNG = np.random.default_rng(4)
_AROUND = ((0, 0), (2, 1), (1, 3), (0, 0))


def padded(g: Graph, x: int, borders: tuple[tuple[int, int], ...] = _AROUND, value: float | None = None) -> int:
    amounts = g.const(np.array(borders, np.int32))
    if value is None:
        return g.op(PAD, [x, amounts], NoOptions())
    return g.op(PADV2, [x, amounts, g.const(np.array([value], np.float32))], NoOptions())


def conv(g: Graph, x: int, channels: int, size: int, stride: int = 1, dilation: int = 1, groups: int = 1) -> int:
    depth = g.tensors[x].static_shape[-1] // groups
    filter_ = g.const(randn(RNG, channels, size, size, depth, scale=depth**-0.5 / size))
    options = Conv2DOptions(Padding.VALID, stride, stride, ActivationFunctionType.NONE, dilation, dilation)
    return g.op(CONV_2D, [x, filter_, g.const(randn(RNG, channels))], options)


def depthwise(g: Graph, x: int, size: int, stride: int, multiplier: int = 1) -> int:
    channels = g.tensors[x].static_shape[-1] * multiplier
    options = DepthwiseConv2DOptions(
        padding=Padding.VALID,
        stride_w=stride,
        stride_h=stride,
        depth_multiplier=multiplier,
        fused_activation_function=ActivationFunctionType.RELU6,
    )
    return g.op(
        DEPTHWISE_CONV_2D, [x, g.const(randn(RNG, 1, size, size, channels)), g.const(randn(RNG, channels))], options
    )


def pool(g: Graph, op: Op, x: int, size: int = 3, stride: int = 2, padding: Padding = Padding.VALID) -> int:
    return g.op(op, [x], Pool2DOptions(padding, stride, stride, size, size))


_FOLDED: dict[str, Callable[[Graph, int], int]] = {
    "1x1": lambda g, x: conv(g, padded(g, x), 9, 1),
    "3x3": lambda g, x: conv(g, padded(g, x), 32, 3),
    "3x3 of stride 2": lambda g, x: conv(g, padded(g, x), 20, 3, stride=2),
    "7x7 of stride 2": lambda g, x: conv(g, padded(g, x, ((0, 0), (3, 3), (3, 3), (0, 0))), 8, 7, stride=2),
    "dilated": lambda g, x: conv(g, padded(g, x), 8, 3, dilation=2),
    "in groups": lambda g, x: conv(g, padded(g, x), 32, 3, groups=2),
    "a group a channel": lambda g, x: conv(g, padded(g, x), 32, 3, groups=16),
    "depthwise": lambda g, x: depthwise(g, padded(g, x), 3, 1),
    "depthwise of stride 2": lambda g, x: depthwise(g, padded(g, x, ((0, 0), (0, 1), (0, 1), (0, 0))), 3, 2),
    "depthwise 5x5 with a multiplier": lambda g, x: depthwise(g, padded(g, x), 5, 2, 2),
    "pads wider than the window": lambda g, x: depthwise(g, padded(g, x, ((0, 0), (5, 4), (6, 7), (0, 0))), 3, 1),
    "MAX_POOL_2D": lambda g, x: pool(g, MAX_POOL_2D, padded(g, x)),
    "AVERAGE_POOL_2D": lambda g, x: pool(g, AVERAGE_POOL_2D, padded(g, x)),
    "L2_POOL_2D": lambda g, x: pool(g, L2_POOL_2D, padded(g, x)),
    "a pool of pads alone": lambda g, x: pool(g, MAX_POOL_2D, padded(g, x, ((0, 0), (4, 4), (5, 5), (0, 0)))),
    "PADV2 of zeros": lambda g, x: conv(g, padded(g, x, value=0.0), 8, 3),
}
_KEPT: dict[str, Callable[[Graph, int], int]] = {
    "PADV2 of ones": lambda g, x: conv(g, padded(g, x, value=1.0), 8, 3),
    "channels": lambda g, x: conv(g, padded(g, x, ((0, 0), (1, 1), (1, 1), (1, 2))), 8, 3),
    "images": lambda g, x: conv(g, padded(g, x, ((1, 0), (1, 1), (1, 1), (0, 0))), 8, 3),
    "a reader that pads by itself": lambda g, x: pool(g, AVERAGE_POOL_2D, padded(g, x), padding=Padding.SAME),
    "a reader of another kind": lambda g, x: g.op(EXP, [padded(g, x)], NoOptions()),
}


@pytest.mark.parametrize("build", _FOLDED.values(), ids=_FOLDED)
@devices.on_each
def test_part_of_the_reader(device: Any, build: Callable[[Graph, int], int]) -> None:
    """One launch computes both. The image has negative numbers too, which a maximum with zeros hides."""
    assert _launches(build, device) == 1


@pytest.mark.parametrize("build", _KEPT.values(), ids=_KEPT)
@devices.on_each
def test_launches_of_its_own(device: Any, build: Callable[[Graph, int], int]) -> None:
    """Padding other than zeros, or that its reader can't assume, is stored: filled, and the image copied into it."""
    assert _launches(build, device) == 3


def test_two_readers() -> None:
    """A padded tensor with other readers is stored."""

    def both(g: Graph, x: int) -> list[int]:
        around = padded(g, x)
        return [conv(g, around, 8, 3), pool(g, MAX_POOL_2D, around), g.op(EXP, [around], NoOptions())]

    assert _launches(both, None) == 5


def _launches(build: Callable[[Graph, int], Any], device: Any) -> int:
    g = Graph()
    outputs = build(g, g.input((2, 9, 10, 16)))
    content = write(model(g.build(*np.atleast_1d(outputs).tolist())))
    interpreter = Interpreter(model_content=content, delegates=[CLDelegate(device=device)])
    interpreter.allocate_tensors()
    feed = randn(RNG, 2, 9, 10, 16) - 0.5
    interpreter.set_tensor(0, feed)
    interpreter.invoke()
    for detail, expected in zip(interpreter.get_output_details(), oracle.run(content, [feed]), strict=True):
        compare.assert_close(interpreter.get_tensor(detail["index"]), expected, compare.DEVICE["float32"])
    report = interpreter.delegation_report()
    assert all(row.claimed for row in report.nodes)
    return report.partitions[0].launches
