"""SOFTMAX of quantized tensors, from tables of exponentials."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Operand, Refusal, Step
from litecl.delegate.kit.claims import BYTES, C_TYPES, QUANTIZED, Specs, given, typed
from litecl.delegate.kit.schedule import chunks
from litecl.delegate.quantized.integers import per_tensor, words
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.kit.types import integer_limits
from litecl.interpreter.ops.softmax import SOFTMAX, difference_multiplier_16, exponentials, tables_16
from litecl.interpreter.schema import TensorType

_KERNEL = "quantized_softmax"
_MOST_WORDS = 1 << 16  # 16-bit exponentials whose sum fits an int
WORK = 8
"""Operations per element, in additions."""


def _claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    x, (y,) = given(inputs, 0), outputs
    if x.type == TensorType.INT16 and x.static_shape[-1] >= _MOST_WORDS:
        return Refusal(f"rows of {_MOST_WORDS} elements or more")
    if x.type == TensorType.INT16:
        return typed((y,), (x.type,), quantized=True) or per_tensor(x, y) or words(x, y)
    return typed((x,), BYTES, quantized=True) or typed((y,), QUANTIZED, quantized=True) or per_tensor(x, y)


def _lower_words(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    length = y.shape[-1]
    factor = difference_multiplier_16(x.spec, call.options.beta)
    tables = [Const(table.astype(np.int32)) for table in tables_16()]
    shifts = max(int(factor.shift), 0), max(-int(factor.shift), 0)
    share = chunks("softmax_16", y.spec.size // length, call.target, work=length * WORK)
    numbers = [np.int32(number) for number in (length, int(factor.value), *shifts)]
    args: tuple[Arg, ...] = (x, *tables, y, *share.args, *numbers)
    return [share.launch("softmax_16", args, {"T": "short", "WORDS": 1}, y.spec.size * WORK)]


def _lower(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    if x.spec.type == TensorType.INT16:
        return _lower_words(call)
    length = y.shape[-1]
    share = chunks(_KERNEL, y.spec.size // length, call.target, work=length * WORK)
    args: tuple[Arg, ...] = (x, table(call), y, *share.args, np.int32(length), *limits(y))
    return [share.launch("quantized_softmax", args, defines(x, y), y.spec.size * WORK)]


def table(call: Call) -> Const:
    """Return the exponentials of all differences of two bytes."""
    return Const(exponentials(call.options, call.input(0).spec).astype(np.int32))


def limits(y: Operand) -> tuple[np.int32, np.int32]:
    """Return the bounds of the result."""
    low, high = integer_limits(y.spec.type)
    return np.int32(low), np.int32(high)


def defines(x: Operand, y: Operand) -> dict[str, str | int]:
    """Return the macros of quantized_softmax.cl and quantized_softmax_local.cl."""
    return {"X": C_TYPES[x.spec.type], "T": C_TYPES[y.spec.type], "BITS": 8 * y.spec.dtype.itemsize}


CL_OPS = (ClOp(SOFTMAX, claim=_claim, lower=_lower),)
