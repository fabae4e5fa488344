"""Operators of one input whose result has its shape and type, every element by itself."""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Infer, Inputs, NoOptions, Op, Run, Specs
from litecl.interpreter.ops import require, types
from litecl.interpreter.schema import TensorType


def like_input(name: str, allowed: Collection[TensorType]) -> Infer:
    """Shape inference of an operator whose one result has the shape and type of its first input."""

    def infer(options: Any, inputs: Specs) -> list[TensorSpec]:
        (x,) = require.present(name, inputs, 1)
        require.types(name, x, allowed)
        require.plain(name, x)
        return [TensorSpec(x.type, x.shape)]

    return infer


def each(function: Callable[[Any, Array], Array]) -> Run:
    """A kernel that applies a function of the options and the input; IEEE's results, without numpy's warnings."""

    def run(options: Any, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        with np.errstate(all="ignore"):
            return [np.asarray(function(options, x), x.dtype)]

    return run


def unary(
    name: str,
    function: Callable[[Array], Array],
    allowed: Collection[TensorType] = types.FLOAT,
    versions: range = range(1, 2),
) -> Op:
    """The operator without options that applies ``function`` to its input."""
    run = each(lambda options, x: function(x))
    return Op(name, options=NoOptions, infer=like_input(name, allowed), run=run, versions=versions)


ABS = unary("ABS", np.abs, (*types.REAL, TensorType.INT16), range(1, 6))
NEG = unary("NEG", np.negative, types.NUMBER)
SIGN = unary("SIGN", np.sign, (*types.REAL, TensorType.FLOAT64), range(1, 3))
SQUARE = unary("SQUARE", np.square)
SQRT = unary("SQRT", np.sqrt, versions=range(1, 3))
RSQRT = unary("RSQRT", lambda x: 1 / np.sqrt(x), versions=range(1, 4))
EXP = unary("EXP", np.exp, versions=range(1, 3))
LOG = unary("LOG", np.log, versions=range(1, 3))
SIN = unary("SIN", np.sin)
COS = unary("COS", np.cos)
CEIL = unary("CEIL", np.ceil)
FLOOR = unary("FLOOR", np.floor)
ROUND = unary("ROUND", np.rint)
LOGICAL_NOT = unary("LOGICAL_NOT", np.logical_not, types.BOOL)

RELU = unary("RELU", lambda x: np.maximum(x, 0), versions=range(1, 4))
RELU6 = unary("RELU6", lambda x: np.clip(x, 0, 6), versions=range(1, 4))
RELU_0_TO_1 = unary("RELU_0_TO_1", lambda x: np.clip(x, 0, 1))
RELU_N1_TO_1 = unary("RELU_N1_TO_1", lambda x: np.clip(x, -1, 1))
LOGISTIC = unary("LOGISTIC", lambda x: 1 / (1 + np.exp(-x)), versions=range(1, 4))
TANH = unary("TANH", np.tanh, versions=range(1, 4))
HARD_SWISH = unary("HARD_SWISH", lambda x: x * np.clip(x + 3, 0, 6) / 6)
ELU = unary("ELU", lambda x: np.where(x < 0, np.expm1(x), x))
