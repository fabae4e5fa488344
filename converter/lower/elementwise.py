"""Elementwise arithmetic, comparisons and functions."""

import math
from collections.abc import Mapping

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.expression import Expression, formula
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary, compare, unary
from litecl.interpreter.ops.add_n import ADD_N
from litecl.interpreter.ops.binary import DIV
from litecl.interpreter.ops.cast import BITCAST, CAST, CastOptions
from litecl.interpreter.ops.gelu import GELU, GeluOptions
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU, LeakyReluOptions
from litecl.interpreter.ops.prelu import PRELU
from litecl.interpreter.ops.select import SELECT, SELECT_V2, WHERE
from litecl.interpreter.ops.strings import STRING_JOIN
from litecl.interpreter.ops.unary import HARD_SWISH, RELU_N1_TO_1, SQUARE
from litecl.interpreter.schema import TensorType

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805  # https://arxiv.org/abs/1706.02515

# TensorFlow operators that map to one TFLite operator with the same operands.
_SAME: Mapping[str, Op] = {
    "Abs": unary.ABS,
    "Neg": unary.NEG,
    "Sign": unary.SIGN,
    "Sqrt": unary.SQRT,
    "Rsqrt": unary.RSQRT,
    "Exp": unary.EXP,
    "Log": unary.LOG,
    "Sin": unary.SIN,
    "Cos": unary.COS,
    "Ceil": unary.CEIL,
    "Floor": unary.FLOOR,
    "Round": unary.ROUND,
    "LogicalNot": unary.LOGICAL_NOT,
    "Relu": unary.RELU,
    "Relu6": unary.RELU6,
    "Sigmoid": unary.LOGISTIC,
    "Tanh": unary.TANH,
    "Elu": unary.ELU,
    "BiasAdd": binary.ADD,
    "BiasAddV1": binary.ADD,
    "Sub": binary.SUB,
    "Mul": binary.MUL,
    "Maximum": binary.MAXIMUM,
    "Minimum": binary.MINIMUM,
    "Pow": binary.POW,
    "SquaredDifference": binary.SQUARED_DIFFERENCE,
    "FloorDiv": binary.FLOOR_DIV,
    "FloorMod": binary.FLOOR_MOD,
    "LogicalAnd": binary.LOGICAL_AND,
    "LogicalOr": binary.LOGICAL_OR,
    "BitwiseXor": binary.BITWISE_XOR,
    "RightShift": binary.RIGHT_SHIFT,
    "Equal": compare.EQUAL,
    "NotEqual": compare.NOT_EQUAL,
    "Greater": compare.GREATER,
    "GreaterEqual": compare.GREATER_EQUAL,
    "Less": compare.LESS,
    "LessEqual": compare.LESS_EQUAL,
    "Select": SELECT,
    "SelectV2": SELECT_V2,
    "Where": WHERE,
    "AddN": ADD_N,
    "Bitcast": BITCAST,
}


def _same(op: Op) -> Lowering:
    return lambda b: b.op(op, b.node.inputs)


def _add(b: Builder) -> Value:
    """Adding strings concatenates them."""
    return b.op(STRING_JOIN if b.node.output.type == TensorType.STRING else binary.ADD, b.node.inputs)


def _square(b: Builder) -> Value:
    x = b.node.input(0)
    return b.op(SQUARE, [x]) if x.type == TensorType.FLOAT32 else b.op(binary.MUL, [x, x])


def _divide(b: Builder) -> Value:
    x, y = b.node.input(0), b.node.input(1)
    if y.data is not None and y.type == TensorType.FLOAT32 and np.all(y.data != 0):
        return b.op(binary.MUL, [x, b.const(1 / y.data.astype(np.float64), np.float32)])
    return b.op(DIV, [x, y])


def _divide_no_nan(b: Builder) -> Value:
    x, y = b.node.input(0), b.node.input(1)
    is_zero = b.op(compare.EQUAL, [y, b.scalar(0)], type=TensorType.BOOL, shape=y.shape)
    return b.op(SELECT_V2, [is_zero, b.scalar(0), b.op(DIV, [x, y])])


def _cast(b: Builder) -> Value:
    x = b.node.input(0)
    to = b.node.output.type
    return b.op(CAST, [x], CastOptions(x.type, to))


def _leaky_relu(b: Builder) -> Value:
    return b.op(LEAKY_RELU, b.node.inputs, LeakyReluOptions(float(b.node.attrs["alpha"])))


def lower_gelu(b: Builder) -> Value:
    """Lower to GELU."""
    return b.op(GELU, b.node.inputs, GeluOptions(bool(b.node.attrs["approximate"])))


def lower_hard_swish(b: Builder) -> Value:
    """Lower to HARD_SWISH."""
    return b.op(HARD_SWISH, b.node.inputs)


