"""The pass that makes a depthwise convolution part of the 1x1 convolution behind it, for GPUs only."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.cl_op import Activation
from litecl.delegate.gpu.passes.separable import separable
from litecl.delegate.gpu.pipeline import GPU_PASSES
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter import Interpreter
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.unary import EXP
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support.build import Graph, model, randn
from support.planned_gpu import PlannedGpu
from support.regions import after, names, text

_RNG = np.random.default_rng(0)
_SAME, _TANH, _RELU6 = Padding.SAME, ActivationFunctionType.TANH, ActivationFunctionType.RELU6


def depthwise(g: Graph, x: int, channels: int = 8, multiplier: int = 1, activation: Any = _RELU6, size: int = 3) -> int:
    """Add a depthwise convolution."""
    filter_ = g.const(randn(_RNG, 1, size, size, channels * multiplier))
    return g.op(DEPTHWISE_CONV_2D, [x, filter_, None], DepthwiseConv2DOptions(_SAME, 1, 1, multiplier, activation))


def pointwise(g: Graph, x: int, channels: int = 8, size: int = 1, stride: int = 1, activation: Any = _RELU6) -> int:
    """Add a convolution of 12 columns."""
    filter_ = g.const(randn(_RNG, 12, size, size, channels))
    return g.op(CONV_2D, [x, filter_, None], Conv2DOptions(_SAME, stride, stride, activation))


def both(g: Graph) -> int:
    """Add both convolutions."""
    return pointwise(g, depthwise(g, g.input((1, 6, 6, 8))))


def test_whole() -> None:
    """One node takes the place of the second, with the nodes between; on a CPU nothing changes."""
    g = Graph()
    y = both(g)
    graph = after(GPU_PASSES, g, y)
    fused = "SEPARABLE_CONV_2D(%0, constant[1,3,3,8], -, constant[12,1,1,8], -), CLAMP 0 to 6, #1 #0"
    assert text(graph) == f"%4:float32[1,6,6,12] = {fused}"
    assert graph.nodes[0].node.options.activation == Activation("CLAMP", 0.0, 6.0)
    assert names(after(PASSES, g, y)) == ["DEPTHWISE_CONV_2D", "CONV_2D"]
    assert separable not in PASSES


def _read_twice(g: Graph) -> int:
    middle = depthwise(g, g.input((1, 6, 6, 8)))
    g.op(EXP, [middle], NoOptions())
    return pointwise(g, middle)


_APART: dict[str, Callable[[Graph], int]] = {
    "another activation": lambda g: pointwise(g, depthwise(g, g.input((1, 6, 6, 8)), activation=_TANH)),
    "several outputs a channel": lambda g: pointwise(g, depthwise(g, g.input((1, 6, 6, 4)), 4, multiplier=2)),
    "odd channels": lambda g: pointwise(g, depthwise(g, g.input((1, 6, 6, 6)), 6), 6),
    "a large window": lambda g: pointwise(g, depthwise(g, g.input((1, 9, 9, 8)), size=7)),
    "3x3 behind it": lambda g: pointwise(g, depthwise(g, g.input((1, 6, 6, 8))), size=3),
    "a stride behind it": lambda g: pointwise(g, depthwise(g, g.input((1, 6, 6, 8))), stride=2),
    "read twice": _read_twice,
}


@pytest.mark.parametrize("name", _APART)
def test_apart(name: str) -> None:
    """Nodes that the kernel can't compute, or whose results have other readers, stay separate."""
    g = Graph()
    y = _APART[name](g)
    assert {"DEPTHWISE_CONV_2D", "CONV_2D"} <= {*names(after(GPU_PASSES, g, y))}


@pytest.mark.parametrize(("side", "launches"), [(6, 1), (400, 2)])
def test_much_to_do_is_done_once(side: int, launches: int) -> None:
    """Every tile computes its part of the depthwise convolution, so a large one is a launch of its own."""
    g = Graph()
    middle = depthwise(g, g.input((1, side, side, 32)), 32)
    y = pointwise(g, middle, 32)
    device = PlannedGpu("nvidia")
    Interpreter(model(g.build(y)), delegates=[CLDelegate(device=device, strict=True)]).allocate_tensors()
    assert len(device.plans[0].works) == launches
