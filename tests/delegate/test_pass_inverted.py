"""The pass that finds inverted residuals, for GPUs only: three convolutions as one node, where images are small."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.cl_op import Activation
from litecl.delegate.gpu.pipeline import GPU_PASSES
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter import Interpreter
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.unary import EXP
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support import networks
from support.build import Graph, model, randn
from support.planned_gpu import PlannedGpu
from support.regions import after, names, text

_RNG = np.random.default_rng(0)
_SAME, _TANH, _RELU6 = Padding.SAME, ActivationFunctionType.TANH, ActivationFunctionType.RELU6
_NONE = ActivationFunctionType.NONE


def expand(g: Graph, x: int, size: int = 1, stride: int = 1, activation: Any = _RELU6) -> int:
    """Add a convolution of 8 channels to 48."""
    options = Conv2DOptions(_SAME, stride, stride, activation)
    return g.op(CONV_2D, [x, g.const(randn(_RNG, 48, size, size, 8)), None], options)


def rest(g: Graph, hidden: int, columns: int = 8) -> int:
    """Add the two convolutions that are SEPARABLE_CONV_2D."""
    options = DepthwiseConv2DOptions(_SAME, 1, 1, 1, _RELU6)
    y = g.op(DEPTHWISE_CONV_2D, [hidden, g.const(randn(_RNG, 1, 3, 3, 48)), None], options)
    return g.op(CONV_2D, [y, g.const(randn(_RNG, columns, 1, 1, 48)), None], Conv2DOptions(_SAME, 1, 1, _NONE))


def test_whole() -> None:
    """One node in the place of the last, with the addition behind it; on a CPU nothing changes."""
    g = Graph()
    x = g.input((1, 6, 6, 8))
    y = g.op(ADD, [x, rest(g, expand(g, x))], AddOptions(_NONE))
    graph = after(GPU_PASSES, g, y)
    weights = "constant[48,1,1,8], -, constant[1,3,3,48], -, constant[8,1,1,48], -"
    assert text(graph) == f"%7:float32[1,6,6,8] = INVERTED_RESIDUAL(%0, {weights}), plus %0, #2 #0 #1 #3"
    options = graph.nodes[0].node.options
    assert options.activation == options.separable.activation == Activation("CLAMP", 0.0, 6.0)
    assert names(after(PASSES, g, y)) == ["CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D"]


def _read_twice(g: Graph) -> int:
    hidden = expand(g, g.input((1, 6, 6, 8)))
    g.op(EXP, [hidden], NoOptions())
    return rest(g, hidden)


def _continued(g: Graph) -> int:
    x = g.input((1, 6, 6, 8))
    return rest(g, g.op(ADD, [expand(g, x, activation=_NONE), g.input((1, 6, 6, 48))], AddOptions(_RELU6)))


_APART: dict[str, Callable[[Graph], int]] = {
    "another activation": lambda g: rest(g, expand(g, g.input((1, 6, 6, 8)), activation=_TANH)),
    "3x3 before": lambda g: rest(g, expand(g, g.input((1, 6, 6, 8)), size=3)),
    "a stride before": lambda g: rest(g, expand(g, g.input((1, 6, 6, 8)), stride=2)),
    "large": lambda g: rest(g, expand(g, g.input((1, 160, 160, 8)))),
    "read twice": _read_twice,
    "an addition between": _continued,
}


@pytest.mark.parametrize("name", _APART)
def test_apart(name: str) -> None:
    """Nodes that the kernel can't compute, or whose results have other readers, stay separate."""
    g = Graph()
    y = _APART[name](g)
    assert {"CONV_2D", "SEPARABLE_CONV_2D"} <= {*names(after(GPU_PASSES, g, y))}


def kernels(device: PlannedGpu, *args: Any) -> list[str]:
    """Return the kernels that a GPU launches for a model."""
    Interpreter(*args, delegates=[CLDelegate(device=device, strict=True)]).allocate_tensors()
    return [work.launch.kernel for work in device.plans[0].works]


@pytest.mark.parametrize(("columns", "together"), [(8, 1), (6, 2), (260, 2)])
def test_columns(columns: int, together: int) -> None:
    """A group has the sums of all columns, four at a time; where it cannot, these are two launches."""
    g = Graph()
    y = rest(g, expand(g, g.input((1, 28, 28, 8))), columns)
    assert len(kernels(PlannedGpu("nvidia"), model(g.build(y)))) == together


def test_rows_of_a_wider_tensor() -> None:
    """A result that is part of another is written there row by row, by two launches."""
    g = Graph()
    x = g.input((1, 28, 28, 8))
    y = g.op(CONCATENATION, [rest(g, expand(g, x)), x], ConcatenationOptions(3))
    assert "inverted_residual" not in kernels(PlannedGpu("nvidia"), model(g.build(y)))


@pytest.mark.parametrize(("name", "batch", "most"), [("nvidia", 1, 23), ("nvidia", 16, 54), ("arm", 1, 29)])
def test_mobilenet(name: str, batch: int, most: int) -> None:
    """Where one convolution after another would keep a GPU busy, and tiles would do much again, nothing is computed
    twice.
    """
    launched = kernels(PlannedGpu(name), None, networks.mobilenet_v2(batch=batch))
    assert len(launched) == most
    assert ("inverted_residual" in launched) == (batch == 1)
