"""Fixed-point arithmetic against integers of any size, one at a time, and against float64."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litecl.interpreter.arithmetic import fixed_point, gemmlowp, rescale
from litecl.interpreter.errors import UnsupportedOp
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.kit import types
from litecl.interpreter.schema import ActivationFunctionType, TensorType

_X = np.concatenate([np.random.default_rng(1).integers(-(2**22), 2**22, 500), [-(2**31), 2**31 - 1, 0, 1, -1, 2, -2]])


def _high_mul(a: int, b: int) -> int:
    """gemmlowp's definition, with a nudge and a division that drops the fraction."""
    product = a * b
    total = product + ((1 << 30) if product >= 0 else 1 - (1 << 30))
    return abs(total) // (1 << 31) * (1 if total >= 0 else -1)


def _divide(x: int, exponent: int) -> int:
    mask = (1 << exponent) - 1
    return (x >> exponent) + ((x & mask) > (mask >> 1) + (x < 0))


@given(st.floats(1e-9, 60.0))
def test_multipliers_have_31_bits(factor: float) -> None:
    value, shift = fixed_point.quantize_multiplier(factor)
    assert 1 << 30 <= value < 1 << 31
    assert float(value) * 2.0 ** (int(shift) - 31) == pytest.approx(factor, rel=2.0**-31)


def test_small_multipliers_vanish_and_full_ones_carry() -> None:
    assert fixed_point.quantize_multiplier(1e-11) == (0, 0)
    assert fixed_point.quantize_multiplier(0.0) == (0, 0)
    assert fixed_point.quantize_multiplier(1 - 2.0**-40) == (1 << 30, 1)
    assert fixed_point.quantize_multiplier(np.inf) == (0, 0)


@pytest.mark.parametrize("factor", [0.3, 0.5, 0.25, 0.01, 3.7, 1e-5, 0.999])
def test_multiplication_rounds_twice(factor: float) -> None:
    multiplier = fixed_point.quantize_multiplier(factor)
    value, shift = int(multiplier.value), int(multiplier.shift)
    x = _X if shift <= 0 else _X[abs(_X) < 2**28]
    expected = [_divide(_high_mul(int(v) << max(shift, 0), value), max(-shift, 0)) for v in x]
    np.testing.assert_array_equal(fixed_point.multiply_by_quantized_multiplier(x, multiplier), expected)


def test_every_channel_has_its_multiplier() -> None:
    factors = np.array([0.3, 0.01, 3.7])
    x = _X[:300].reshape(100, 3)
    together = fixed_point.multiply_by_quantized_multiplier(x, fixed_point.quantize_multiplier(factors))
    for i, factor in enumerate(factors):
        alone = fixed_point.multiply_by_quantized_multiplier(x[:, i], fixed_point.quantize_multiplier(factor))
        np.testing.assert_array_equal(together[:, i], alone)


def test_wide_multiplication_uses_15_bits() -> None:
    multiplier = fixed_point.quantize_multiplier(0.3)
    x = _X * 1000
    expected = [(int(v) * ((int(multiplier.value) + 32768) >> 16) + 32768) >> 16 for v in x]
    expected = [(v + 2**31) % 2**32 - 2**31 for v in expected]  # 32 bits are kept
    np.testing.assert_array_equal(fixed_point.multiply_wide_by_quantized_multiplier(x, multiplier), expected)


