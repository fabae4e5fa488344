"""Elementwise functions as formulas of others."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from litecl.converter.lower.builder import Lowering
from litecl.converter.lower.expression import Expression, formula
from litecl.interpreter.ops import binary, unary
from litecl.interpreter.schema import TensorType

_E = Expression
_SELU_SCALE = 1.0507009873554805  # https://arxiv.org/abs/1706.02515
_SELU = _SELU_SCALE * 1.6732632423543772
# P. Godfrey, https://www.numericana.com/answer/info/godfrey.htm: Lanczos' approximation of the gamma function.
_LANCZOS_G = 7
_LANCZOS_BASE = 0.99999999999980993227684700473478
_LANCZOS = (
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)
_SHIFT = 6  # the expansion of the digamma function holds from here on
# M. Giles, "Approximating the erfinv function": coefficients of w - 2.5, and of sqrt(w) - 3.
_ERFINV_SMALL = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_ERFINV_LARGE = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)


def _polynomial(x: _E, coefficients: Sequence[float]) -> _E:
    """Evaluate a polynomial by Horner's rule, highest power first."""
    result = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result


def _lanczos(x: _E) -> tuple[_E, _E]:
    """Return log(t / (g + 1/2)) with t = x + g + 1/2, and the sum of Lanczos' series, for x >= 0."""
    total = x.constant(_LANCZOS_BASE)
    for k, coefficient in enumerate(_LANCZOS):
        total = coefficient / (x + (k + 1)) + total
    return (x / (_LANCZOS_G + 0.5) + 1).log(), total


def _lgamma(x: _E) -> _E:
    is_small = x.less(0.5)
    z = is_small.select(-x, x - 1)
    log_ratio, total = _lanczos(z)
    t = z + (_LANCZOS_G + 0.5)
    log_t = log_ratio + math.log(_LANCZOS_G + 0.5)
    value = (z + 0.5 - t / log_t) * log_t + (total.log() + math.log(2 * math.pi) / 2)
    part = x.abs() - x.abs().floor()  # sin(pi * x) has this period
    nearest = part.minimum(1 - part)
    reflected = math.log(math.pi) - (nearest * math.pi).unary(unary.SIN).log() - value
    return x.equals(-math.inf).select(x.constant(math.inf), is_small.select(reflected, value))


def _digamma(x: _E) -> _E:
    """Return the derivative of ``_lgamma``: shift upwards, then expand (https://dlmf.nist.gov/5.11.2)."""
    is_small = x.less(0.5)
    y = is_small.select(1 - x, x)
    far = y + _SHIFT
    inverse = 1 / far.square()
    value = far.log() - 0.5 / far - inverse * _polynomial(inverse, (1 / 252, -1 / 120, 1 / 12))
    for k in range(_SHIFT):
        value = value - 1 / (y + k)
    angle = (x - x.unary(unary.ROUND)) * math.pi
    reflected = value - math.pi / angle.unary(unary.SIN) * angle.unary(unary.COS)
    at_pole = angle.equals(0).select(x.constant(math.nan), reflected)
    return is_small.select(at_pole, value)


def _erfinv(x: _E) -> _E:
    w = -((1 - x) * (1 + x)).log()
    small, large = _polynomial(w - 2.5, _ERFINV_SMALL), _polynomial(w.sqrt() - 3, _ERFINV_LARGE)
    inside = w.less(5.0).select(small, large) * x
    return x.abs().equals(1.0).select(x * math.inf, inside)


def quantile_of_normal(p: _E) -> _E:
    """Return the quantile of the standard normal distribution."""
    return _erfinv(2 * p - 1) * math.sqrt(2)


def _unless_zero(x: _E, result: _E) -> _E:
    return x.equals(0).select(x.constant(0), result)


def _log1p(x: _E) -> _E:
    return (x + 1).log()


def _arc_tangent(y: _E, x: _E) -> _E:
    return y.binary(binary.ATAN2, x)


def _arc_tangent_of_two(y: _E, x: _E) -> _E:
    """Return the arc tangent; SELECT_V2 broadcasts the operands first, since LiteRT's kernel silently doesn't."""
    if y.value.static_shape is not None and y.value.static_shape == x.value.static_shape:
        return _arc_tangent(y, x)
    always = y.constant(True, TensorType.BOOL)
    return _arc_tangent(always.select(y, x), always.select(x, y))


def _side(x: _E) -> _E:
    """Return sqrt(1 - x * x), exact near the ends."""
    return ((1 - x) * (1 + x)).sqrt()


def _asinh(x: _E) -> _E:
    magnitude = x.abs()
    # log1p of a small number near 0, which adding 1 would lose.
    square = magnitude.square()
    return x.unary(unary.SIGN) * _log1p(magnitude + square / (1 + (square + 1).sqrt()))


def _sinh(x: _E) -> _E:
    return (x.exp() - (-x).exp()) * 0.5


