"""ADD, SUB, MUL, DIV and comparisons of quantized tensors."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Launch, Record, Refusal, Step
from litecl.delegate.kit import schedule
from litecl.delegate.kit.claims import BYTES, C_TYPES, QUANTIZED, Specs, given, typed
from litecl.delegate.kit.loops import periodic
from litecl.delegate.ops.binary import compared, together
from litecl.delegate.ops.quantized.table import looked_up_pairs, pairs, results
from litecl.delegate.quantized.integers import Bounds, Scale, bounded, bounds_of, per_tensor, scale, words, zero_point
from litecl.interpreter.arithmetic import fixed_math, fixed_point
from litecl.interpreter.arithmetic.quantized_binary import powers_of_two
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary, compare
from litecl.interpreter.schema import TensorType

_LEFT_SHIFT = {1: 20, 2: 15}  # of operands, to keep rounding errors small, by bytes of an element (add.cc)
_COMPARED_SHIFT = 8  # of operands that are compared (comparisons.cc)

# Of LINEAR sums: bits of a factor and of its lower part, and the largest shift for which the constant term fits.
_FACTOR_BITS, _LOW_BITS, _MOST_SHIFT = 28, 14, 36
_ANY = 1 << 44  # more than any constant term


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    specs = (given(inputs, 0), given(inputs, 1), outputs[0])
    return (
        typed(specs, QUANTIZED, quantized=True)
        or per_tensor(*specs)
        or words(*specs)
        or (_shifted(specs) if getattr(options, "pot_scale_int16", False) else None)
        or bounded(options)
    )


def _shifted(specs: Sequence[TensorSpec]) -> Refusal | None:
    """Refuse 16-bit operands whose scales are all powers of two, which TFLite shifts instead."""
    powers = specs[0].type == TensorType.INT16 and powers_of_two(*specs) is not None
    return Refusal("16-bit scales that are powers of two") if powers else None


@dataclass(frozen=True)
class ScaledPair(Record):
    """Factors of two operands and their result: zero points are subtracted, then values shifted left and scaled."""

    a_zero: int
    b_zero: int
    left_shift: int
    a: Scale
    b: Scale
    c: Scale
    bounds: Bounds


@dataclass(frozen=True)
class LinearSum(Record):
    """The sum of two bytes as a linear form. high, low: the upper and the lower 14 bits of both factors, those of b
    in the upper word. base, rest: the constant term, base 2^14 + rest."""

    high: int
    low: int
    base: int
    rest: int
    shift: int
    least: int
    most: int


def _sum_scales(a: float, b: float, c: float, bits: int) -> tuple[int, Scale, Scale, Scale]:
    twice = 2 * max(a, b)
    return bits, scale(a / twice), scale(b / twice), scale(twice / ((1 << bits) * c))


def _product_scales(a: float, b: float, c: float, bits: int) -> tuple[int, Scale, Scale, Scale]:
    factor = np.float32(a) * np.float32(b) / np.float32(c)  # in float32, as in TFLite
    return 0, scale(1.0), scale(1.0), scale(float(factor))


def _scales(op: Op, call: Call, *, sums: bool) -> ScaledPair:
    """Return the scales of operands of any type."""
    a, b, c = call.input(0).spec, call.input(1).spec, call.outputs[0].spec
    x, y, z = (float(fixed_point.scale_of(spec)) for spec in (a, b, c))
    factors = (_sum_scales if sums else _product_scales)(x, y, z, _LEFT_SHIFT[c.dtype.itemsize])
    return ScaledPair(zero_point(a), zero_point(b), *factors, bounds_of(call.options, c))


def _linear(op: Op, call: Call, sign: int) -> LinearSum | None:
    """Return the linear form of a sum of bytes; None if no constant term makes it equal TFLite's sum for all pairs."""
    a, b, c = call.input(0).spec, call.input(1).spec, call.outputs[0].spec
    if c.type not in BYTES or not a.type == b.type == c.type:
        return None
    x, y, z = (float(fixed_point.scale_of(spec)) for spec in (a, b, c))
    shift = min(_MOST_SHIFT, _FACTOR_BITS - math.ceil(math.log2(max(x, y) / z)))
    if shift < _LOW_BITS:
        return None
    bounds = bounds_of(call.options, c)
    factors = [round(factor * 2.0**shift) for factor in (x / z, sign * y / z)]
    left, right = pairs(a, b)
    wanted = results(op, call.options, [a, b], c, [left, right]).astype(np.int64)
    sums = left.astype(np.int64) * factors[0] + right.astype(np.int64) * factors[1]
    # The constant term must lift each sum to the expected step, and not to the next one unless that is clamped away.
    least = int(np.where(wanted > bounds.low, (wanted << shift) - sums, -_ANY).max())
    most = int(np.where(wanted < bounds.high, (wanted + 1 << shift) - sums - 1, _ANY).min())
    if least > most or max(-least, most) >= _ANY:
        return None
    constant = (least + most) // 2
    high, low = (_pair(*part) for part in zip(*(divmod(factor, 1 << _LOW_BITS) for factor in factors), strict=True))
    return LinearSum(high, low, *divmod(constant, 1 << _LOW_BITS), shift - _LOW_BITS, bounds.low, bounds.high)


