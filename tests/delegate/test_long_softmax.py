"""SOFTMAX of long rows of bytes, whose results round to zero: LiteRT's kernels abort there, so float64 is expected."""

from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array, Model, Node, Quantization, Subgraph, TensorSpec
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.schema import TensorType as T
from litecl.perf.feeds import run_on
from support import devices

_SCALE = 0.002


def _affine(scale: float, zero: int) -> Quantization:
    return Quantization(np.array([scale], np.float32), np.array([zero], np.int64), 0)


@devices.on_each
@pytest.mark.parametrize("to", [T.INT8, T.INT16], ids=lambda t: t.name)
@pytest.mark.parametrize("length", [511, 513, 1025, 4095, 4097, 8193, 20001])
def test_long_rows(length: int, to: T, device: Any) -> None:
    """Within a step or two of the formula; a sum of exponentials past 32 bits neither wraps nor shifts too far."""
    x = np.random.default_rng(length).integers(-128, 127, (3, length)).astype(np.int8)
    x[1] = 5  # the largest sum
    given, wanted = _affine(_SCALE, 3), _affine(1 / 256, -128) if to == T.INT8 else _affine(2**-16, -32768)
    real = np.exp((x - x.max(1, keepdims=True).astype(np.float64)) * _SCALE)
    real /= real.sum(1, keepdims=True)
    expected = np.rint(real / wanted.scale[0]) + wanted.zero_point[0]
    specs = TensorSpec(T.INT8, x.shape, "x", quantization=given), TensorSpec(to, x.shape, "y", quantization=wanted)
    softmax = Node(SOFTMAX, (0,), (1,), SoftmaxOptions(1.0))
    model = Model((Subgraph(specs, (0,), (1,), (softmax,)),))
    on_cpu = _run(model, x, [])
    np.testing.assert_array_equal(_run(model, x, [CLDelegate(device, strict=True)]), on_cpu)
    assert np.abs(on_cpu - expected).max() <= 2


def _run(model: Model, x: Array, delegates: list[Any]) -> Array:
    interpreter = Interpreter(model, delegates=delegates)
    return run_on(interpreter, [x])[0]