def _truncate_div(x: _E, y: _E) -> _E:
    quotient = x / y
    return quotient if x.type != TensorType.FLOAT32 else _truncated(quotient)


def _truncated(x: _E) -> _E:
    return x.unary(unary.SIGN) * x.abs().floor()


def _truncate_mod(x: _E, y: _E) -> _E:
    return x - _truncate_div(x, y) * y


def _is_finite(x: _E) -> _E:
    return (x - x).equals(0)


def _left_shift(x: _E, y: _E) -> _E:
    return x * y.constant(2).binary(binary.POW, y)


def _bitwise_and(x: _E, y: _E) -> _E:
    """Return x & y: all bits but the last by a sum that can't overflow, the last by a product."""
    if x.type == TensorType.INT64:
        raise x.b.error("TFLite has no bitwise operators on int64; cast to int32")
    wide = [value.cast(TensorType.INT32) for value in (x, y)]
    halves = [value.binary(binary.RIGHT_SHIFT, 1) for value in wide]
    last = [value - half - half for value, half in zip(wide, halves, strict=True)]
    shared = halves[0] + halves[1] - halves[0].binary(binary.BITWISE_XOR, halves[1])
    return (shared + last[0] * last[1]).cast(x.type)


def _bitwise_or(x: _E, y: _E) -> _E:
    both = _bitwise_and(x, y).cast(TensorType.INT32)
    wide = x.cast(TensorType.INT32).binary(binary.BITWISE_XOR, y.cast(TensorType.INT32))
    return (wide + both).cast(x.type)


def _invert(x: _E) -> _E:
    ones = x.constant(np.invert(np.zeros((), x.type.dtype)))
    return ones - x if x.type == TensorType.INT64 else x.binary(binary.BITWISE_XOR, ones)


_FORMULAS: Mapping[str, Callable[..., _E]] = {
    "IsFinite": _is_finite,
    "IsInf": lambda x: x.abs().equals(math.inf),
    "Xlogy": lambda x, y: _unless_zero(x, x * y.log()),
    "Xlog1py": lambda x, y: _unless_zero(x, x * _log1p(y)),
    "Xdivy": lambda x, y: _unless_zero(x, x / y),
    "MulNoNan": lambda x, y: y.equals(0).select(x.constant(0), x * y),
    "TruncateDiv": _truncate_div,
    "TruncateMod": _truncate_mod,
    "Mod": _truncate_mod,
    "Lgamma": _lgamma,
    "Digamma": _digamma,
    "Erfinv": _erfinv,
    "Ndtri": quantile_of_normal,
    "Atan2": _arc_tangent_of_two,
    "Atan": lambda x: _arc_tangent(x, x.filled(1)),
    "Asin": lambda x: _arc_tangent(x, _side(x)),
    "Acos": lambda x: _arc_tangent(_side(x), x),
    "Sinh": _sinh,
    "Cosh": lambda x: (x.exp() + (-x).exp()) * 0.5,
    "Asinh": _asinh,
    "Acosh": lambda x: (x + ((x - 1) * (x + 1)).sqrt()).log(),
    "Atanh": lambda x: (_log1p(x) - (1 - x).log()) * 0.5,
    "ReluGrad": lambda dy, y: (y.constant(0)).less(y).select(dy, 0),
    "Relu6Grad": lambda dy, y: (y.constant(0)).less(y).select(y.less(6).select(dy, 0), 0),
    "EluGrad": lambda dy, y: y.less(0).select(dy * (y + 1), dy),
    "SeluGrad": lambda dy, y: y.less(0).select(dy * (y + _SELU), dy * _SELU_SCALE),
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
    "SqrtGrad": lambda y, dy: dy * 0.5 / y,
    "RsqrtGrad": lambda y, dy: dy * -0.5 * (y * y * y),
    "ReciprocalGrad": lambda y, dy: -dy * y * y,
    "InvGrad": lambda y, dy: -dy * y * y,
    "SoftplusGrad": lambda dy, x: dy * x.unary(unary.LOGISTIC),
    "SoftsignGrad": lambda dy, x: dy / (x.abs() + 1).square(),
    "LeftShift": _left_shift,
    "BitwiseAnd": _bitwise_and,
    "BitwiseOr": _bitwise_or,
    "Invert": _invert,
    "L2Loss": lambda x: x.square().sum(range(len(x.b.shape(x.value)))) * 0.5,
    "BiasAddGrad": lambda dy: dy.sum(range(len(dy.b.shape(dy.value)) - 1)),
    "ApproximateEqual": lambda x, y: (x - y).abs().less(float(x.b.node.attrs["tolerance"])),
    "LeakyReluGrad": lambda dy, x: (x.constant(0)).less(x).select(dy, dy * float(x.b.node.attrs["alpha"])),
    "Rint": lambda x: x.unary(unary.ROUND),
}

LOWERINGS: dict[str, Lowering] = {name: formula(body) for name, body in _FORMULAS.items()}
