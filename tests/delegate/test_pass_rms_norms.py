"""The pass that finds RMS norms, and the kernels that compute them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate
from litecl.delegate.gpu.pipeline import GPU_PASSES
from litecl.delegate.ops.layer_norm import LayerNormOptions
from litecl.delegate.plan.pipeline import PASSES
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.binary import ADD, MUL, SUB, AddOptions
from litecl.interpreter.ops.unary import ABS, RSQRT, SQUARE
from litecl.interpreter.schema import ActivationFunctionType
from support import devices
from support.build import model, randn
from support.loop_models import outputs, prepared
from support.regions import after, names
from support.rms_nets import EPSILON, FORMS, Rms

RELU = AddOptions(ActivationFunctionType.RELU)


def computed(r: Rms, y: int, feeds: Sequence[Array], **options: Any) -> Array:
    interpreter = prepared(model(r.graph.build(y)), feeds, [CLDelegate(**{"strict": True, **options})])
    (kernel,) = interpreter.delegation_report().partitions[0].kernels
    assert "layer_norm" in kernel
    outputs(interpreter)
    return outputs(interpreter)[0]


@pytest.mark.parametrize("passes", [PASSES, GPU_PASSES])
@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str, passes: Any) -> None:
    """One node of the rows alone, on a CPU too."""
    r = Rms(2, 8, 8)
    y = FORMS[name](r)
    (node,) = after(passes, r.graph, y).nodes
    assert (node.node.op.name, node.inputs, node.outputs) == ("RMS_NORM", (r.x,), (y,))
    options: LayerNormOptions = node.node.options
    assert options.epsilon == np.float32(EPSILON)
    np.testing.assert_array_equal(options.gamma, r.factors)
    assert not options.beta.any()


@pytest.mark.parametrize("shape", [(3, 2, 33), (5, 2), (1, 4, 1, 64), (2, 1001)])
@pytest.mark.parametrize("name", FORMS)
def test_numbers(name: str, shape: tuple[int, ...], gpu: dict[str, Any]) -> None:
    """Rows of all sizes of numbers, of zeros, and narrower and wider than vectors and groups."""
    r = Rms(*shape)
    y = FORMS[name](r)
    x = randn(np.random.default_rng(5), *shape) * np.float32(10.0) ** np.arange(-4, shape[0] - 4).reshape(
        -1, *[1] * (len(shape) - 1)
    ).astype(np.float32)
    x[-1] = 0 if shape[0] > 1 else x[-1]
    for options in ({}, gpu):
        np.testing.assert_allclose(computed(r, y, [x], **options), r.expected(x), rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("relu", [False, True])
def test_what_is_added_behind(relu: bool, gpu: dict[str, Any]) -> None:
    """A residual, and its activation, are part of the launch."""
    r = Rms(3, 5, 40)
    residual = r.graph.input(r.shape)
    y = r.of(ADD, residual, FORMS["exported"](r), options=RELU if relu else None)
    x, other = (randn(np.random.default_rng(seed), *r.shape) for seed in (1, 2))
    expected = r.expected(x) + other
    for options in ({}, gpu):
        got = computed(r, y, [x, other], **options)
        np.testing.assert_allclose(got, np.maximum(expected, 0) if relu else expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("device", devices.tested(), ids=devices.named)
def test_by_opencl(device: Any) -> None:
    r = Rms(3, 5, 42)
    residual = r.graph.input(r.shape)
    y = r.of(ADD, FORMS["exported"](r), residual)
    x, other = (randn(np.random.default_rng(seed), *r.shape) for seed in (1, 2))
    got = computed(r, y, [x, other], device=device)
    np.testing.assert_allclose(got, r.expected(x) + other, rtol=2e-5, atol=1e-6)


def test_nan_and_infinity_pass(gpu: dict[str, Any]) -> None:
    r = Rms(3, 40)
    y = FORMS["exported"](r)
    x = randn(np.random.default_rng(1), 3, 40)
    x[0, 3], x[1, 4] = np.nan, np.inf
    for options in ({}, gpu):
        got = computed(r, y, [x], **options)
        assert np.isnan(got[0]).all() and np.isnan(got[1, 4]) and not np.delete(got[1], 4).any()
        np.testing.assert_allclose(got[2], r.expected(x[2:])[0], rtol=2e-5)


def _another_axis(r: Rms) -> tuple[int, ...]:
    inverse = r.of(RSQRT, r.shifted(r.mean(r.squares(), axis=1)))
    return (r.of(MUL, r.of(MUL, r.x, inverse), r.gamma),)


def _rows_as_columns(r: Rms) -> tuple[int, ...]:
    """Of square matrices, numbers of rows that broadcast along rows."""
    flat = r.of(RSQRT, r.shifted(r.mean(r.squares(), keep=False)))
    return (r.of(MUL, r.x, r.reshaped(flat, (2, 1, 8))),)


def _without_reshape(r: Rms) -> tuple[int, ...]:
    flat = r.of(RSQRT, r.shifted(r.mean(r.squares(), keep=False)))
    return (r.of(MUL, r.reshaped(r.x, (8, 2, 8)), flat),)


def _clamped(r: Rms) -> tuple[int, ...]:
    inverse = r.of(RSQRT, r.shifted(r.mean(r.squares()), options=RELU))
    return (r.of(MUL, r.x, inverse),)


def _of_something_else(r: Rms) -> tuple[int, ...]:
    inverse = r.of(RSQRT, r.shifted(r.mean(r.of(SQUARE, r.of(ABS, r.x)))))
    return (r.of(MUL, r.x, inverse),)


def _no_square(r: Rms) -> tuple[int, ...]:
    inverse = r.of(RSQRT, r.shifted(r.mean(r.of(MUL, r.x, r.of(ABS, r.x)))))
    return (r.of(MUL, r.x, inverse),)


def _without_epsilon(r: Rms) -> tuple[int, ...]:
    return (r.of(MUL, r.x, r.of(RSQRT, r.mean(r.squares()))),)


def _epsilon_outside(r: Rms) -> tuple[int, ...]:
    return (r.of(MUL, r.x, r.shifted(r.of(RSQRT, r.mean(r.squares())))),)


def _less_epsilon(r: Rms) -> tuple[int, ...]:
    less = r.of(SUB, r.mean(r.squares()), r.graph.const(np.float32(EPSILON)))
    return (r.of(MUL, r.x, r.of(RSQRT, less)),)


def _epsilons_of_rows(r: Rms) -> tuple[int, ...]:
    rows = r.graph.const(np.arange(8, dtype=np.float32).reshape(8, 1))
    return (r.of(MUL, r.x, r.of(RSQRT, r.of(ADD, r.mean(r.squares()), rows))),)


def _read_elsewhere(r: Rms) -> tuple[int, ...]:
    inverse = r.inverse()
    return r.of(MUL, r.x, inverse), r.of(ABS, inverse)


_NONE = [
    *(_another_axis, _rows_as_columns, _without_reshape, _clamped, _of_something_else, _no_square, _without_epsilon),
    *(_epsilon_outside, _less_epsilon, _epsilons_of_rows, _read_elsewhere),
]


@pytest.mark.parametrize("passes", [PASSES, GPU_PASSES])
@pytest.mark.parametrize("make", _NONE)
def test_what_is_none(make: Callable[[Rms], Sequence[int]], passes: Any) -> None:
    """A composite may be called a norm and compute something else."""
    r = Rms(2, 8, 8)
    assert "RMS_NORM" not in names(after(passes, r.graph, *make(r)))


def test_factors_that_are_computed() -> None:
    """They are a node behind it."""
    r = Rms(2, 8, 8)
    y = r.of(MUL, r.of(MUL, r.x, r.inverse()), r.graph.input((8,)))
    assert names(after(PASSES, r.graph, y)) == ["RMS_NORM", "MUL"]