def lower_prelu(b: Builder) -> Value:
    """Lower to PRELU, whose slope has the opposite sign."""
    # relu(x) + c * relu(-x) is -c * x for negative x.
    return b.op(PRELU, [b.node.input(0), b.const(-b.known(1, "slope"))])


def _log1p_of_exp(x: Expression) -> Expression:
    """Return log(1 + exp(-|x|)), which neither overflows nor loses small powers beside 1."""
    power = (-x.abs()).exp()
    total = power + 1
    return total.log() + (power - (total - 1))  # the rounding error of the sum


def _softplus(x: Expression) -> Expression:
    return x.unary(unary.RELU) + _log1p_of_exp(x)


def _log_sigmoid(x: Expression) -> Expression:
    return x.minimum(0) - _log1p_of_exp(x)


def _tanh_of_softplus(x: Expression) -> Expression:
    # tanh(max(x, 0) - log(sigmoid(|x|))) needs half the operators and is within 6e-8, which a factor of x scales.
    logarithm = x.abs().unary(unary.LOGISTIC).log()
    return (x.unary(unary.RELU) - logarithm).unary(unary.TANH)


lower_log_sigmoid = formula(_log_sigmoid)
lower_tanh_of_softplus = formula(_tanh_of_softplus)


def lower_relu_n1_to_1(b: Builder) -> Value:
    """Lower to RELU_N1_TO_1."""
    return b.op(RELU_N1_TO_1, b.node.inputs)


def lower_l2_normalization(b: Builder) -> Value:
    """Lower to L2_NORMALIZATION."""
    return b.op(L2_NORMALIZATION, b.node.inputs)


def _softsign(b: Builder) -> Value:
    x = b.node.input(0)
    return b.op(DIV, [x, b.op(binary.ADD, [b.op(unary.ABS, [x]), b.scalar(1)])])


def _selu(b: Builder) -> Value:
    # ELU is negative exactly where its operand is; there SELU is alpha times it.
    elu = b.op(unary.ELU, b.node.inputs)
    return b.op(binary.MUL, [b.op(LEAKY_RELU, [elu], LeakyReluOptions(_SELU_ALPHA)), b.scalar(_SELU_SCALE)])


def _plus(number: float, then: Op) -> Lowering:
    return lambda b: b.op(then, [b.op(binary.ADD, [b.node.input(0), b.scalar(number)])])


def _expm1(b: Builder) -> Value:
    return b.op(binary.SUB, [b.op(unary.EXP, b.node.inputs), b.scalar(1)])


def _reciprocal(b: Builder) -> Value:
    return b.op(DIV, [b.scalar(1), b.node.input(0)])


def _tan(b: Builder) -> Value:
    return b.op(DIV, [b.op(unary.SIN, b.node.inputs), b.op(unary.COS, b.node.inputs)])


def _clip(b: Builder) -> Value:
    x, low, high = (b.node.input(i) for i in range(3))
    return b.op(binary.MINIMUM, [b.op(binary.MAXIMUM, [x, low]), high])


def _is_nan(b: Builder) -> Value:
    return b.op(compare.NOT_EQUAL, [b.node.input(0), b.node.input(0)])


def _erf(b: Builder) -> Value:
    """2 * gelu(x * sqrt 2) / (x * sqrt 2) - 1, without dividing 0 by 0."""
    scaled = b.op(binary.MUL, [b.node.input(0), b.scalar(math.sqrt(2.0))])
    is_zero = b.op(compare.EQUAL, [scaled, b.scalar(0)], type=TensorType.BOOL)
    divisor = b.op(SELECT_V2, [is_zero, b.scalar(1e-20), scaled])
    half = b.op(DIV, [b.op(GELU, [divisor], GeluOptions(False)), divisor])
    return b.op(binary.SUB, [b.op(binary.MUL, [half, b.scalar(2)]), b.scalar(1)])


def _erfc(b: Builder) -> Value:
    return b.op(binary.SUB, [b.scalar(1), _erf(b)])


LOWERINGS: dict[str, Lowering] = {name: _same(op) for name, op in _SAME.items()} | {
    **dict.fromkeys(("Add", "AddV2"), _add),
    "Square": _square,
    "RealDiv": _divide,
    "Div": _divide,
    "DivNoNan": _divide_no_nan,
    "Cast": _cast,
    "LeakyRelu": _leaky_relu,
    "Softplus": formula(_softplus),
    "Softsign": _softsign,
    "Selu": _selu,
    "Log1p": _plus(1, unary.LOG),
    "Expm1": _expm1,
    "Reciprocal": _reciprocal,
    "Inv": _reciprocal,
    "Tan": _tan,
    "ClipByValue": _clip,
    "IsNan": _is_nan,
    "Erf": _erf,
    "Erfc": _erfc,
}
