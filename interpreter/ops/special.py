"""Special functions of single elements, computed in float64: litecl's own operators.

Formulas are from the Digital Library of Mathematical Functions, https://dlmf.nist.gov (numbers in parentheses).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require, types
from litecl.interpreter.kit.own import Result, operator
from litecl.interpreter.op import NoOptions, Op

_ENOUGH, _TINY = 1e-15, 1e-300
_MOST_TERMS = 100_000
_NODES = 200  # of quadratures over a period, exact to rounding for arguments up to some hundreds
_SHIFT, _BERNOULLI = 12, (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)

_lgamma = np.vectorize(math.lgamma, otypes=[np.float64])


def _elementwise(name: str, function: Callable[..., Array]) -> Op:
    """Return the operator of a function of float64 arrays of one shape."""

    def run(options: NoOptions, *operands: Array) -> Array:
        wide = np.broadcast_arrays(*(x.astype(np.float64) for x in operands))
        limits.temporary(name, wide[0].shape, 128)
        with np.errstate(all="ignore"):
            return np.asarray(function(*wide), operands[0].dtype)

    def results(options: NoOptions, inputs: list[TensorSpec]) -> list[Result]:
        for spec in inputs:
            require.types(spec, types.FLOAT)
        return [(inputs[0].type, require.broadcast(*inputs))]

    return operator(name, NoOptions, run, results)


def _gamma_series(a: Array, x: Array) -> Array:
    """Return the regularized lower gamma function by its power series (8.11.4), for x below a + 1."""
    term = total = 1 / a
    k = 0
    while k < _MOST_TERMS and np.any(np.abs(term) > _ENOUGH * np.abs(total)):
        k += 1
        term = term * x / (a + k)
        total = total + term
    return np.asarray(total * np.exp(a * np.log(x) - x - _lgamma(a)))


def _gamma_fraction(a: Array, x: Array) -> Array:
    """Return the regularized upper one by its continued fraction (8.9.2), for x from a + 1 on (Lentz's algorithm)."""
    b = x + 1 - a
    c, d = np.full_like(x, 1 / _TINY), 1 / b
    h = d
    k = 0
    while k < _MOST_TERMS:
        k += 1
        numerator = -k * (k - a)
        b = b + 2
        d = 1 / _kept(numerator * d + b)
        c = _kept(b + numerator / c)
        h = h * d * c
        if np.all(np.abs(d * c - 1) < _ENOUGH):
            break
    return np.asarray(h * np.exp(a * np.log(x) - x - _lgamma(a)))


def _kept(x: Array) -> Array:
    return np.where(np.abs(x) < _TINY, _TINY, x)


def _shares(a: Array, x: Array) -> tuple[Array, Array]:
    """Return the regularized lower and upper gamma functions."""
    good = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    lower = np.where((x == 0) & (a > 0), 0.0, np.where((x == math.inf) & (a > 0), 1.0, math.nan))
    upper = 1 - lower
    for near, compute in ((good & (x < a + 1), _gamma_series), (good & (x >= a + 1), _gamma_fraction)):
        if near.any():
            part = compute(a[near], x[near])
            mine, other = (lower, upper) if compute is _gamma_series else (upper, lower)
            mine[near], other[near] = part, 1 - part
    return lower, upper


def _beta(a: Array, b: Array, x: Array) -> Array:
    """Return the regularized beta function by a continued fraction (8.17.22), from the side where it converges fast."""
    good = (a > 0) & (b > 0) & (x > 0) & (x < 1)
    result = np.where((a > 0) & (b > 0) & (x == 0), 0.0, np.where((a > 0) & (b > 0) & (x == 1), 1.0, math.nan))
    if not good.any():
        return result
    a, b, x = a[good], b[good], x[good]
    turned = x > (a + 1) / (a + b + 2)
    p, q, t = np.where(turned, b, a), np.where(turned, a, b), np.where(turned, 1 - x, x)
    front = np.exp(_lgamma(p + q) - _lgamma(p) - _lgamma(q) + p * np.log(t) + q * np.log1p(-t)) / p
    share = front * _beta_fraction(p, q, t)
    result[good] = np.where(turned, 1 - share, share)
    return result


def _beta_fraction(a: Array, b: Array, x: Array) -> Array:
    c, d = np.ones_like(x), 1 / _kept(1 - (a + b) * x / (a + 1))
    h = d
    for m in range(1, _MOST_TERMS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / _kept(1 + numerator * d), _kept(1 + numerator / c)
            h = h * d * c
        if np.all(np.abs(d * c - 1) < _ENOUGH):
            break
    return h


def _zeta(s: Array, q: Array) -> Array:
    """Return Hurwitz's zeta function: twelve terms, and the rest by the Euler-Maclaurin formula (25.11.5)."""
    total = sum((q + k) ** -s for k in range(_SHIFT))
    far = q + _SHIFT
    total = total + far ** (1 - s) / (s - 1) + far**-s / 2
    factor = s * far ** (-s - 1)
    for k, number in enumerate(_BERNOULLI):
        total = total + number / math.factorial(2 * k + 2) * factor
        factor = factor * (s + 2 * k + 1) * (s + 2 * k + 2) / far**2
    pole = (q <= 0) & (q == np.floor(q))
    wrong = (s < 1) | ((q < 0) & (s != np.floor(s)))
    return np.where(wrong, math.nan, np.where((s == 1) | pole, math.inf, total))


def _digamma(x: Array) -> Array:
    """Return the logarithmic derivative of the gamma function: shifted upwards, then by its expansion (5.11.2)."""
    reflected = x < 0.5
    y = np.where(reflected, 1 - x, x)
    total = -sum(1 / (y + k) for k in range(_SHIFT))
    far = y + _SHIFT
    total = total + np.log(far) - 0.5 / far
    for k, number in enumerate(_BERNOULLI):
        total = total - number / ((2 * k + 2) * far ** (2 * k + 2))
    part = x - np.rint(x)
    return np.where(
        reflected & (part == 0), math.nan, np.where(reflected, total - math.pi / np.tan(math.pi * part), total)
    )


def _polygamma(n: Array, x: Array) -> Array:
    factor = np.where(n % 2 == 0, -1.0, 1.0) * np.exp(_lgamma(n + 1))
    wrong = (n < 0) | (n != np.floor(n))
    return np.where(wrong, math.nan, np.where(n == 0, _digamma(x), factor * _zeta(n + 1, x)))


def _over_half_a_period(integrand: Callable[[Any], Array]) -> Array:
    """Return the mean of an even periodic function over its period, by the trapezoidal rule."""
    total: Any = 0
    for k in range(_NODES + 1):
        total = total + integrand(np.float64(math.pi * k / _NODES)) * (0.5 if k in (0, _NODES) else 1.0)
    return np.asarray(total / _NODES)


def _i(order: int, x: Array) -> Array:
    """Return the modified Bessel function times exp(-|x|) (10.32.3)."""
    size = np.abs(x)
    wide = size > _NODES  # where the integrand is narrow: Hankel's expansion (10.40.1)
    near = _over_half_a_period(lambda t: np.exp(np.where(wide, 1, size) * (np.cos(t) - 1)) * np.cos(order * t))
    term, far = np.ones_like(size), np.ones_like(size)
    for k in range(1, 12):
        term = term * -(4 * order**2 - (2 * k - 1) ** 2) / (k * 8 * size)
        far = far + term
    value = np.where(wide, far / np.sqrt(2 * math.pi * size), near)
    return value * np.sign(x) if order else value


def _j(order: int, x: Array) -> Array:
    """Return the Bessel function of the first kind (10.9.1)."""
    return _over_half_a_period(lambda t: np.cos(order * t - x * np.sin(t)))


def _k(order: int, x: Array) -> Array:
    """Return the modified Bessel function of the second kind times exp(x) (10.32.9), by the trapezoidal rule."""
    step = 0.03125
    total = 0.5 * np.ones_like(x)
    for n in range(1, 800):
        t = n * step
        total = total + np.exp(-x * (math.cosh(t) - 1)) * math.cosh(order * t)
    return np.where(x > 0, total * step, np.where(x == 0, math.inf, math.nan))


IGAMMA = _elementwise("litecl.Igamma", lambda a, x: _shares(a, x)[0])
IGAMMAC = _elementwise("litecl.Igammac", lambda a, x: _shares(a, x)[1])
BETAINC = _elementwise("litecl.Betainc", _beta)
ZETA = _elementwise("litecl.Zeta", _zeta)
POLYGAMMA = _elementwise("litecl.Polygamma", _polygamma)
BESSEL_I0E = _elementwise("litecl.BesselI0e", lambda x: _i(0, x))
BESSEL_I1E = _elementwise("litecl.BesselI1e", lambda x: _i(1, x))
BESSEL_I0 = _elementwise("litecl.BesselI0", lambda x: _i(0, x) * np.exp(np.abs(x)))
BESSEL_I1 = _elementwise("litecl.BesselI1", lambda x: _i(1, x) * np.exp(np.abs(x)))
BESSEL_J0 = _elementwise("litecl.BesselJ0", lambda x: _j(0, x))
BESSEL_J1 = _elementwise("litecl.BesselJ1", lambda x: _j(1, x))
BESSEL_K0E = _elementwise("litecl.BesselK0e", lambda x: _k(0, x))
BESSEL_K1E = _elementwise("litecl.BesselK1e", lambda x: _k(1, x))
BESSEL_K0 = _elementwise("litecl.BesselK0", lambda x: _k(0, x) * np.exp(-x))
BESSEL_K1 = _elementwise("litecl.BesselK1", lambda x: _k(1, x) * np.exp(-x))
