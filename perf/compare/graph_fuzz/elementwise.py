"""Families of nodes that work on each element: functions of one and of two, comparisons, choices, casts, scales."""

from collections.abc import Callable
from typing import Any

import numpy as np

from litecl.interpreter.graph import Quantization, Shape, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary, compare, unary
from litecl.interpreter.ops.add_n import ADD_N
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.gelu import GELU, GeluOptions
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU, LeakyReluOptions
from litecl.interpreter.ops.prelu import PRELU
from litecl.interpreter.ops.quantize import DEQUANTIZE, QUANTIZE
from litecl.interpreter.ops.select import SELECT, SELECT_V2
from litecl.interpreter.schema import ActivationFunctionType
from litecl.perf.compare.graph_fuzz.sketch import Sketch, T, Unfit

QUANTIZED = (T.INT8, T.UINT8, T.INT16)
NUMBERS = (T.FLOAT32, T.INT32, T.INT64)

_ACTIVATIONS = (
    unary.RELU,
    unary.RELU6,
    unary.RELU_0_TO_1,
    unary.RELU_N1_TO_1,
    unary.LOGISTIC,
    unary.TANH,
    unary.HARD_SWISH,
    unary.ELU,
    GELU,
    LEAKY_RELU,
)
_FUNCTIONS = (
    unary.ABS,
    unary.NEG,
    unary.SIGN,
    unary.SQUARE,
    unary.SIN,
    unary.COS,
    unary.CEIL,
    unary.FLOOR,
    unary.ROUND,
    unary.EXP,
)
_POSITIVE = (unary.SQRT, unary.RSQRT, unary.LOG)
_TABLES = (unary.ABS, unary.NEG, unary.EXP, unary.LOG, unary.RSQRT, *_ACTIVATIONS)
_FIXED = {  # scale and zero point of outputs that TFLite fixes, by operator and type
    (unary.LOGISTIC, T.INT8): (1 / 256, -128),
    (unary.LOGISTIC, T.UINT8): (1 / 256, 0),
    (unary.LOGISTIC, T.INT16): (1 / 32768, 0),
    (unary.TANH, T.INT8): (1 / 128, 0),
    (unary.TANH, T.UINT8): (1 / 128, 128),
    (unary.TANH, T.INT16): (1 / 32768, 0),
}
_OPTIONS: dict[Op, type] = {
    binary.ADD: binary.AddOptions,
    binary.SUB: binary.SubOptions,
    binary.MUL: binary.MulOptions,
    binary.DIV: binary.DivOptions,
}
_ARITHMETIC = (binary.ADD, binary.SUB, binary.MUL)
_COMPARISONS = (
    compare.EQUAL,
    compare.NOT_EQUAL,
    compare.LESS,
    compare.LESS_EQUAL,
    compare.GREATER,
    compare.GREATER_EQUAL,
)


def fused(s: Sketch, type_: Any = T.FLOAT32) -> ActivationFunctionType:
    """A fused activation, mostly none."""
    a = ActivationFunctionType
    some = (a.RELU, a.RELU6, a.RELU_N1_TO_1, *((a.TANH,) if type_ == T.FLOAT32 else ()))
    return a(s.one_of(*some)) if s.chance(0.35) else a.NONE


def is_quantized(spec: TensorSpec) -> bool:
    """Whether a tensor's integers stand for real numbers."""
    return spec.quantization is not None


def plain(spec: TensorSpec) -> bool:
    """Whether a tensor's elements stand for themselves."""
    return spec.quantization is None


def function_options(s: Sketch, op: Op) -> Any:
    """The options of a function of one element."""
    if op is GELU:
        return GeluOptions(s.chance(0.5))
    return LeakyReluOptions(float(s.one_of(0.1, 0.3, -0.5, 1.5))) if op is LEAKY_RELU else None


def activation(s: Sketch) -> None:
    """An activation of a float tensor."""
    op = s.one_of(*_ACTIVATIONS)
    s.op(op, [s.pick(T.FLOAT32)], function_options(s, op))


def function(s: Sketch) -> None:
    """A function of a float tensor's elements; those of positive numbers of what is made positive."""
    op = s.one_of(*_FUNCTIONS, *_POSITIVE)
    x = s.pick(T.FLOAT32)
    if op in _POSITIVE:
        x = s.op(binary.ADD, [s.op(unary.ABS, [x]), s.const(np.float32(0.25))], binary.AddOptions())
    s.op(op, [x])


def integer_function(s: Sketch) -> None:
    """A function of an integer's or a truth value's elements."""
    op, types = s.one_of(
        (unary.ABS, (T.INT32,)),
        (unary.NEG, (T.INT32, T.INT64)),
        (unary.SIGN, (T.INT32,)),
        (unary.LOGICAL_NOT, (T.BOOL,)),
    )
    s.op(op, [s.pick(*types)])


def table(s: Sketch) -> None:
    """A function of a quantized tensor's elements."""
    op = s.one_of(*_TABLES)
    x = s.pick(*QUANTIZED, where=is_quantized)
    type_ = s.spec(x).type
    options = function_options(s, op)
    if (op, type_) in _FIXED:
        scale, zero = _FIXED[op, type_]
        by = s.affine(type_, scale, zero)
        s.op(op, [x], options, [TensorSpec(type_, None, quantization=by)])
    else:
        s.scaled(op, [x], options, type_)


