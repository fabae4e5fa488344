"""The pass that makes gates of channels part of the 1x1 convolution behind them, for GPUs only."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.delegate.gpu.pipeline import GPU_PASSES
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import MUL, MulOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.unary import ABS, TANH
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support import devices
from support.build import Graph, randn
from support.gpu_products import gated
from support.loop_models import FLOAT, INT, below, check, int32, next_, while_model
from support.regions import after, names, text

_RNG = np.random.default_rng(0)
Build = Callable[[Graph], tuple[int, ...]]


def behind(g: Graph, gated: int, channels: int = 8, size: int = 1) -> int:
    weights = g.const(randn(_RNG, 12, size, size, channels))
    return g.op(CONV_2D, [gated, weights, None], Conv2DOptions(Padding.SAME, 1, 1))


def times(g: Graph, x: int, gates: int, **more: Any) -> int:
    return g.op(MUL, [x, gates], MulOptions(**more))


def test_whole() -> None:
    """The image and its gates become one node, with the addend after it; on a CPU the multiplication stays."""
    net = gated(5, 8, 12)
    fused = "GATED_CONV_2D(%1, %0, constant[12,1,1,8], -), plus %5, CLAMP 0 to 6, #1 #0 #2"
    assert text(after(GPU_PASSES, net.graph, net.output)) == f"%6:float32[1,5,5,12] = {fused}"
    assert names(after(PASSES, net.graph, net.output)) == ["MUL", "CONV_2D"]


_APART: dict[str, Build] = {
    "of two images": lambda g: (behind(g, times(g, g.input((2, 5, 5, 8)), g.input((2, 1, 1, 8)))),),
    "of pixels": lambda g: (behind(g, times(g, g.input((1, 5, 5, 8)), g.input((1, 5, 5, 1)))),),
    "known": lambda g: (behind(g, times(g, g.input((1, 5, 5, 8)), g.const(randn(_RNG, 1, 1, 1, 8)))),),
    "few channels": lambda g: (behind(g, times(g, g.input((1, 5, 5, 6)), g.input((1, 1, 1, 6))), 6),),
    "3x3": lambda g: (behind(g, times(g, g.input((1, 5, 5, 8)), g.input((1, 1, 1, 8))), size=3),),
    "clamped": lambda g: (
        behind(
            g,
            times(
                g,
                g.input((1, 5, 5, 8)),
                g.input((1, 1, 1, 8)),
                fused_activation_function=ActivationFunctionType.RELU6,
            ),
        ),
    ),
}


@pytest.mark.parametrize("name", _APART)
def test_what_stays(name: str) -> None:
    """Gates that differ from image to image or pixel to pixel, that are known, or that are clamped with the image."""
    g = Graph()
    assert "GATED_CONV_2D" not in names(after(GPU_PASSES, g, *_APART[name](g)))


def test_read_elsewhere() -> None:
    """A tensor with other readers is computed."""
    g = Graph()
    y = times(g, g.input((1, 5, 5, 8)), g.input((1, 1, 1, 8)))
    assert "GATED_CONV_2D" not in names(after(GPU_PASSES, g, behind(g, y), g.op(ABS, [y], NoOptions())))


def test_in_a_loop(tmp_path: Path) -> None:
    """Where a group runs the whole loop no kernel has local memory, and it is two launches."""
    devices.needs_groups()
    weights = randn(_RNG, 8, 1, 1, 8, scale=0.3)

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        gates = g.op(TANH, [x[2]], NoOptions())
        y = g.op(CONV_2D, [times(g, x[1], gates), g.const(weights), None], Conv2DOptions(Padding.SAME, 1, 1))
        return [next_(g, x[0]), y, gates]

    x, gates = randn(_RNG, 1, 5, 5, 8), randn(_RNG, 1, 1, 1, 8)
    wanted, factors = x.astype(np.float64), gates.astype(np.float64)
    for _ in range(3):
        factors = np.tanh(factors)
        wanted = (wanted * factors) @ weights.reshape(8, 8).T
    looped = while_model([((), INT), (x.shape, FLOAT), (gates.shape, FLOAT)], below(3), body)
    expected = [int32(3), wanted.astype(np.float32), factors.astype(np.float32)]
    with devices.in_tiles("large tiles", tmp_path) as options:
        prepared = check(looped, [int32(0), x, gates], expected, **options)
        assert "binary" in prepared.delegation_report().partitions[0].kernels
