"""Numpy's emulation of devices with 16-bit floats: values that fit halves are exact, others are rounded as there."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.halves import Emulation, Ran
from litecl.halves.kernels import IN_HALVES, WITHOUT
from litecl.halves.sums import Sums, largest_lost, rounded
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import DelegateError, ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D
from litecl.interpreter.ops.reduce import MEAN
from litecl.interpreter.ops.softmax import SOFTMAX
from litecl.interpreter.ops.unary import TANH
from litecl.perf.feeds import run_on
from support import oracle
from support.all_cases import CASES, content
from support.build import Graph, model, randn
from support.loop_models import FLOAT, INT, below, int32, next_, while_model

_DIVIDE = {MEAN: 1e-6, AVERAGE_POOL_2D: 1e-6, SOFTMAX: 2e-3, L2_NORMALIZATION: 2e-3}
"""How far operators may be off that do more than products and sums."""


def _ran(made: Any, *feeds: Array, **options: Any) -> list[Array]:
    interpreter = Interpreter(made, delegates=[Emulation(**options)])
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.resize_tensor_input(detail["index"], feed.shape)
    return run_on(interpreter, feeds)


def _quarters(case: Case) -> Case:
    """The case with multiples of 1/4 up to 1 as floats: sums of a thousand of their products are halves."""
    rng = np.random.default_rng(7)

    def drawn(x: Array | None) -> Array | None:
        return x if x is None or x.dtype != np.float32 else (rng.integers(-4, 5, x.shape) / 4).astype(np.float32)

    return replace(case, inputs=[drawn(x) for x in case.inputs])


@pytest.mark.parametrize("op", IN_HALVES, ids=lambda op: op.name)
def test_what_is_exact_in_halves(op: Op) -> None:
    """The sums of every operator, for all options and shapes of its cases, against LiteRT's reference kernels."""
    plain = {np.dtype(np.float32), np.dtype(np.int32)}
    types = {c: {x.dtype for x in c.inputs if x is not None} for c in CASES if c.op is op and not c.types}
    cases = [case for case, found in types.items() if np.dtype(np.float32) in found <= plain]
    assert len(cases) > 2
    for case in map(_quarters, cases):
        (expected,) = oracle.run(content(case), case.feeds, oracle.RESOLVERS[case.kernels])
        for mode in ("sums", "storage"):
            (got,) = _ran(content(case), *case.feeds, mode=mode)
            assert got.shape == expected.shape, case
            tolerance = _DIVIDE.get(op, 1e-6) if mode == "sums" else 2e-3
            np.testing.assert_allclose(got, expected, tolerance, tolerance, err_msg=f"{case} {mode}")


def test_what_is_added_up_in_floats() -> None:
    assert not WITHOUT & {*IN_HALVES}


def _added(x: Array, y: Array, block: int) -> np.float16:
    """The sum of products by numpy's halves, element by element: each fused multiply-add is rounded once."""
    total = np.float16(0)
    for start in range(0, len(x), block):
        part = np.float16(0)
        for a, b in zip(x[start : start + block], y[start : start + block], strict=True):
            part = np.float16(np.float64(part) + np.float64(a) * np.float64(b))
        total = np.float16(np.float64(total) + np.float64(part))
    return total


@pytest.mark.parametrize("block", [1, 3, 8, 100])
@pytest.mark.parametrize("scale", [1.0, 3e-4, 40.0])
def test_sums_are_rounded_at_each_step(block: int, scale: float) -> None:
    rng = np.random.default_rng(block)
    x, y = rounded(randn(rng, 5, 37) * np.float32(scale)), rounded(randn(rng, 37, 4) * np.float32(scale))
    got = Sums(block).dot(x, y)
    expected = [[_added(row, column, block) for column in y.T] for row in x]
    np.testing.assert_array_equal(got, np.array(expected, np.float32))


def test_the_sum_that_is_lost() -> None:
    """By the order of a block: 65504 + 16 rounds to infinity, 65504 + 15 does not."""
    x = np.array([[65504.0, 15.0, -70.0], [65504.0, 16.0, -70.0]], np.float32)
    sums = Sums()
    np.testing.assert_array_equal(sums.last(x), [65504 - 64, np.inf])  # halves are 32 apart there
    assert sums.overflow == 65520
    assert Sums().last(np.zeros((2, 0), np.float32)).tolist() == [0, 0]
    assert largest_lost(np.float32([1e9, np.inf, 3]), rounded(np.float32([1e9, np.inf, 3]))) == np.float32(1e9)


def _mixed() -> tuple[Any, Array, Array]:
    g, rng = Graph(), np.random.default_rng(5)
    w = randn(rng, 9, 20)
    y = g.op(FULLY_CONNECTED, [g.input((3, 20)), g.const(w), None], FullyConnectedOptions())
    z = g.op(ADD, [g.op(TANH, [y], NoOptions()), g.const(np.float32(100.3))], AddOptions())
    return model(g.build(y, z)), randn(rng, 3, 20), w


def test_storage() -> None:
    """Inputs, weights, activations and results are halves; arithmetic is in float32."""
    made, x, w = _mixed()
    y, z = _ran(made, x, mode="storage")
    half: Callable[[Array], Array] = lambda v: v.astype(np.float16).astype(np.float32)  # noqa: E731
    np.testing.assert_allclose(y, half(half(x) @ half(w).T), rtol=2**-10)
    np.testing.assert_array_equal(z, half(half(np.tanh(y)) + half(np.float32(100.3))))


def test_nodes_that_are_kept() -> None:
    made, x, _ = _mixed()
    exact = oracle.run(write(made), [x])
    names = [made.subgraphs[0].tensors[node.outputs[0]].name for node in made.subgraphs[0].nodes]
    kept = ((names, (True, True)), ([0], (True, False)), ([names[0]], (True, False)), ([], (False, False)))
    for keep, floats in kept:
        for mode in ("storage", "both"):
            got = _ran(made, x, mode=mode, keep_float=keep)
            assert tuple(np.abs(a - b).max() < 2e-5 for a, b in zip(got, exact, strict=True)) == floats, (keep, mode)
    with pytest.raises(DelegateError, match="no node has a result 'z'"):
        _ran(made, x, keep_float=["z"])
    with pytest.raises(ModelError, match="fp16: expected one of storage, sums, both, got 'all'"):
        Emulation("all")  # type: ignore[arg-type]


def test_in_loops() -> None:
    """Each iteration passes on halves, and is reported with right inputs."""
    rng = np.random.default_rng(6)
    made = while_model(
        [((), INT), ((4,), FLOAT)],
        below(3),
        lambda g, x: [next_(g, x[0]), g.op(ADD, [x[1], g.const(np.float32(0.1))], AddOptions())],
    )
    start = randn(rng, 4)
    count, got = _ran(made, int32(0), start, mode="both")
    expected = start.astype(np.float16)
    for _ in range(3):
        expected = expected + np.float16(0.1)
    assert (count, expected.dtype) == (3, np.float16)
    np.testing.assert_array_equal(got, expected.astype(np.float32))
    seen: list[Ran] = []
    _, exact = _ran(made, int32(0), start, mode="both", look=seen.append)
    np.testing.assert_allclose(exact, start + 3 * np.float32(0.1), rtol=1e-6)
    assert len([ran for ran in seen if ran.subgraph == 2 and ran.exact[0].dtype == np.float32]) == 3