def swish(s: Sketch) -> None:
    """x sigmoid(x), of what may be fused into its producer."""
    x = s.pick(T.FLOAT32, recent=0.9)
    pair = [x, s.op(unary.LOGISTIC, [x])]
    s.op(binary.MUL, pair if s.chance(0.5) else pair[::-1], binary.MulOptions())


def residual(s: Sketch) -> None:
    """The sum of two tensors of one shape, then perhaps an activation."""
    x = s.pick(T.FLOAT32, recent=0.9)
    pair = [x, s.like(x)]
    s.op(binary.ADD, pair if s.chance(0.5) else pair[::-1], binary.AddOptions(fused(s)))
    if s.chance(0.4):
        activation(s)


def _partner(s: Sketch, x: int, shape: Shape | None = None, by: Quantization | None = None) -> int:
    """A tensor that broadcasts against ``x``: one that is there, or a constant."""
    spec = s.spec(x)
    if by is None and shape is None and s.chance(0.5):
        fits = lambda other: plain(other) == plain(spec) and _broadcasts(spec.static_shape, other.static_shape)  # noqa: E731
        try:
            return s.pick(spec.type, where=fits, recent=0.2)
        except Unfit:
            pass
    shape = broadcastable(s, spec.static_shape) if shape is None else shape
    by = (s.affine(spec.type) if by is None else by) if spec.quantization is not None else None
    value = s.random(spec.type, shape)
    if spec.type == T.FLOAT32 and s.chance(0.3):
        value = np.asarray(s.one_of(np.float32(0.5), np.float32(2), np.float32(-1)))
    return s.const(value, spec.type, by)


def broadcastable(s: Sketch, shape: Shape) -> Shape:
    """A shape that broadcasts to another, now and then one to which it broadcasts."""
    kept = [size if s.chance(0.6) else 1 for size in shape]
    kept = kept[int(s.rng.integers(0, len(shape) + 1)) :] if s.chance(0.5) else kept
    if len(kept) == len(shape) and s.chance(0.15):
        kept = [s.size(7) if size == 1 else k for size, k in zip(shape, kept, strict=True)]
    return tuple(kept)


def _broadcasts(a: Shape, b: Shape) -> bool:
    return all(x == y or 1 in (x, y) for x, y in zip(a[::-1], b[::-1], strict=False))


def _two(s: Sketch, op: Op, x: int, y: int, options: Any = None) -> None:
    inputs = [x, y] if s.chance(0.75) else [y, x]
    if s.spec(x).quantization is None:
        s.op(op, inputs, options)
    else:
        s.scaled(op, inputs, options, s.spec(x).type)


def arithmetic(s: Sketch) -> None:
    """Sums, differences and products of numbers or of quantized tensors."""
    op = s.one_of(*_ARITHMETIC)
    types = (*NUMBERS, *QUANTIZED)
    x = s.pick(*types, where=lambda spec: is_quantized(spec) == (spec.type in QUANTIZED))
    type_ = s.spec(x).type
    more = {"pot_scale_int16": False} if type_ == T.INT16 and op is not binary.MUL else {}
    _two(s, op, x, _partner(s, x), _OPTIONS[op](fused(s, type_), **more))


def extreme(s: Sketch) -> None:
    """MAXIMUM and MINIMUM; quantized tensors have one scale."""
    op = s.one_of(binary.MAXIMUM, binary.MINIMUM)
    x = s.pick(*NUMBERS, *QUANTIZED)
    spec = s.spec(x)
    if spec.quantization is None:
        s.op(op, [x, _partner(s, x)] if spec.type in NUMBERS else [x, s.like(x)])
        return
    partner = _partner(s, x, broadcastable(s, spec.static_shape), spec.quantization)
    s.op(op, [x, partner], None, [TensorSpec(spec.type, None, quantization=spec.quantization)])


def division(s: Sketch) -> None:
    """Divisions and remainders, by constants without zeros (floats also by what is kept off zero), and powers."""
    op = s.one_of(binary.DIV, binary.FLOOR_DIV, binary.FLOOR_MOD, binary.POW, binary.ATAN2)
    floats = op in (binary.POW, binary.ATAN2)
    x = s.pick(T.FLOAT32) if floats else s.pick(T.FLOAT32, T.INT32, T.INT64)
    spec = s.spec(x)
    divisor = s.random(spec.type, broadcastable(s, spec.static_shape))
    divisor = np.where(np.abs(divisor) < 0.5, spec.dtype.type(2), divisor).astype(spec.dtype)
    if op is binary.POW:
        x = s.op(binary.ADD, [s.op(unary.ABS, [x]), s.const(np.float32(0.125))], binary.AddOptions())
        divisor = np.clip(divisor, -2, 2)
    options = binary.DivOptions(fused(s, spec.type)) if op is binary.DIV else None
    if spec.type == T.FLOAT32 and op is binary.DIV and s.chance(0.3):
        below = s.op(binary.ADD, [s.op(unary.ABS, [_partner(s, x)]), s.const(np.float32(0.5))], binary.AddOptions())
        s.op(op, [x, below], options)
    else:
        s.op(op, [x, s.const(divisor)], options)


