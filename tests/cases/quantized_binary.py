"""Cases of the operators of two quantized inputs."""

from dataclasses import replace
from typing import Any

from litecl.cases import Case, rng
from litecl.cases.integers import COMPARISONS, unfit
from litecl.cases.quantize import affine
from litecl.cases.quantized_unary import ELEMENTS, Scaling
from litecl.interpreter.graph import Array, Quantization, Shape, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import binary as ops
from litecl.interpreter.ops.prelu import PRELU
from litecl.interpreter.schema import ActivationFunctionType as Activation
from litecl.interpreter.schema import TensorType as T

_rng = rng(53)
_ALL, _PAIR = (T.INT8, T.UINT8, T.INT16), (T.INT8, T.UINT8)
_INTEGERS = (ops.MAXIMUM, ops.MINIMUM, ops.BITWISE_XOR, ops.RIGHT_SHIFT)

Scalings = tuple[Scaling, Scaling, Scaling]

# Scale and zero point (counted from the middle) of both inputs and the output.
_SAME: Scalings = ((0.06, 3), (0.06, 3), (0.06, 3))
_MIXED: tuple[Scalings, ...] = (((0.11, -9), (0.03, 20), (0.08, 5)), ((0.002, 100), (0.19, -120), (0.09, -60)))
_POWERS: tuple[Scalings, ...] = (((2**-12, 0),) * 3, ((2**-13, 0), (2**-12, 0), (2**-12, 0)))


def _random(type_: T, shape: Shape) -> Array:
    return _rng.choice(ELEMENTS[type_], shape)


def _affine(type_: T, scaling: Scaling) -> Quantization:
    middle = 128 if type_ == T.UINT8 else 0
    return affine(scaling[0], 0 if type_ == T.INT16 else middle + scaling[1])


def _case(name: str, op: Op, options: Any, type_: T, scalings: Scalings, *shapes: Shape) -> Case:
    a, b, y = (_affine(type_, scaling) for scaling in scalings)
    x, z = (_random(type_, shape) for shape in shapes or ((40, 13), (40, 13)))
    if op is ops.DIV:
        z[z == b.zero_point[0]] ^= 1
    output = TensorSpec(T.BOOL, None) if op in COMPARISONS else TensorSpec(type_, None, quantization=y)
    return Case(
        f"{type_.name} {name}",
        op,
        options,
        [x, z],
        quantization={0: a, 1: b},
        outputs=(output,),
        device=unfit(op, type_),
    )


def _by_constant(case: Case) -> Case:
    """The case with a second input that is known."""
    return replace(case, name=f"{case.name}, constant", constants=frozenset({1}))


def _general(op: Op, options: Any, types: tuple[T, ...]) -> list[Case]:
    return [
        case
        for type_ in types
        for case in (
            _case("one scale", op, options, type_, _SAME),
            *(_case(f"scales {i}", op, options, type_, scalings) for i, scalings in enumerate(_MIXED)),
            _case("broadcast", op, options, type_, _MIXED[0], (3, 1, 5), (2, 1)),
            _case("rows that repeat", op, options, type_, _MIXED[0], (2, 21, 8), (2, 1, 8)),
        )
    ]


def _activated(op: Op, options: type) -> list[Case]:
    functions = (Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)
    return [_case(f.name, op, options(f), type_, _MIXED[0]) for type_ in _ALL for f in functions]


def _words_by_bytes(scalings: Scalings) -> Case:
    """PRELU of 16-bit elements takes 8-bit slopes."""
    a, b, y = (_affine(type_, scaling) for type_, scaling in zip((T.INT16, T.INT8, T.INT16), scalings, strict=True))
    inputs = [_random(T.INT16, (20, 30)), _random(T.INT8, (30,))]
    output = TensorSpec(T.INT16, None, quantization=y)
    name = f"INT16 by INT8 {scalings[0][0]}"
    return Case(name, PRELU, NoOptions(), inputs, quantization={0: a, 1: b}, outputs=(output,), device="quantized")


def _powers(op: Op, options: Any) -> list[Case]:
    cases = [_case(f"powers of two {i}", op, options, T.INT16, scalings) for i, scalings in enumerate(_POWERS)]
    return [replace(case, device="shifts") for case in cases] if options.pot_scale_int16 else cases


def _tiny(op: Op, options: Any) -> list[Case]:
    """Factors of 2**-30 to 2**-33, that is right shifts of 29 to 31, and then nothing at all."""
    scales = (1.9, 2.1, 4.0, 8.0)
    return [_case(f"to steps of {c}", op, options, T.INT16, ((2**-15, 0), (2**-15, 0), (c, 0))) for c in scales]


def _huge(op: Op, options: Any) -> list[Case]:
    """Factors of 2**31 and more, whose left shifts count modulo 32."""
    return [_case(f"steps of {a}", op, options, T.INT8, ((a, 3), (2.0**24, -5), (0.27, 1))) for a in (30.0, 90.0)]


def _large(op: Op, options: Any) -> list[Case]:
    """So many bytes that their pairs are looked up in a table."""
    shapes = (2, 40, 300), (300,)
    return [_case("large", op, options, type_, _MIXED[1], *shapes) for type_ in _PAIR]


CASES = (
    *_large(ops.ADD, ops.AddOptions(Activation.RELU6)),
    *_large(ops.MUL, ops.MulOptions()),
    *_tiny(ops.MUL, ops.MulOptions()),
    *_huge(ops.MUL, ops.MulOptions()),
    *_general(ops.ADD, ops.AddOptions(), _ALL),
    *_general(ops.SUB, ops.SubOptions(), _ALL),
    *_general(ops.MUL, ops.MulOptions(), _ALL),
    *_general(ops.DIV, ops.DivOptions(), _ALL),
    *(_by_constant(case) for case in _general(ops.DIV, ops.DivOptions(Activation.RELU6), _ALL)),
    *_activated(ops.ADD, ops.AddOptions),
    *_activated(ops.SUB, ops.SubOptions),
    *_activated(ops.MUL, ops.MulOptions),
    *_activated(ops.DIV, ops.DivOptions),
    *_powers(ops.ADD, ops.AddOptions()),
    *_powers(ops.SUB, ops.SubOptions()),
    *_powers(ops.ADD, ops.AddOptions(pot_scale_int16=False)),
    *_general(ops.SQUARED_DIFFERENCE, NoOptions(), (T.INT8,)),
    *_general(PRELU, NoOptions(), _PAIR)[:3],
    *_general(PRELU, NoOptions(), _PAIR)[4:7],
    *(_words_by_bytes(scalings) for scalings in _MIXED),
    *(_case("alpha a channel", PRELU, NoOptions(), type_, _MIXED[0], (2, 3, 4, 5), (1, 1, 5)) for type_ in _PAIR),
    *(case for op in COMPARISONS for case in _general(op, NoOptions(), _ALL)),
    *(_case("as integers", op, NoOptions(), type_, _SAME) for op in _INTEGERS[:2] for type_ in _ALL),
    *(_case("bits", op, NoOptions(), type_, _SAME) for op in _INTEGERS[2:] for type_ in _ALL),
    *(_case("steps of 1.4", ops.DIV, ops.DivOptions(), type_, ((1.4, 0), (2e-6, 0), (1.6e-4, 0))) for type_ in _ALL),
)
