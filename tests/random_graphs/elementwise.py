"""Families of nodes that work on each element: functions of one and of two, comparisons, choices, casts, scales."""

from typing import Any

import numpy as np

from litecl.delegate.ops.unary import CL_OPS
from litecl.interpreter.graph import Quantization, Shape, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary, unary
from litecl.interpreter.ops.cast import CAST, CastOptions
from litecl.interpreter.ops.gelu import GELU, GeluOptions
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU, LeakyReluOptions
from litecl.interpreter.ops.quantize import DEQUANTIZE, QUANTIZE
from litecl.interpreter.schema import ActivationFunctionType
from litecl.random_graphs.sketch import Sketch, T, Unfit

QUANTIZED = (T.INT8, T.UINT8, T.INT16)
NUMBERS = (T.FLOAT32, T.INT32, T.INT64)

_ACTIVATIONS = tuple(cl_op.op for cl_op in CL_OPS if cl_op.activates)
_POSITIVE = (unary.SQRT, unary.RSQRT, unary.LOG)
_FUNCTIONS = tuple(
    cl_op.op for cl_op in CL_OPS if not cl_op.activates and cl_op.op not in (*_POSITIVE, unary.LOGICAL_NOT)
)
_TABLES = (unary.ABS, unary.NEG, unary.EXP, unary.LOG, unary.RSQRT, *_ACTIVATIONS)
_FIXED = {  # scale and zero point of outputs that TFLite fixes, by operator and type
    (unary.LOGISTIC, T.INT8): (1 / 256, -128),
    (unary.LOGISTIC, T.UINT8): (1 / 256, 0),
    (unary.LOGISTIC, T.INT16): (1 / 32768, 0),
    (unary.TANH, T.INT8): (1 / 128, 0),
    (unary.TANH, T.UINT8): (1 / 128, 128),
    (unary.TANH, T.INT16): (1 / 32768, 0),
}
OPTIONS: dict[Op, type] = {
    binary.ADD: binary.AddOptions,
    binary.SUB: binary.SubOptions,
    binary.MUL: binary.MulOptions,
    binary.DIV: binary.DivOptions,
}


def fused(s: Sketch, type_: Any = T.FLOAT32) -> ActivationFunctionType:
    """Return a fused activation, mostly none."""
    a = ActivationFunctionType
    some = (a.RELU, a.RELU6, a.RELU_N1_TO_1, *((a.TANH,) if type_ == T.FLOAT32 else ()))
    return a(s.one_of(*some)) if s.chance(0.35) else a.NONE


def is_quantized(spec: TensorSpec) -> bool:
    """Return whether a tensor's integers represent real numbers."""
    return spec.quantization is not None


def plain(spec: TensorSpec) -> bool:
    """Return whether a tensor's elements are taken as they are."""
    return spec.quantization is None


def function_options(s: Sketch, op: Op) -> Any:
    """Return the options of a function of one element."""
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


def partner_of(s: Sketch, x: int, shape: Shape | None = None, by: Quantization | None = None) -> int:
    """Return a tensor that broadcasts against ``x``: one that is there, or a constant."""
    spec = s.spec(x)
    if by is None and shape is None and s.chance(0.5):
        fits = lambda other: plain(other) == plain(spec) and broadcasts(spec.static_shape, other.static_shape)  # noqa: E731
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
    """Return a shape that broadcasts to another, now and then one to which it broadcasts."""
    kept = [size if s.chance(0.6) else 1 for size in shape]
    kept = kept[int(s.rng.integers(0, len(shape) + 1)) :] if s.chance(0.5) else kept
    if len(kept) == len(shape) and s.chance(0.15):
        kept = [s.size(7) if size == 1 else k for size, k in zip(shape, kept, strict=True)]
    return tuple(kept)


def broadcasts(a: Shape, b: Shape) -> bool:
    return all(x == y or 1 in (x, y) for x, y in zip(a[::-1], b[::-1], strict=False))


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
