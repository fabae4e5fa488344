"""Functions of two inputs that broadcast: arithmetic, comparisons, logic; and ADD_N, a chain of additions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Activation, Alias, Arg, Call, ClOp, Launch, Operand, Refusal, Step
from litecl.delegate.kit.claims import (
    C_TYPES,
    NUMBERS,
    QUANTIZED,
    Claim,
    Specs,
    activated,
    given,
    is_quantized,
    of,
    stored,
    takes,
    typed,
)
from litecl.delegate.kit.loops import LoopNest, long_rows, loop_nest, periodic
from litecl.delegate.kit.schedule import elements
from litecl.delegate.kit.strided import broadcast_view
from litecl.delegate.ops.chain import CHAINED
from litecl.delegate.quantized.integers import alike
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.kit.types import limits
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary, compare
from litecl.interpreter.ops.add_n import ADD_N
from litecl.interpreter.ops.prelu import PRELU
from litecl.interpreter.schema import TensorType

_FLOAT, _INT, _BOOL = TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL
_BYTES = (TensorType.INT8, TensorType.UINT8)
_HALF, _MOST_EXPONENT = 0.5, 16  # exponents that don't need POW
_COMPARABLE = takes(*NUMBERS, *QUANTIZED, _BOOL)


def _launch(call: Call, function: str, a: Operand, b: Operand, c: Operand, activation: Activation) -> Launch:
    a, b, nest = together(a, b, c)
    nest = periodic(nest, call.target)
    share = elements("binary", c.spec.size, call.target)
    args: tuple[Arg, ...] = (a, b, c, nest.table, *share.args, *nest.arguments, *_bounds(a.spec.type, activation))
    defines = _defines(function, a.spec, c.spec, activation) | nest.straight(call.target)
    return share.launch("binary", args, defines, c.spec.size)


def together(a: Operand, b: Operand, c: Operand) -> tuple[Operand, Operand, LoopNest]:
    """Return two operands that broadcast to a third, repeated if that makes rows longer, and the loops over them."""
    shape = c.shape
    if b.spec.size < a.spec.size == c.spec.size and a.row_step is None:
        b, shape = long_rows(b, shape)
    elif a.spec.size < b.spec.size == c.spec.size and b.row_step is None:
        a, shape = long_rows(a, shape)
    return a, b, loop_nest(broadcast_view(a, shape), broadcast_view(b, shape))


def _bounds(type_: TensorType, activation: Activation) -> tuple[np.generic, np.generic]:
    if type_ == _FLOAT:
        return activation.bounds
    least, largest = limits(stored(type_))
    return of(type_, max(activation.low, least)), of(type_, min(activation.high, largest))


def _defines(function: str, a: TensorSpec, c: TensorSpec, activation: Activation) -> dict[str, str | int]:
    defines: dict[str, str | int] = {"T": C_TYPES[a.type], "R": C_TYPES[c.type], "OP": function}
    if c.type == _BOOL:
        return defines | {"FINISH": "TRUTH"} | ({"FLOATING": 1} if a.type == _FLOAT else {})
    if a.type == _FLOAT:
        return defines | {"FINISH": "ACTIVATE", "FLOATING": 1} | activation.defines
    return defines | {"FINISH": "BOUND"}


def _cl_op(op: Op, claim: Claim, of_integers: str | None = None, *, fuses_activation: bool = True) -> ClOp:
    """Return an operator that binary.cl knows by its name, and for integers by ``of_integers``."""

    def lower(call: Call) -> list[Step]:
        a, b = call.input(0), call.input(1)
        function = op.name if a.spec.type == _FLOAT or of_integers is None else of_integers
        return [_launch(call, function, a, b, call.outputs[0], call.activation)]

    return ClOp(
        op, claim=claim, lower=lower, chains=op.name in CHAINED, fuses_activation=fuses_activation, reads_rows=True
    )


def _exponent(b: TensorSpec) -> float | None:
    """Return the constant exponent that all elements share, else None."""
    return None if b.data is None or not b.size or (b.data != b.data.flat[0]).any() else float(b.data.flat[0])


def _claim_power(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    a, b = given(inputs, 0), given(inputs, 1)
    if refusal := typed((a, b), (_FLOAT, _INT)):
        return refusal
    exponent = _exponent(b)
    fits = a.type == _FLOAT or (exponent is not None and exponent >= 0)
    return None if fits else Refusal("an exponent of integers that is not one constant of 0 or more")


def _power(call: Call) -> list[Step]:
    a, b, c = call.input(0), call.input(1), call.outputs[0]
    return [_launch(call, _power_of(a.spec.type, _exponent(b.spec)), a, b, c, call.activation)]


def _power_of(type_: TensorType, exponent: float | None) -> str:
    """Return the function of binary.cl. Products round more often than POW: up to exponent - 1 times."""
    if exponent == _HALF:
        return "ROOT"
    if exponent is None or not exponent.is_integer() or (type_ == _FLOAT and abs(exponent) > _MOST_EXPONENT):
        return "POW"
    return "RAISED" if exponent >= 0 else "RAISED_INVERSE"


def compared(call: Call, op: Op) -> Launch:
    """Return the launch that compares elements as they are."""
    return _launch(call, op.name, call.input(0), call.input(1), call.outputs[0], Activation())


def _predicate(op: Op, claim: Claim) -> ClOp:
    """Return an operator whose result is a truth value."""
    return _cl_op(op, claim, fuses_activation=False)


def _arithmetic(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return typed(inputs, NUMBERS) or activated(options, given(inputs, 0).type)


def _extreme(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    """Accept quantized tensors of one scale too: they compare as their integers do."""
    if refusal := typed(inputs, (*NUMBERS, *QUANTIZED), quantized=True):
        return refusal
    return alike(outputs[0], given(inputs, 0), given(inputs, 1)) if is_quantized(outputs[0]) else None


def _division(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    """Refuse to divide integers by anything but constants without zeros: a division by zero may kill the process."""
    a, b = given(inputs, 0), given(inputs, 1)
    if refusal := typed(inputs, NUMBERS):
        return refusal
    if a.type != _FLOAT and (b.data is None or not np.all(b.data)):
        return Refusal(f"{a.type.name} divisor that is not a constant without zeros")
    return activated(options, a.type) if hasattr(options, "fused_activation_function") else None


def _floor_division(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    """Also refuse float constants with zeros, for which the CPU raises an error."""
    divisor = given(inputs, 1).data
    if divisor is not None and not np.all(divisor):
        return Refusal("a divisor of 0")
    return _division(options, inputs, outputs)


def _add_n(call: Call) -> list[Step]:
    """Add one input after another, with the running sum in the output."""
    (y,) = call.outputs
    terms = [call.input(i) for i in range(len(call.inputs))]
    if len(terms) == 1:
        return [Alias(y, terms[0])]
    sums: list[Step] = [_launch(call, "ADD", terms[0], terms[1], y, Activation())]
    return sums + [_launch(call, "ADD", y, term, y, Activation()) for term in terms[2:]]


CL_OPS = (
    _cl_op(binary.ADD, _arithmetic),
    _cl_op(binary.SUB, _arithmetic),
    _cl_op(binary.MUL, _arithmetic),
    _cl_op(binary.DIV, _division, of_integers="DIV_INT"),
    _cl_op(binary.MAXIMUM, _extreme),
    _cl_op(binary.MINIMUM, _extreme),
    _cl_op(binary.SQUARED_DIFFERENCE, takes(_FLOAT, _INT)),
    _cl_op(binary.FLOOR_DIV, _floor_division, of_integers="FLOOR_DIV_INT"),
    _cl_op(binary.FLOOR_MOD, _division, of_integers="FLOOR_MOD_INT"),
    ClOp(binary.POW, claim=_claim_power, lower=_power, fuses_activation=True, reads_rows=True),
    _cl_op(binary.ATAN2, takes(_FLOAT)),
    _cl_op(PRELU, takes(_FLOAT)),
    _predicate(binary.LOGICAL_AND, takes(_BOOL)),
    _predicate(binary.LOGICAL_OR, takes(_BOOL)),
    _cl_op(binary.BITWISE_XOR, takes(_INT, *_BYTES)),
    _predicate(compare.EQUAL, _COMPARABLE),
    _predicate(compare.NOT_EQUAL, _COMPARABLE),
    _predicate(compare.LESS, _COMPARABLE),
    _predicate(compare.LESS_EQUAL, _COMPARABLE),
    _predicate(compare.GREATER, _COMPARABLE),
    _predicate(compare.GREATER_EQUAL, _COMPARABLE),
    ClOp(ADD_N, claim=takes(_FLOAT, _INT), lower=_add_n),
)