def _pair(low: int, high: int) -> int:
    """Join two 16-bit words into a signed int."""
    return int(np.array([low, high], np.int16).view(np.int32)[0])


def _cl_op(op: Op, function: str, sign: int | None) -> ClOp:
    """Return the operator of a sum or a product. sign: of a sum's second operand; None for a product."""

    def lower(call: Call) -> list[Step]:
        type_ = call.outputs[0].spec.type
        defines: dict[str, str | int | float] = {"OP": function, "T": C_TYPES[type_]}
        if type_ == TensorType.INT16:
            defines["WORDS"] = 1
        linear = None if sign is None else _linear(op, call, sign)
        if linear is not None:
            defines = {"LINEAR": 1, "T": defines["T"]}
        return [_launch(call, linear or _scales(op, call, sums=sign is not None), defines)]

    return ClOp(op, claim=_claim, lower=lower)


def _launch(call: Call, scales: ScaledPair | LinearSum, defines: dict[str, str | int | float], *others: Arg) -> Launch:
    a, b, c = call.input(0), call.input(1), call.outputs[0]
    a, b, nest = together(a, b, c)
    nest = periodic(nest, call.target)
    share = schedule.elements("quantized_binary", c.spec.size, call.target)
    args: tuple[Arg, ...] = (a, b, c, nest.table, scales, *share.args, *nest.arguments, *others)
    return share.launch("quantized_binary", args, defines | nest.straight(call.target), c.spec.size)


def _claim_division(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    if refusal := _claim(options, inputs, outputs):
        return refusal
    b = given(inputs, 1)
    by_zero = b.data is not None and bool((b.data == zero_point(b)).any())
    return Refusal("a divisor of 0") if by_zero else None  # which the CPU reports


def _divide(call: Call) -> list[Step]:
    """Divide words by reciprocals; quotients of bytes are a table."""
    a, b, c = call.input(0).spec, call.input(1).spec, call.outputs[0].spec
    if c.type in BYTES:
        return [looked_up_pairs(call, _quotients(call))]
    x, y, z = (np.float32(fixed_point.scale_of(spec)) for spec in (a, b, c))
    factor = scale(float(x / (y * z)))  # in float32, as in TFLite
    one = scale(1.0)
    scales = ScaledPair(zero_point(a), zero_point(b), 0, one, one, factor, bounds_of(call.options, c))
    inverses, _ = fixed_math.reciprocal(np.arange(1, (1 << 15) + 1), 31)
    table = Const(np.concatenate([[0], inverses]).astype(np.int32))
    return [_launch(call, scales, {"DIVIDES": 1, "T": C_TYPES[c.type], "WORDS": 1}, table)]


def _quotients(call: Call) -> Array:
    """Return the quotients of all pairs of bytes. Divisions by 0, which a kernel cannot report, yield the bound on the
    dividend's side, and 0 / 0 yields 0.
    """
    a, b, c = call.input(0).spec, call.input(1).spec, call.outputs[0].spec
    left, right = pairs(a, b)
    by_zero = right == zero_point(b)
    quotients = results(binary.DIV, call.options, [a, b], c, [left, np.where(by_zero, right ^ 1, right)])
    bounds, dividend = bounds_of(call.options, c), left.astype(int) - zero_point(a)
    ends = np.select(
        [dividend > 0, dividend < 0], [bounds.high, bounds.low], np.clip(bounds.zero, bounds.low, bounds.high)
    )
    return np.where(by_zero, ends, quotients).astype(quotients.dtype)


def _comparison(op: Op) -> ClOp:
    """Compare real numbers, each scaled to fixed point. Order comparisons of 16-bit elements compare these directly."""
    by_order = op not in (compare.EQUAL, compare.NOT_EQUAL)

    def claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
        a, b = given(inputs, 0), given(inputs, 1)
        if refusal := typed((a, b), QUANTIZED, quantized=True):
            return refusal
        return None if by_order and a.type == TensorType.INT16 else per_tensor(a, b)

    def lower(call: Call) -> list[Step]:
        a, b = call.input(0).spec, call.input(1).spec
        if by_order and a.type == TensorType.INT16:
            return [compared(call, op)]
        x, y = (scale(float(fixed_point.scale_of(spec))) for spec in (a, b))
        scales = ScaledPair(zero_point(a), zero_point(b), _COMPARED_SHIFT, x, y, scale(1.0), Bounds(0, 0, 1))
        defines: dict[str, str | int | float] = {"OP": op.name, "COMPARES": 1, "T": C_TYPES[a.type], "OUT": "uchar"}
        return [_launch(call, scales, defines)]

    return ClOp(op, claim=claim, lower=lower)


CL_OPS = (
    _cl_op(binary.ADD, "ADDED", 1),
    _cl_op(binary.SUB, "SUBTRACTED", -1),
    _cl_op(binary.MUL, "MULTIPLIED", None),
    ClOp(binary.DIV, claim=_claim_division, lower=_divide),
    *(
        _comparison(op)
        for op in (
            *(compare.EQUAL, compare.NOT_EQUAL),
            *(compare.LESS, compare.LESS_EQUAL, compare.GREATER, compare.GREATER_EQUAL),
        )
    ),
)
