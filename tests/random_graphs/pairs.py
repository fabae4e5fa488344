"""Element-wise operators of several inputs."""

from collections.abc import Callable
from typing import Any

import numpy as np

from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary, compare, unary
from litecl.interpreter.ops.add_n import ADD_N
from litecl.interpreter.ops.prelu import PRELU
from litecl.interpreter.ops.select import SELECT, SELECT_V2
from litecl.random_graphs.elementwise import (
    NUMBERS,
    OPTIONS,
    QUANTIZED,
    activation,
    broadcastable,
    broadcasts,
    cast,
    dequantize,
    function,
    fused,
    integer_function,
    is_quantized,
    partner_of,
    plain,
    quantize,
    residual,
    swish,
    table,
)
from litecl.random_graphs.sketch import Sketch, T

_ARITHMETIC = (binary.ADD, binary.SUB, binary.MUL)
_COMPARISONS = (
    compare.EQUAL,
    compare.NOT_EQUAL,
    compare.LESS,
    compare.LESS_EQUAL,
    compare.GREATER,
    compare.GREATER_EQUAL,
)


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
    _two(s, op, x, partner_of(s, x), OPTIONS[op](fused(s, type_), **more))


def extreme(s: Sketch) -> None:
    """MAXIMUM and MINIMUM; quantized tensors have one scale."""
    op = s.one_of(binary.MAXIMUM, binary.MINIMUM)
    x = s.pick(*NUMBERS, *QUANTIZED)
    spec = s.spec(x)
    if spec.quantization is None:
        s.op(op, [x, partner_of(s, x)] if spec.type in NUMBERS else [x, s.like(x)])
        return
    partner = partner_of(s, x, broadcastable(s, spec.static_shape), spec.quantization)
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
        below = s.op(binary.ADD, [s.op(unary.ABS, [partner_of(s, x)]), s.const(np.float32(0.5))], binary.AddOptions())
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
        slope = partner_of(s, x, shape[-len(spec.static_shape) + 1 :])
        x, partner = x, slope
    elif op is binary.DIV:
        value = np.where(np.abs(s.random(spec.type, spec.static_shape[-1:])) < 60, 77, 5).astype(spec.dtype)
        by = None if plain(spec) else s.affine(spec.type, zero_point=0)
        partner = s.const(value, spec.type, by)
    else:
        partner = partner_of(s, x)
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
    s.op(op, [x, partner_of(s, x)] if s.chance(0.8) else [partner_of(s, x), x])


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
        fits = lambda c: broadcasts(spec.static_shape, c.static_shape)  # noqa: E731
        condition = (
            s.pick(T.BOOL, where=fits)
            if s.chance(0.6)
            else s.const(s.random(T.BOOL, broadcastable(s, spec.static_shape)))
        )
    s.op(op, [condition, a, b], None, [TensorSpec(spec.type, None, quantization=spec.quantization)])


FAMILIES: dict[str, tuple[Callable[[Sketch], None], ...]] = {
    "float": (activation, activation, function, function, swish, residual, arithmetic, arithmetic, extreme, division),
    "integer": (integer_function, arithmetic, extreme, division, sums, logic, comparison, choice, cast),
    "quantized": (table, table, arithmetic, arithmetic, extreme, pairs, quantize, dequantize, comparison),
    "mixed": (comparison, choice, cast, sums, quantize, dequantize, pairs, residual),
}
