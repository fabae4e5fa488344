"""Products of FLOAT16, which LiteRT runs on GPUs only, against float64."""

from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.graph import Array
from litecl.interpreter.op import Op
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.schema import ActivationFunctionType
from litecl.interpreter.schema import TensorType as T
from support.build import Graph, model, randn

RELU = ActivationFunctionType.RELU


def halves(*shape: int, scale: float = 1.0, seed: int = 1) -> Array:
    return randn(np.random.default_rng(seed), *shape, scale=scale).astype(np.float16)


def run(op: Op, x: Array, others: list[Array | None], options: Any) -> Array:
    """Return the result of an operator, which a delegate leaves to the CPU."""
    g = Graph()
    y = g.op(op, [g.input(x.shape, T.of(x.dtype)), *(None if o is None else g.const(o) for o in others)], options)
    results = []
    for delegates in ([], [CLDelegate()]):
        interpreter = Interpreter(model(g.build(y)), delegates=delegates)
        interpreter.allocate_tensors()
        interpreter.set_tensor(g.inputs[0], x)
        interpreter.invoke()
        results.append(interpreter.get_tensor(y))
    np.testing.assert_array_equal(*results)
    assert results[0].dtype == np.float16
    return results[0]


@pytest.mark.parametrize("bias", [None, halves(9), halves(9).astype(np.float32)], ids=["none", "half", "float"])
def test_fully_connected(bias: Array | None) -> None:
    x, weights = halves(5, 300), halves(9, 300, seed=2)
    options = FullyConnectedOptions(fused_activation_function=RELU)
    got = run(FULLY_CONNECTED, x, [weights, bias], options)
    wanted = x.astype(np.float64) @ weights.T.astype(np.float64) + (0 if bias is None else bias)
    np.testing.assert_allclose(got, np.maximum(wanted, 0), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("adj_x", [False, True])
@pytest.mark.parametrize("adj_y", [False, True])
def test_batch_matmul(adj_x: bool, adj_y: bool) -> None:
    x, y = halves(2, 3, 5, 300), halves(3, 300, 7, seed=2)
    options = BatchMatMulOptions(adj_x=adj_x, adj_y=adj_y)
    given = [np.ascontiguousarray(a.swapaxes(-1, -2)) if turned else a for a, turned in ((x, adj_x), (y, adj_y))]
    got = run(BATCH_MATMUL, given[0], [given[1]], options)
    np.testing.assert_allclose(got, x.astype(np.float64) @ y.astype(np.float64), rtol=1e-3, atol=1e-3)


def test_sums_beyond_halves() -> None:
    """Sums that leave the range and come back do not overflow; results that stay there are infinite."""
    x = np.array([[60000, 60000, -60000, 1], [60000, 60000, 0, 0]], np.float16)
    got = run(FULLY_CONNECTED, x, [np.ones((1, 4), np.float16), None], FullyConnectedOptions())
    np.testing.assert_array_equal(got, [[60000], [np.inf]])


@pytest.mark.parametrize(("x", "weights"), [(np.float16, np.float32), (np.float32, np.float16), (np.float16, np.int8)])
def test_other_types_beside_halves(x: type, weights: type) -> None:
    with pytest.raises((LiteclError, AssertionError), match=r"FLOAT|INT"):
        run(FULLY_CONNECTED, np.ones((1, 4), x), [np.ones((2, 4), weights), None], FullyConnectedOptions())
