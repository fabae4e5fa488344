"""The pass that finds layer norms, for GPUs only, and the kernels that compute them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from litecl.delegate.gpu.pipeline import GPU_PASSES
from litecl.delegate.ops.layer_norm import LayerNormOptions
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter.ops.binary import ADD, MUL, SQUARED_DIFFERENCE, SUB, AddOptions
from litecl.interpreter.ops.unary import ABS, RSQRT
from litecl.interpreter.schema import ActivationFunctionType
from support import devices
from support.build import Graph, randn
from support.gpu_nets import Net, check
from support.loop_models import FLOAT, INT, below, int32, next_, while_model
from support.loop_models import check as loop_check
from support.norm_nets import EPSILON, FORMS, Normed, normed
from support.regions import after, names


@pytest.mark.parametrize("name", FORMS)
def test_whole(name: str) -> None:
    """One node of the rows alone on a GPU, in the place of the last; on a CPU nothing is fused into one."""
    g = normed(2, 5, 8)
    y = FORMS[name](g)
    (node,) = after(GPU_PASSES, g.graph, y).nodes
    assert (node.node.op.name, node.inputs, node.outputs) == ("LAYER_NORM", (g.x,), (y,))
    assert tuple(part.node for part in node.fused) == tuple(g.graph.build(y).nodes[:-1])
    own: LayerNormOptions = node.node.options
    assert (own.epsilon, own.gamma.shape, own.beta.shape) == (np.float32(EPSILON), (8,), (8,))
    assert "LAYER_NORM" not in names(after(PASSES, g.graph, y))


def _kept(g: Normed) -> tuple[int, ...]:
    return FORMS["scaled"](g), g.m


def _read_elsewhere(g: Normed) -> tuple[int, ...]:
    difference = g.of(SUB, g.x, g.m)
    return g.of(MUL, difference, g.inverse()), g.of(ABS, difference)


def _two_epsilons(g: Normed) -> tuple[int, ...]:
    variance = g.mean(g.of(SQUARED_DIFFERENCE, g.x, g.m))
    a, b = (g.of(RSQRT, g.shifted(variance, epsilon)) for epsilon in (0.1, 0.2))
    return (g.of(SUB, g.of(MUL, g.x, a), g.of(MUL, g.m, b)),)


def _unequal(g: Normed) -> tuple[int, ...]:
    scale = g.inverse()
    shifted = g.of(MUL, g.of(MUL, g.m, scale), g.gamma)
    return (g.of(SUB, g.of(MUL, g.of(MUL, g.x, scale), g.beta), shifted),)


def _another_axis(g: Normed) -> tuple[int, ...]:
    variance = g.mean(g.of(SQUARED_DIFFERENCE, g.x, g.m), axis=1)
    return (g.of(MUL, g.of(SUB, g.x, g.m), g.of(RSQRT, g.shifted(variance))),)


def _of_something_else(g: Normed) -> tuple[int, ...]:
    other = g.of(ABS, g.x)
    variance = g.mean(g.of(SQUARED_DIFFERENCE, other, g.m))
    return (g.of(MUL, g.of(SUB, g.x, g.m), g.of(RSQRT, g.shifted(variance))),)


def _clamped(g: Normed) -> tuple[int, ...]:
    difference = g.of(SUB, g.x, g.m)
    variance = g.mean(g.of(SQUARED_DIFFERENCE, g.x, g.m))
    relu = AddOptions(ActivationFunctionType.RELU6)
    shifted = g.of(ADD, variance, g.graph.const(np.float32(EPSILON)), options=relu)
    return (g.of(MUL, difference, g.of(RSQRT, shifted)),)


@pytest.mark.parametrize(
    "make", [_kept, _read_elsewhere, _two_epsilons, _unequal, _another_axis, _of_something_else, _clamped]
)
def test_what_is_none(make: Callable[[Normed], Sequence[int]]) -> None:
    """Nor is what others read between, or what has two deviations, factors or rows."""
    g = normed(2, 5, 8)
    assert "LAYER_NORM" not in names(after(GPU_PASSES, g.graph, *make(g)))


def test_what_follows_stays() -> None:
    """An activation and an addition after the norm stay separate nodes."""
    g = normed(2, 5, 8)
    relu = AddOptions(ActivationFunctionType.RELU)
    y = g.of(ADD, FORMS["plain"](g), g.beta, options=relu)
    assert names(after(GPU_PASSES, g.graph, y)) == ["LAYER_NORM", "ADD"]


@pytest.mark.parametrize(("name", "length"), [("as batches", 33), ("scaled", 8), ("divided", 1001)])
def test_numbers(name: str, length: int, gpu: dict[str, Any]) -> None:
    """Rows shorter and longer than a group, far from 0."""
    g = normed(3, 2, length)
    x = randn(np.random.default_rng(length), 3, 2, length) + 5
    check(Net(g.graph, FORMS[name](g), [x], g.expected(x), "layer_norm"), gpu)


def test_in_a_loop(gpu: dict[str, Any]) -> None:
    """Where a group runs the whole loop no kernel has local memory."""
    devices.needs_groups()

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        return [next_(g, x[0]), FORMS["scaled"](Normed(g, x[1], 40))]

    x = randn(np.random.default_rng(6), 4, 40)
    expected = x.astype(np.float64)
    for _ in range(3):
        expected = normed(4, 40).expected(expected)
    looped = while_model([((), INT), (x.shape, FLOAT)], below(3), body)
    prepared = loop_check(looped, [int32(0), x], [int32(3), expected.astype(np.float32)], **gpu)
    assert "layer_norm" in str(prepared.delegation_report().partitions[0].kernels)