def pairs(s: Sketch) -> None:
    """Functions of two quantized bytes, and of two floats or integers by the same name."""
    op = s.one_of(binary.SQUARED_DIFFERENCE, PRELU, binary.DIV)
    x = s.pick(T.FLOAT32, T.INT32, T.INT8, T.UINT8, where=lambda spec: is_quantized(spec) == (spec.type in QUANTIZED))
    spec = s.spec(x)
    if op is PRELU:
        shape = (1,) * (len(spec.static_shape) - 2) + spec.static_shape[-1:] if len(spec.static_shape) > 1 else ()
        slope = _partner(s, x, shape[-len(spec.static_shape) + 1 :])
        x, partner = x, slope
    elif op is binary.DIV:
        value = np.where(np.abs(s.random(spec.type, spec.static_shape[-1:])) < 60, 77, 5).astype(spec.dtype)
        by = None if plain(spec) else s.affine(spec.type, zero_point=0)
        partner = s.const(value, spec.type, by)
    else:
        partner = _partner(s, x)
    options = binary.DivOptions() if op is binary.DIV else None
    if plain(spec):
        s.op(op, [x, partner], options)
    else:
        s.scaled(op, [x, partner], options, spec.type)


def comparison(s: Sketch) -> None:
    """A comparison of numbers, bytes or truth values."""
    op = s.one_of(*_COMPARISONS)
    x = s.pick(*NUMBERS, T.INT8, T.UINT8, T.BOOL)
    _two_plain(s, op, x)


def logic(s: Sketch) -> None:
    """AND, OR and XOR."""
    op, types = s.one_of(
        (binary.LOGICAL_AND, (T.BOOL,)),
        (binary.LOGICAL_OR, (T.BOOL,)),
        (binary.BITWISE_XOR, (T.INT32, T.INT8, T.UINT8)),
    )
    _two_plain(s, op, s.pick(*types, where=lambda spec: op is not binary.BITWISE_XOR or plain(spec)))


def _two_plain(s: Sketch, op: Op, x: int) -> None:
    s.op(op, [x, _partner(s, x)] if s.chance(0.8) else [_partner(s, x), x])


def sums(s: Sketch) -> None:
    """ADD_N of tensors of one shape."""
    x = s.pick(T.FLOAT32, T.INT32)
    s.op(ADD_N, [x, *(s.like(x) for _ in range(int(s.rng.integers(0, 4))))])


def choice(s: Sketch) -> None:
    """SELECT and SELECT_V2 by a condition that is there or compared now."""
    a = s.pick()
    spec = s.spec(a)
    rank = len(spec.static_shape)
    if s.chance(0.5):
        shape = spec.static_shape if s.chance(0.6) or not rank else spec.static_shape[:1]
        op, condition = SELECT, s.const(s.random(T.BOOL, shape))
        if s.chance(0.6):
            condition = s.pick(T.BOOL, where=lambda c: c.shape == shape)
        b = s.like(a)
    else:
        op, b = SELECT_V2, s.like(a)
        fits = lambda c: _broadcasts(spec.static_shape, c.static_shape)  # noqa: E731
        condition = (
            s.pick(T.BOOL, where=fits)
            if s.chance(0.6)
            else s.const(s.random(T.BOOL, broadcastable(s, spec.static_shape)))
        )
    s.op(op, [condition, a, b], None, [TensorSpec(spec.type, None, quantization=spec.quantization)])


def cast(s: Sketch) -> None:
    """CAST between all types of elements."""
    x = s.pick(where=plain)
    to = s.one_of(T.FLOAT32, T.FLOAT32, T.INT32, T.INT64, T.BOOL, T.INT8, T.UINT8, T.INT16)
    s.op(CAST, [x], CastOptions(s.spec(x).type, to), [TensorSpec(to, None)])


def quantize(s: Sketch) -> None:
    """QUANTIZE of floats and of integers of another scale."""
    x = s.pick(T.FLOAT32, *QUANTIZED, where=lambda spec: spec.type == T.FLOAT32 or is_quantized(spec))
    s.scaled(QUANTIZE, [x], None, s.one_of(*(t for t in QUANTIZED if t in s.types or s.chance(0.3))) or T.INT8)


def dequantize(s: Sketch) -> None:
    """DEQUANTIZE."""
    s.op(DEQUANTIZE, [s.pick(*QUANTIZED, where=is_quantized)])


FAMILIES: dict[str, tuple[Callable[[Sketch], None], ...]] = {
    "float": (activation, activation, function, function, swish, residual, arithmetic, arithmetic, extreme, division),
    "integer": (integer_function, arithmetic, extreme, division, sums, logic, comparison, choice, cast),
    "quantized": (table, table, arithmetic, arithmetic, extreme, pairs, quantize, dequantize, comparison),
    "mixed": (comparison, choice, cast, sums, quantize, dequantize, pairs, residual),
}
