"""CONV_3D in every mode of a device, with what may be fused into it, against LiteRT's reference kernels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.conv_3d import CONV_3D, Conv3DOptions
from litecl.interpreter.ops.conv_3d_transpose import CONV_3D_TRANSPOSE
from litecl.interpreter.schema import ActivationFunctionType, Padding
from support import devices, oracle
from support.build import Graph, model, randn


def check(options: dict[str, Any], rtol: float = 1e-4) -> None:
    """A convolution with an addition and RELU behind it, one with strides, one of large weights, a transposed one."""
    rng, g = np.random.default_rng(3), Graph()
    x = g.input((2, 6, 7, 9, 11))
    first = Conv3DOptions(Padding.SAME, 1, 1, 1, dilation_h_factor=2)
    y = g.op(CONV_3D, [x, g.const(randn(rng, 3, 2, 3, 11, 13, scale=0.1)), g.const(randn(rng, 13))], first)
    other = g.input((2, 6, 7, 9, 13))
    y = g.op(ADD, [y, other], AddOptions(fused_activation_function=ActivationFunctionType.RELU))
    y = g.op(CONV_3D, [y, g.const(randn(rng, 2, 3, 1, 13, 70, scale=0.1)), None], Conv3DOptions(Padding.VALID, 2, 3, 1))
    last = Conv3DOptions(Padding.SAME, 1, 1, 1, ActivationFunctionType.RELU6)
    y = g.op(CONV_3D, [y, g.const(randn(rng, 3, 3, 3, 70, 150, scale=0.02)), g.const(randn(rng, 150))], last)
    y = g.op(CONV_3D_TRANSPOSE, _transposed(g, rng, y), Conv3DOptions(Padding.SAME, 2, 3, 1))
    another = g.input((2, 6, 5, 9, 21))
    y = g.op(ADD, [y, another], AddOptions(fused_activation_function=ActivationFunctionType.RELU))
    content, feeds = write(model(g.build(y))), [randn(rng, *g.tensors[t].static_shape) for t in g.inputs]
    interpreter = Interpreter(content, delegates=[CLDelegate(strict=True, **options)])
    interpreter.allocate_tensors()
    for tensor, feed in zip(g.inputs, feeds, strict=True):
        interpreter.set_tensor(tensor, feed)
    interpreter.invoke()
    (wanted,) = oracle.run(content, feeds)
    np.testing.assert_allclose(interpreter.get_tensor(y), wanted, rtol=rtol, atol=rtol)
    (row,) = interpreter.delegation_report().partitions
    assert "conv_3d" in row.kernels
    assert row.launches == 4


def _transposed(g: Graph, rng: np.random.Generator, x: int) -> list[int]:
    """Return a transposed convolution's inputs, of an output of 21 columns that is 2, 1 and 3 times as large as x."""
    sizes = [n * by for n, by in zip(g.tensors[x].static_shape[1:4], (2, 1, 3), strict=True)]
    weights, bias = randn(rng, 3, 3, 2, 21, 150, scale=0.02), randn(rng, 21)
    return [g.const(np.array([2, *sizes, 21], np.int32)), g.const(weights), x, g.const(bias)]


@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 2}, {"queue_loops": True}], ids=str)
def test_modes(options: dict[str, Any]) -> None:
    check(options)


def test_weights_in_halves() -> None:
    check({"precision": "fp16"}, 5e-3)


def test_as_on_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check(devices.as_on_a_gpu(monkeypatch, tmp_path))
