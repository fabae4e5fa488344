"""Quotients and comparisons of quantized tensors on devices: all pairs of bytes, words at random, and divisors of 0."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.cases.quantize import affine
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import binary, compare
from litecl.interpreter.schema import TensorType as T
from litecl.perf.feeds import run_on
from support import devices
from support.all_cases import content, expected

_COMPARISONS = (
    *(compare.EQUAL, compare.NOT_EQUAL),
    *(compare.LESS, compare.LESS_EQUAL, compare.GREATER, compare.GREATER_EQUAL),
)
# Scales of both inputs and of a quotient: equal, unlike, of coarse quotients, of ones that saturate, beyond 1.
_SCALES = ((0.06, 0.06, 0.06), (0.11, 0.03, 0.8), (2**-12, 2**-9, 3.1), (3.7, 0.002, 0.9), (900.0, 1.5, 40.0))


def _pairs(type_: T, zeros: tuple[int, int]) -> tuple[Array, Array]:
    """All pairs of bytes; random words, half of them close to each other, with the ends."""
    if type_ != T.INT16:
        x, y = np.meshgrid(*[np.arange(256).astype(np.uint8).view(type_.dtype)] * 2, indexing="ij")
        return x.reshape(-1), y.reshape(-1)
    rng = np.random.default_rng(8)
    x = rng.integers(-(1 << 15), 1 << 15, 40000)
    y = np.where(rng.random(x.size) < 0.5, rng.integers(-(1 << 15), 1 << 15, x.size), x + rng.integers(-3, 4, x.size))
    ends = np.array([-(1 << 15), -(1 << 15) + 1, -1, 0, 1, (1 << 15) - 1])
    x[:36], y[:36] = np.repeat(ends, 6), np.tile(ends, 6)
    return x.astype(np.int16), np.clip(y, -(1 << 15), (1 << 15) - 1).astype(np.int16)


def _case(op: Op, type_: T, scales: Sequence[float], zeros: tuple[int, int, int], x: Array, y: Array) -> Case:
    options = binary.DivOptions() if op is binary.DIV else NoOptions()
    output = TensorSpec(T.BOOL, None)
    if op is binary.DIV:
        output = TensorSpec(type_, None, quantization=affine(scales[2], zeros[2]))
    quantization = {0: affine(scales[0], zeros[0]), 1: affine(scales[1], zeros[1])}
    return Case("", op, options, [x, y], quantization=quantization, outputs=(output,))


def _run(case: Case, delegates: list[CLDelegate]) -> Array:
    interpreter = Interpreter(model_content=content(case), delegates=delegates)
    run_on(interpreter, case.feeds)
    if delegates:
        report = interpreter.delegation_report()
        assert report.nodes[0].claimed and not report.failures
    return np.asarray(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


def _zeros(type_: T) -> tuple[int, int, int]:
    return {T.INT8: (3, -7, 5), T.UINT8: (131, 100, 128), T.INT16: (0, 0, 0)}[type_]


@devices.on_each_and_the_cpu
@pytest.mark.parametrize("type_", [T.INT8, T.UINT8, T.INT16], ids=lambda type_: type_.name)
@pytest.mark.parametrize("op", [binary.DIV, *_COMPARISONS], ids=lambda op: op.name)
def test_pairs(op: Op, type_: T, device: Any) -> None:
    zeros = _zeros(type_)
    x, y = _pairs(type_, zeros[:2])
    if op is binary.DIV:
        x, y = (array[y != zeros[1]] for array in (x, y))
    for scales in _SCALES:
        case = _case(op, type_, scales, zeros, x, y)
        # LiteRT's comparisons shift by a negative number of places where a scale is above 1, and are no standard there.
        beyond = op is not binary.DIV and max(scales[:2]) > 1
        wanted = _run(case, []) if beyond else expected(case)[0]
        assert len(np.unique(wanted)) > 1
        np.testing.assert_array_equal(_run(case, devices.delegates(device, num_threads=2)), wanted)


@devices.on_each
@pytest.mark.parametrize("type_", [T.INT8, T.UINT8, T.INT16], ids=lambda type_: type_.name)
def test_divisors_of_0(type_: T, device: Any) -> None:
    """The CPU reports them; a device goes to the end of the range, as floats go to infinity."""
    zeros, limits = _zeros(type_), np.iinfo(type_.dtype)
    x = np.array([limits.min, zeros[0] - 1, zeros[0], zeros[0] + 1, limits.max, zeros[0] + 9], type_.dtype)
    y = np.array([zeros[1]] * 5 + [zeros[1] + 3], type_.dtype)
    case = _case(binary.DIV, type_, (0.5, 0.5, 1.0), zeros, x, y)
    with pytest.raises(ModelError, match="division by 0"):
        _run(case, [])
    wanted = [limits.min, limits.min, zeros[2], limits.max, limits.max, zeros[2] + 3]
    np.testing.assert_array_equal(_run(case, [CLDelegate(device)]), np.array(wanted, type_.dtype))
