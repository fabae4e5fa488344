"""Cases of the operators of one quantized input: every 8-bit element, and all 16-bit ones at a stride."""

from typing import Any

import numpy as np

from litecl.cases import Case
from litecl.cases.integers import unfit
from litecl.cases.quantize import affine
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import unary as ops
from litecl.interpreter.ops.gelu import GELU, GeluOptions
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU, LeakyReluOptions
from litecl.interpreter.schema import TensorType as T

ELEMENTS: dict[T, Array] = {
    T.INT8: np.arange(-128, 128).astype(np.int8),
    T.UINT8: np.arange(256).astype(np.uint8),
    T.INT16: np.concatenate([np.arange(-32768, 32768, 61), [-1, 0, 1, 32767]]).astype(np.int16),
}
"""Elements of every quantized type."""

Scaling = tuple[float, int]

# Scale and zero point (counted from the smallest element) of input and output: the same, much finer, coarser.
_BYTES: tuple[tuple[Scaling, Scaling], ...] = (
    ((0.05, 100), (0.05, 100)),
    ((0.11, 0), (0.013, 255)),
    ((0.003, 30), (0.9, 128)),
)
_WORDS: tuple[tuple[Scaling, Scaling], ...] = tuple(
    ((a, 0), (b, 0)) for a, b in ((0.0005, 0.0005), (2**-12, 2**-15), (0.0031, 2**-15), (0.0001, 0.003))
)
_LOGISTIC_WORDS = tuple(((a, 0), (2**-15, 0)) for a in (2**-12, 2**-11, 0.0004, 0.05))


def scaled(name: str, op: Op, options: Any, type_: T, x: Array, given: Scaling, wanted: Scaling, to: T) -> Case:
    """A case of one input."""
    low = 0 if type_ == T.INT16 else int(ELEMENTS[type_].min())
    out_low = 0 if to == T.INT16 else int(ELEMENTS[to].min())
    outputs = (TensorSpec(to, None, quantization=affine(wanted[0], wanted[1] + out_low)),)
    quantization = {0: affine(given[0], given[1] + low)}
    # LiteRT has no reference kernel of ELU.
    kernels = "optimised" if op is ops.ELU else "reference"
    device = unfit(op, type_, to)
    if op is ops.RSQRT and type_ == T.INT8 and given[1]:
        device = "elements that may be negative"
    return Case(name, op, options, [x], quantization=quantization, outputs=outputs, device=device, kernels=kernels)


def _table(op: Op, types: tuple[T, ...], options: Any = None, label: str = "") -> list[Case]:
    options = NoOptions() if options is None else options
    return [
        scaled(
            f"{type_.name}{label} {a[0]:.3g} to {b[0]:.3g}", op, options, type_, _elements(op, type_, a), a, b, type_
        )
        for type_ in types
        for a, b in (_WORDS if type_ == T.INT16 else _BYTES)
        if not (op is ops.TANH and type_ == T.INT16 and b[0] != 2**-15)
    ]


def _elements(op: Op, type_: T, given: Scaling) -> Array:
    """SQRT and RSQRT take no negative numbers."""
    elements = ELEMENTS[type_]
    if op not in (ops.SQRT, ops.RSQRT):
        return elements
    return elements[elements >= (0 if type_ == T.INT16 else int(elements.min()) + given[1])]


def _logistic() -> list[Case]:
    words = [
        scaled(f"INT16 {a[0]:.3g}", ops.LOGISTIC, NoOptions(), T.INT16, ELEMENTS[T.INT16], a, b, T.INT16)
        for a, b in _LOGISTIC_WORDS
    ]
    return words + [
        scaled(f"{t.name} {scale}", ops.LOGISTIC, NoOptions(), t, ELEMENTS[t], (scale, 90), (1 / 256, 0), t)
        for t in (T.INT8, T.UINT8)
        for scale in (0.05, 0.3)
    ]


def _extreme() -> list[Case]:
    """Scales where numbers of 16 or 32 bits overflow, and others where factors in float32 and float64 part."""
    rows: list[tuple[Op, Any, T, Scaling, Scaling]] = [
        *((ops.LOGISTIC, NoOptions(), T.INT16, (scale, 0), (2**-15, 0)) for scale in (6.0, 60.0)),
        (ops.TANH, NoOptions(), T.INT16, (27.0, 0), (2**-15, 0)),
        *((ops.HARD_SWISH, NoOptions(), type_, (0.003, 30), (3.0, 128)) for type_ in (T.INT8, T.UINT8)),
        (ops.LOGISTIC, NoOptions(), T.INT8, (45.0, 90), (1 / 256, 0)),
        (ops.ELU, NoOptions(), T.INT8, (1e-7, 117), (1.7e-7, 117)),
        (ops.ABS, NoOptions(), T.INT16, (0.00035, 0), (0.0001, 0)),
        (ops.RELU, NoOptions(), T.INT16, (0.00035, 0), (0.0001, 0)),
        (LEAKY_RELU, LeakyReluOptions(0.1), T.INT16, (5e-5, 0), (1e-5, 0)),
        (LEAKY_RELU, LeakyReluOptions(1.7), T.INT8, (0.007, 117), (0.007, 117)),
    ]
    return [
        scaled(f"{type_.name} {a[0]:.3g} to {b[0]:.3g}", op, options, type_, ELEMENTS[type_], a, b, type_)
        for op, options, type_, a, b in rows
    ]


_ALL, _PAIR, _SIGNED = (T.INT8, T.UINT8, T.INT16), (T.INT8, T.UINT8), (T.INT8, T.INT16)

CASES = (
    *_table(ops.ABS, _SIGNED),
    *_table(ops.NEG, _SIGNED),
    *_table(ops.SQRT, _SIGNED),
    *_table(ops.RSQRT, _SIGNED),
    *_table(ops.EXP, _SIGNED),
    *_table(ops.LOG, _SIGNED),
    *_table(ops.RELU, _ALL),
    *_table(ops.RELU6, _ALL),
    *_table(ops.RELU_0_TO_1, _PAIR),
    *_table(ops.RELU_N1_TO_1, _PAIR),
    *_table(ops.TANH, _ALL),
    *_table(ops.HARD_SWISH, _PAIR),
    *_table(ops.ELU, (T.INT8,)),
    *_table(GELU, _ALL, GeluOptions(False)),
    *_table(GELU, _ALL, GeluOptions(True), " approximate"),
    *(
        case
        for alpha in (0.1, -0.3, 1.7, -0.5)  # the last of which has halves to round
        for case in _table(LEAKY_RELU, _ALL, LeakyReluOptions(alpha), f" alpha {alpha}")
    ),
    *_logistic(),
    *_extreme(),
)
