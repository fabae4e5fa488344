"""Element-wise operators of two inputs that broadcast."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.interpreter.arithmetic import bfloat16, halves
from litecl.interpreter.arithmetic import quantized_binary as quantized
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import ADDING, PLAIN, SQUARING, InFloat, Integers
from litecl.interpreter.kit import activation, lowest, require, types
from litecl.interpreter.op import Bind, Inputs, Lowest, NoOptions, Op, Run, Specs
from litecl.interpreter.schema import ActivationFunctionType, TensorType

Function = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class AddOptions:
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    pot_scale_int16: bool = True


@dataclass(frozen=True)
class SubOptions:
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    pot_scale_int16: bool = True


@dataclass(frozen=True)
class MulOptions:
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE


@dataclass(frozen=True)
class DivOptions:
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE


def binary(
    name: str,
    function: Function,
    allowed: Collection[TensorType] = types.FLOAT,
    versions: range = range(1, 2),
    result: TensorType | None = None,
    stored: Collection[TensorType] = (),
    bound: quantized.Bound | None = None,
    lowest: Lowest | None = None,
    integers: Integers | InFloat | None = None,
    options: type | None = None,
) -> Op:
    """Return the operator that applies ``function``, to FLOAT16 too if it takes FLOAT32.

    result: the result's type, None for the inputs'. stored: the types that may be quantized. bound: makes the kernel
    for quantized inputs, None if they are used unchanged. options: options that name a fused activation, if any.
    """
    fuses = options is not None

    def infer(options: Any, inputs: Specs) -> list[TensorSpec]:
        a, b = require.present(inputs, 2)
        type_ = require.same_type(a, b)
        for spec in (a, b):
            require.types_or_quantized(spec, allowed, stored)
        return [TensorSpec(type_ if result is None else result, require.broadcast(a, b))]

    def run(options: Any, inputs: Inputs) -> list[Array]:
        a, b = require.arrays(inputs, 2)
        with np.errstate(all="ignore"):
            values = np.asarray(function(a, b), a.dtype if result is None else result.dtype)
        return [activation.apply(options.fused_activation_function, values) if fuses else values]

    bind = _bind(run, bound) if bound or TensorType.BFLOAT16 in allowed else None
    op = Op(name, options=NoOptions if options is None else options, infer=infer, run=run, bind=bind, versions=versions)
    op = replace(op, lowest=lowest, integers=integers)
    return halves.also(op) if TensorType.FLOAT32 in allowed else op


def _bind(run: Run, bound: quantized.Bound | None) -> Bind:
    def bind(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
        a, b = require.present(inputs, 2)
        if bound and require.is_quantized(a):
            return bound(options, a, b, outputs[0])
        return bfloat16.bind(run, (a, b), outputs[0])

    return bind


def _arithmetic(
    name: str,
    options: type,
    function: Function,
    allowed: Collection[TensorType],
    versions: range,
    bound: quantized.Bound,
    declared_types: bool = False,
    lowest: Lowest | None = None,
    integers: Integers | InFloat | None = None,
) -> Op:
    """Return an operator whose options name a fused activation."""
    stored = quantized.QUANTIZED
    op = binary(name, function, allowed, versions, None, stored, bound, lowest, integers, options)
    return replace(op, declared_types=declared_types, sets_types=not declared_types)


_ROOT = 0.5  # the exponent


def _nonzero(divisor: Array) -> None:
    if not np.all(divisor):
        raise ModelError("division by 0")


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    _nonzero(b)
    quotient = np.floor_divide(a, b)
    # C truncates where floor rounds down: the results differ by one if the signs differ and there is a remainder.
    return np.asarray(quotient + ((quotient < 0) & (quotient * b != a)))


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind == "i" and np.any(b < 0):
        raise ModelError("negative exponent of an integer")
    if a.dtype.kind == "f" and b.size == 1 and b.reshape(()) == _ROOT:
        # numpy takes the root for this power, which gives -0 for -0 and NaN for -inf.
        root: Array = np.where(a == -np.inf, np.asarray(np.inf, a.dtype), np.sqrt(a + a.dtype.type(0)))
        return np.broadcast_to(root, np.broadcast_shapes(a.shape, b.shape))
    return np.power(a, b)


def _floor_divide(a: Array, b: Array) -> Array:
    _nonzero(b)
    if a.dtype.kind != "f":
        return np.asarray(np.floor_divide(a, b))
    # In the operands' precision a quotient may round up to a whole number that the exact one does not reach.
    return np.floor(np.divide(a, b, dtype=np.float64)).astype(a.dtype)


def _floor_modulo(a: Array, b: Array) -> Array:
    if a.dtype.kind != "f":
        _nonzero(b)
        return np.remainder(a, b)
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)


def _shift_right(a: Array, b: Array) -> Array:
    # A shift past the width leaves the sign, as a shift by width - 1 does.
    width = a.dtype.itemsize * 8
    return np.asarray(np.right_shift(a, np.clip(b, 0, width - 1).astype(a.dtype)))


_SIGNED = (TensorType.INT8, TensorType.INT16)

ADD = _arithmetic(
    "ADD",
    AddOptions,
    np.add,
    (*types.NUMBER, TensorType.INT16),
    range(1, 7),
    quantized.add,
    integers=ADDING,
    lowest=lowest.most(lowest.by_type({TensorType.INT64: 4}), lowest.integers(2, 3)),
)
SUB = _arithmetic(
    "SUB",
    SubOptions,
    np.subtract,
    types.NUMBER,
    range(1, 7),
    quantized.subtract,
    integers=ADDING,
    lowest=lowest.most(lowest.broadcast_beyond_4(3, {TensorType.INT64: 4}), lowest.integers(2, 5)),
)
MUL = _arithmetic(
    "MUL",
    MulOptions,
    np.multiply,
    (*types.NUMBER, TensorType.INT16, TensorType.UINT32, TensorType.COMPLEX64),
    range(1, 9),
    quantized.multiply,
    declared_types=True,
    integers=PLAIN,
    lowest=lowest.most(lowest.by_type({TensorType.INT64: 5}), lowest.integers(3, 4)),
)
DIV = _arithmetic(
    "DIV",
    DivOptions,
    _divide,
    types.REAL,
    range(1, 3),
    quantized.divide,
    integers=PLAIN,
    lowest=lowest.broadcast_beyond_4(2),
)

# A comparison with NaN is false, so NaN in either input selects the second one.
_EXTREMES = (*types.NUMBER, *types.BITS, TensorType.BFLOAT16)
MAXIMUM = binary(
    "MAXIMUM",
    lambda a, b: np.where(a > b, a, b),
    _EXTREMES,
    range(1, 5),
    stored=quantized.QUANTIZED,
    integers=Integers(shared=True, clips=True),
    lowest=lowest.most(lowest.broadcast_beyond_4(3), lowest.integers(2, 4)),
)
MINIMUM = binary(
    "MINIMUM",
    lambda a, b: np.where(a < b, a, b),
    _EXTREMES,
    range(1, 5),
    stored=quantized.QUANTIZED,
    integers=Integers(shared=True, clips=True),
    lowest=lowest.most(lowest.broadcast_beyond_4(3), lowest.integers(2, 4)),
)
POW = binary("POW", _power, types.REAL)
SQUARED_DIFFERENCE = binary(
    "SQUARED_DIFFERENCE",
    lambda a, b: np.square(a - b),
    types.REAL,
    range(1, 3),
    stored=(TensorType.INT8,),
    bound=quantized.squared_difference,
    integers=SQUARING,
    lowest=lowest.integers(2),
)
FLOOR_DIV = binary(
    "FLOOR_DIV",
    _floor_divide,
    (*types.REAL, *_SIGNED),
    range(1, 4),
    stored=_SIGNED,
    lowest=lowest.by_type({TensorType.FLOAT32: 2}),
)
FLOOR_MOD = binary("FLOOR_MOD", _floor_modulo, (*types.NUMBER, *_SIGNED), range(1, 3), stored=_SIGNED)
ATAN2 = binary("ATAN2", np.arctan2, (TensorType.FLOAT32, TensorType.FLOAT64, TensorType.BFLOAT16))
LOGICAL_AND = binary("LOGICAL_AND", np.logical_and, types.BOOL)
LOGICAL_OR = binary("LOGICAL_OR", np.logical_or, types.BOOL)
BITWISE_XOR = binary("BITWISE_XOR", np.bitwise_xor, types.BITS, stored=quantized.QUANTIZED)
RIGHT_SHIFT = binary("RIGHT_SHIFT", _shift_right, types.BITS, stored=quantized.QUANTIZED)
