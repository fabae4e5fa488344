"""Inverted residuals as one kernel of a GPU, on whatever device there is, against float64."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from litecl.delegate.matmul import product
from litecl.delegate.opencl.devices import device
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import binary
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.pad import PAD
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support import devices
from support.build import Graph, randn
from support.gpu_nets import Net, check, convolved

_UNITS = 9
_RELU6 = ActivationFunctionType.RELU6


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Options of delegates for a GPU of a few compute units, which small images do not keep busy."""
    with pytest.MonkeyPatch.context() as patch:
        found = devices.as_on_a_gpu(patch, tmp_path_factory.mktemp("programs"))
        target = device.target_of
        patch.setattr(device, "target_of", lambda *args: replace(target(*args), compute_units=_UNITS))
        yield found | {"strict": True}


@dataclass(frozen=True)
class Block:
    """An inverted residual of ``images``: channels of the image, between, and of the result. edge: rows and columns of
    zeros that are added after the channels between, and nothing else is padded.
    """

    side: int
    channels: int
    hidden: int
    columns: int
    size: int = 3
    stride: int = 1
    dilation: int = 1
    images: int = 1
    residual: bool = True
    edge: int = 0


def inverted(block: Block, *, halves: bool = False) -> Net:
    """A 1x1 convolution, a depthwise one and a 1x1 one, the first two with clamps behind them, and an addend."""
    b, rng = block, np.random.default_rng(block.hidden + block.columns)
    g = Graph()
    x, e = randn(rng, b.images, b.side, b.side + 1, b.channels), randn(rng, b.hidden, 1, 1, b.channels)
    w, v = randn(rng, 1, b.size, b.size, b.hidden), randn(rng, b.columns, 1, 1, b.hidden)
    biases = [randn(rng, n) for n in (b.hidden, b.hidden, b.columns)]
    if halves:
        e, v = (a.astype(np.float16).astype(np.float32) for a in (e, v))
    into, own = g.input(x.shape), (b.stride, b.stride, 1, _RELU6, b.dilation, b.dilation)
    y = g.op(CONV_2D, [into, g.const(e), g.const(biases[0])], Conv2DOptions(Padding.SAME, 1, 1, _RELU6))
    around = np.array([[0, 0], [0, b.edge], [0, b.edge], [0, 0]], np.int32)
    y = g.op(PAD, [y, g.const(around)], NoOptions()) if b.edge else y
    padding = Padding.VALID if b.edge else Padding.SAME
    y = g.op(DEPTHWISE_CONV_2D, [y, g.const(w), g.const(biases[1])], DepthwiseConv2DOptions(padding, *own))
    y = g.op(CONV_2D, [y, g.const(v), g.const(biases[2])], Conv2DOptions(Padding.SAME, 1, 1))
    hidden = np.clip(x.astype(np.float64) @ e.reshape(b.hidden, -1).T + biases[0], 0, 6)
    by_channel = np.moveaxis(w, 3, 0).reshape(b.hidden, b.size, b.size, 1)
    middle = convolved(np.pad(hidden, around), by_channel, b.stride, b.hidden, b.dilation)
    middle = middle[:, 1:-1, 1:-1] if b.edge else middle
    expected = np.clip(middle + biases[1], 0, 6) @ v.reshape(b.columns, -1).T.astype(np.float64) + biases[2]
    feeds = [x]
    if b.residual:
        feeds += [randn(rng, *expected.shape)]
        y, expected = g.op(binary.ADD, [y, g.input(expected.shape)], binary.AddOptions(_RELU6)), expected + feeds[1]
        expected = np.clip(expected, 0, 6)
    return Net(g, y, feeds, expected, "inverted_residual")


_BLOCKS = {
    "tiles, parts": Block(14, 24, 64, 40),
    "one part": Block(5, 4, 20, 64, images=10),
    "few pixels": Block(1, 68, 132, 8, residual=False),
    "stride 2": Block(13, 16, 64, 132, stride=2, residual=False),
    "5x5, dilated": Block(9, 8, 40, 256, size=5, dilation=2),
    "5x5, stride 2": Block(12, 36, 36, 4, size=5, stride=2, residual=False),
    "an edge added": Block(9, 8, 160, 12, edge=1),
}


@pytest.mark.parametrize("name", _BLOCKS)
def test_inverted_residuals(name: str, options: dict[str, Any]) -> None:
    """Tiles include their surroundings, parts are added up, and the number of channels need not be a multiple of a
    chunk.
    """
    check(inverted(_BLOCKS[name]), options)


@pytest.mark.parametrize("most", [1024, 2047])
def test_inverted_residuals_of_halves(most: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Large weights are stored as halves, independently for both products."""
    monkeypatch.setattr(product, "CACHED_WEIGHTS", most)
    check(inverted(Block(6, 32, 64, 20), halves=True), options | {"precision": "fp16"})
