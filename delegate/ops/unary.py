"""Element-wise functions of one input, including activations."""

from collections.abc import Callable
from typing import Any

from litecl.delegate.cl_op import Activation, Call, ClOp, Launch, Step
from litecl.delegate.kit.claims import C_TYPES, takes
from litecl.delegate.kit.schedule import elements
from litecl.interpreter.op import Op
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.gelu import GELU, GeluOptions
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU, LeakyReluOptions
from litecl.interpreter.schema import TensorType


def _launch(call: Call, function: str, activation: Activation) -> Launch:
    (y,) = call.outputs
    share = elements("unary", y.spec.size, call.target)
    defines = {"T": C_TYPES[y.spec.type], "OP": function, **activation.defines}
    args = (call.input(0), y, *share.args, *activation.bounds)
    return share.launch("unary", args, defines, y.spec.size)


def _function(op: Op, *others: TensorType, of_others: str | None = None, chains: bool = False) -> ClOp:
    """Return an operator that functions.h knows by its name, and for types other than float by ``of_others``.

    chains: whether it is a step of chain.cl, too.
    """

    def lower(call: Call) -> list[Step]:
        floating = call.input(0).spec.type == TensorType.FLOAT32
        return [_launch(call, op.name if floating or of_others is None else of_others, Activation())]

    return ClOp(op, claim=takes(TensorType.FLOAT32, *others), lower=lower, chains=chains)


def _activation(op: Op, activates: Callable[[Any], Activation]) -> ClOp:
    """Return an operator that is an activation, so that a producer may apply it."""

    def lower(call: Call) -> list[Step]:
        return [_launch(call, "ACTIVATE", activates(call.options))]

    return ClOp(op, claim=takes(TensorType.FLOAT32), lower=lower, activates=activates)


def _always(function: str, low: float = 0.0, high: float = 0.0) -> Callable[[Any], Activation]:
    return lambda options: Activation(function, low, high)


def _gelu(options: GeluOptions) -> Activation:
    return Activation("GELU_APPROXIMATE" if options.approximate else "GELU", 0.0, 0.0)


def _leaky_relu(options: LeakyReluOptions) -> Activation:
    return Activation("LEAKY_RELU", options.alpha, 0.0)


def _logical_not(call: Call) -> list[Step]:
    return [_launch(call, "LOGICAL_NOT", Activation())]


CL_OPS = (
    _function(unary.ABS, TensorType.INT32, of_others="ABS_INT", chains=True),
    _function(unary.NEG, TensorType.INT32, TensorType.INT64, chains=True),
    _function(unary.SQUARE, chains=True),
    _function(unary.SQRT, chains=True),
    _function(unary.RSQRT, chains=True),
    _function(unary.EXP, chains=True),
    _function(unary.LOG, chains=True),
    _function(unary.SIGN, TensorType.INT32),
    _function(unary.SIN),
    _function(unary.COS),
    _function(unary.CEIL),
    _function(unary.FLOOR),
    _function(unary.ROUND),
    ClOp(unary.LOGICAL_NOT, claim=takes(TensorType.BOOL), lower=_logical_not),
    _activation(unary.RELU, _always("CLAMP", low=0.0, high=float("inf"))),
    _activation(unary.RELU6, _always("CLAMP", low=0.0, high=6.0)),
    _activation(unary.RELU_0_TO_1, _always("CLAMP", low=0.0, high=1.0)),
    _activation(unary.RELU_N1_TO_1, _always("CLAMP", low=-1.0, high=1.0)),
    _activation(unary.LOGISTIC, _always("LOGISTIC")),
    _activation(unary.TANH, _always("TANH")),
    _activation(unary.HARD_SWISH, _always("HARD_SWISH")),
    _activation(unary.ELU, _always("ELU")),
    _activation(GELU, _gelu),
    _activation(LEAKY_RELU, _leaky_relu),
)
