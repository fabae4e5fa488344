"""Element-wise operators of one input, whose result has its shape and type."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.interpreter.arithmetic import bfloat16, halves, lookup
from litecl.interpreter.arithmetic import quantized_unary as quantized
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import BYTES, PLAIN, REPLACED, SIGNED_UNIT, UNIT, InFloat, Integers
from litecl.interpreter.kit import activation, lowest, require, types
from litecl.interpreter.op import Bind, Infer, Inputs, Lowest, NoOptions, Op, Run, Specs
from litecl.interpreter.schema import TensorType


def like_input(allowed: Collection[TensorType], stored: Collection[TensorType] = ()) -> Infer:
    """Return shape inference for an operator whose result has the shape and type of its first input.

    stored: the types that represent real numbers if they are quantized.
    """

    def infer(options: Any, inputs: Specs) -> list[TensorSpec]:
        (x,) = require.present(inputs, 1)
        require.types_or_quantized(x, allowed, stored)
        return [TensorSpec(x.type, x.shape)]

    return infer


def each(function: Callable[[Any, Array], Array]) -> Run:
    """Return a kernel that applies a function of options and input, with IEEE's results and no numpy warnings."""

    def run(options: Any, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        with np.errstate(all="ignore"):
            return [np.asarray(function(options, x), x.dtype)]

    return run


def bind_quantized(bound: quantized.Bound) -> Bind:
    """Return the ``bind`` of an operator with its own kernel for quantized inputs."""

    def bind(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
        (x,) = require.present(inputs, 1)
        return bound(options, x, outputs[0]) if require.is_quantized(x) else None

    return bind


def _bind(run: Run, bound: quantized.Bound | None) -> Bind:
    """Return the ``bind`` of an operator with kernels for quantized or BFLOAT16 inputs."""
    of_quantized = None if bound is None else bind_quantized(bound)

    def bind(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
        in_bfloat16 = bfloat16.bind(run, require.present(inputs, 1), outputs[0])
        return in_bfloat16 or (of_quantized(options, inputs, outputs) if of_quantized else None)

    return bind


def unary(
    name: str,
    function: Callable[[Array], Array],
    allowed: Collection[TensorType] = types.FLOAT,
    versions: range = range(1, 2),
    stored: Collection[TensorType] = (),
    bound: quantized.Bound | None = None,
    lowest: Lowest | None = None,
    integers: Integers | InFloat | None = None,
) -> Op:
    """Return an operator without options that applies ``function``, on FLOAT16 too if it takes FLOAT32.

    bound: makes the kernel for quantized inputs.
    """
    run = each(lambda options, x: function(x))
    bind = _bind(run, bound) if bound or TensorType.BFLOAT16 in allowed else None
    infer = like_input(allowed, stored)
    op = Op(name, options=NoOptions, infer=infer, run=run, bind=bind, versions=versions)
    op = replace(op, lowest=lowest, integers=integers)
    return halves.also(op) if TensorType.FLOAT32 in allowed else op


def _elu(x: Array) -> Array:
    return np.where(x < 0, np.expm1(x), x)


_INFINITY = float("inf")
_ALL, _BYTES, _SIGNED = quantized.QUANTIZED, quantized.BYTES, quantized.SIGNED
_REALS = (TensorType.FLOAT32, TensorType.BFLOAT16)

ABS = unary(
    "ABS",
    np.abs,
    (*types.REAL, TensorType.INT16),
    range(1, 6),
    _SIGNED,
    quantized.absolute,
    integers=PLAIN,
    lowest=lowest.integers(2, 3),
)
NEG = unary(
    "NEG", np.negative, (*types.NUMBER, *_REALS, *_SIGNED), stored=_SIGNED, integers=REPLACED
)  # ignores zero points
SIGN = unary("SIGN", np.sign, (*types.REAL, TensorType.FLOAT64), range(1, 3))
SQUARE = unary("SQUARE", np.square)
SQRT = unary("SQRT", np.sqrt, types.FLOAT, range(1, 3), _SIGNED, quantized.sqrt, integers=PLAIN)
RSQRT = unary(
    "RSQRT",
    lambda x: 1 / np.sqrt(x),
    types.FLOAT,
    range(1, 4),
    _SIGNED,
    quantized.rsqrt,
    integers=PLAIN,
    lowest=lowest.integers(2, 3),
)
EXP = unary(
    "EXP",
    np.exp,
    types.FLOAT,
    range(1, 3),
    _SIGNED,
    quantized.table(lambda options, x: lookup.exp(x)),
    integers=PLAIN,
    lowest=lowest.integers(2, 2),
)
LOG = unary(
    "LOG", np.log, types.FLOAT, range(1, 3), _SIGNED, quantized.log, integers=PLAIN, lowest=lowest.integers(2, 2)
)
SIN = unary("SIN", np.sin, versions=range(1, 3))
COS = unary("COS", np.cos, versions=range(1, 3))
CEIL = unary("CEIL", np.ceil)
FLOOR = unary("FLOOR", np.floor, _REALS)
ROUND = unary("ROUND", np.rint, _REALS)
LOGICAL_NOT = unary("LOGICAL_NOT", np.logical_not, types.BOOL)

RELU = unary(
    "RELU",
    activation.relu,
    types.FLOAT,
    range(1, 4),
    _ALL,
    quantized.relu(0.0, _INFINITY),
    integers=PLAIN,
    lowest=lowest.integers(2, 3),
)
RELU6 = unary(
    "RELU6",
    lambda x: np.clip(x, 0, 6),
    types.FLOAT,
    range(1, 4),
    _ALL,
    quantized.relu(0.0, 6.0),
    integers=PLAIN,
    lowest=lowest.integers(2, 3),
)
RELU_0_TO_1 = unary(
    "RELU_0_TO_1", lambda x: np.clip(x, 0, 1), stored=_BYTES, bound=quantized.relu(0.0, 1.0), integers=BYTES
)
RELU_N1_TO_1 = unary(
    "RELU_N1_TO_1", lambda x: np.clip(x, -1, 1), stored=_BYTES, bound=quantized.relu(-1.0, 1.0), integers=BYTES
)
LOGISTIC = unary(
    "LOGISTIC",
    lambda x: 1 / (1 + np.exp(-x)),
    _REALS,
    range(1, 4),
    _ALL,
    quantized.logistic,
    integers=UNIT,
    lowest=lowest.integers(2, 3),
)
TANH = unary(
    "TANH", np.tanh, _REALS, range(1, 4), _ALL, quantized.tanh, integers=SIGNED_UNIT, lowest=lowest.integers(2, 3)
)
HARD_SWISH = unary(
    "HARD_SWISH", lambda x: x * np.clip(x + 3, 0, 6) / 6, stored=_BYTES, bound=quantized.hard_swish, integers=BYTES
)
ELU = unary(
    "ELU",
    _elu,
    stored=(TensorType.INT8,),
    bound=quantized.table(lambda options, x: lookup.in_double(_elu)(x)),
    integers=BYTES,
)
