"""Functions of a quantized element, or of two bytes: the interpreter computes all results, the device looks them up."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Launch, Operand, Refusal, Scratch, Step, Target
from litecl.delegate.kit import schedule
from litecl.delegate.kit.claims import BYTES, C_TYPES, QUANTIZED, Specs, given, stored, typed
from litecl.delegate.kit.schedule import chunks
from litecl.delegate.ops.binary import together
from litecl.delegate.quantized.integers import per_tensor, words, zero_point
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit.types import limits
from litecl.interpreter.op import Op
from litecl.interpreter.ops import binary, unary
from litecl.interpreter.ops.gelu import GELU
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU
from litecl.interpreter.ops.prelu import PRELU
from litecl.interpreter.schema import TensorType


def _table(op: Op, options: Any, x: TensorSpec, y: TensorSpec) -> Array:
    """Return the results for every element, indexed by its bits as an unsigned number."""
    return results(op, options, [x], y, [elements(x)])


def elements(spec: TensorSpec) -> Array:
    """Return all elements of a type, in the order of their bits."""
    size = spec.dtype.itemsize
    return np.arange(1 << 8 * size, dtype=f"u{size}").view(spec.dtype)


def results(op: Op, options: Any, inputs: Sequence[TensorSpec], y: TensorSpec, values: Sequence[Array]) -> Array:
    """Return the interpreter's results for elements."""
    run = None if op.bind is None else op.bind(options, inputs, [y])
    (result,) = (op.run if run is None else run)(options, values)
    return np.ascontiguousarray(result).view(stored(y.type))


def _cl_op(op: Op) -> ClOp:
    def claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
        x, (y,) = given(inputs, 0), outputs
        if refusal := typed((x, y), QUANTIZED, quantized=True) or per_tensor(x, y):
            return refusal
        if TensorType.INT16 not in (x.type, y.type):
            return _roots(op, x)
        return words(x, y)

    return ClOp(op, claim=claim, lower=lambda call: [applied(op, call)])


def _roots(op: Op, x: TensorSpec) -> Refusal | None:
    """Refuse elements that may be negative: an error, which a table cannot report."""
    below = op is unary.RSQRT and zero_point(x) != limits(x.dtype)[0]
    return Refusal("elements that may be negative") if below else None


def applied(op: Op, call: Call) -> Launch:
    """Return the launch that applies an operator to the elements of its input."""
    x, (y,) = call.input(0), call.outputs
    return looked_up(_table(op, call.options, x.spec, y.spec), x, y, y.spec.type, call.target)


def looked_up(table: Array, x: Operand, y: Operand | Scratch, type_: TensorType, target: Target) -> Launch:
    """Return the launch that writes ``table[x]``, of type ``type_``, to ``y``."""
    share = chunks("table", x.spec.size, target)
    defines: dict[str, str | int | float] = {"T": f"u{C_TYPES[x.spec.type].removeprefix('u')}", "R": C_TYPES[type_]}
    if x.spec.dtype.itemsize == stored(type_).itemsize == 1:
        defines["BYTES"] = 1
    return share.launch("look_up", (x, Const(table), y, *share.args), defines, x.spec.size)


def _of_pairs(op: Op) -> ClOp:
    """Return a function of two bytes."""

    def claim(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
        a, b, (y,) = given(inputs, 0), given(inputs, 1), outputs
        if refusal := typed((a, b), BYTES, quantized=True) or per_tensor(a, b):
            return refusal
        return typed((y,), BYTES, quantized=True)

    def lower(call: Call) -> list[Step]:
        specs = [call.input(i).spec for i in range(2)]
        return [looked_up_pairs(call, results(op, call.options, specs, call.outputs[0].spec, pairs(*specs)))]

    return ClOp(op, claim=claim, lower=lower)


def pairs(a: TensorSpec, b: TensorSpec) -> tuple[Array, Array]:
    """Return all pairs of elements of two types, each as [elements of a, elements of b]."""
    left, right = np.meshgrid(elements(a), elements(b), indexing="ij")
    return left, right


def looked_up_pairs(call: Call, table: Array) -> Launch:
    """Return the launch that writes the result of every pair of bytes, from a table of all ``pairs``, to the output."""
    a, b, y = call.input(0), call.input(1), call.outputs[0]
    a, b, nest = together(a, b, y)
    share = schedule.elements("table", y.spec.size, call.target)
    args: tuple[Arg, ...] = (a, b, Const(table), y, nest.table, *share.args, *nest.arguments)
    return share.launch("look_up_pairs", args, {"T": "uchar", "R": C_TYPES[y.spec.type]}, y.spec.size)


CL_OPS = (
    *(
        _cl_op(op)
        for op in (
            *(unary.ABS, unary.NEG, unary.EXP, unary.LOG, unary.RSQRT),
            *(unary.RELU, unary.RELU6, unary.RELU_0_TO_1, unary.RELU_N1_TO_1),
            *(unary.LOGISTIC, unary.TANH, unary.HARD_SWISH, unary.ELU, GELU, LEAKY_RELU),
        )
    ),
    *(_of_pairs(op) for op in (binary.SQUARED_DIFFERENCE, PRELU)),
)