@pytest.mark.parametrize("output", [TensorType.INT8, TensorType.UINT8, TensorType.INT16])
@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("factor", [3.7, 0.7, 0.25, 0.0101, 1.3e-4, 3e-6])
@pytest.mark.parametrize("scheme", [rescale.twice_rounded, rescale.wide])
def test_float64_rescales_as_integers_do(
    scheme: Callable[[Array, float], rescale.Factor], factor: float, clamped: bool, output: TensorType
) -> None:
    wide = scheme is rescale.wide
    limit = min(2.0**37, 2.0**30 / factor) if wide else 2.0**18
    x = np.random.default_rng(3).integers(-int(limit), int(limit), (4000, 2))
    ties = np.round(np.arange(-1000, 1000) / 2 / factor)  # where results lie halfway between two integers
    x = np.concatenate([x, np.clip(ties, -limit, limit).astype(np.int64)[:, None].repeat(2, axis=1)])
    factors = np.array([factor, factor * 0.37])
    low, high = types.integer_limits(output)
    zero_point = 3
    quick = scheme(factors, limit)
    assert isinstance(quick, rescale.Floor)
    exact = scheme(factors, np.inf)
    assert not isinstance(exact, rescale.Floor)
    stored = rescale.Stored(zero_point, zero_point if clamped else low, high, output.dtype)
    results = [rescale.rescale(each, stored)(x) for each in (quick, exact)]
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(quick(x), exact(x))


def test_outputs_that_are_known_do_not_keep_the_others_from_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead output with an extreme factor, one with an extreme bias, one that is clamped away, and two others."""
    factors = np.array([1e-9, 2.0**-24, 0.01, 0.3, 0.011])
    low = np.array([-500, 1 << 30, -(1 << 21), -3000, -(1 << 20)])
    high = np.array([500, 1 << 30, -50000, 3000, 1 << 20])
    stored = rescale.Stored(-7, -128, 127, np.dtype(np.int8))
    sums = np.random.default_rng(5).integers(low, high + 1, (5000, 5)).astype(np.float64)
    last = rescale.bounded(rescale.twice_rounded, factors, low, high, stored)
    expected = rescale.rescale(rescale.twice_rounded(factors), stored)(sums)
    monkeypatch.setattr(fixed_point, "multiply_by_quantized_multiplier", None)  # the arithmetic of integers
    np.testing.assert_array_equal(last(sums), expected)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (ActivationFunctionType.NONE, (-128, 127)),
        (ActivationFunctionType.RELU, (-20, 127)),
        (ActivationFunctionType.RELU6, (-20, 100)),
        (ActivationFunctionType.RELU_N1_TO_1, (-40, 0)),
    ],
)
def test_activation_ranges(function: ActivationFunctionType, expected: tuple[int, int]) -> None:
    output = TensorSpec(TensorType.INT8, (1,), quantization=Quantization(np.float32([0.05]), np.int64([-20])))
    assert fixed_point.activation_range(function, output) == expected


@pytest.mark.parametrize("function", [ActivationFunctionType.TANH, ActivationFunctionType.SIGN_BIT])
def test_activations_that_do_not_clamp_are_refused(function: ActivationFunctionType) -> None:
    output = TensorSpec(TensorType.INT8, (1,), quantization=Quantization(np.float32([0.05]), np.int64([-20])))
    with pytest.raises(UnsupportedOp, match=f"no kernel for fused {function.name} of INT8"):
        fixed_point.activation_range(function, output)


@pytest.mark.parametrize(("bits", "accuracy"), [(32, 3e-7), (16, 4e-4)])
@pytest.mark.parametrize("integer", [0, 3, 4, 5])
def test_elementary_functions_are_near_the_real_ones(integer: int, bits: int, accuracy: float) -> None:
    unit = 2.0 ** (bits - 1 - integer)
    raw = np.linspace(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 4001).astype(np.int64)
    one = 2.0 ** (bits - 1)

    def near(got: Array, expected: Array) -> None:
        np.testing.assert_allclose(got / one, expected, atol=accuracy)

    negative = raw[raw <= 0]
    near(gemmlowp.exp_on_negative_values(negative, integer, bits), np.exp(negative / unit))
    near(gemmlowp.logistic(raw, integer, bits), 1 / (1 + np.exp(-raw / unit)))
    near(gemmlowp.tanh(raw, integer, bits), np.tanh(raw / unit))
