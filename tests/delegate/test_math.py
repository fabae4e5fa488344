"""The elementary functions of common.h against float64, in units of the last place of the exact result."""

import math
from collections.abc import Callable, Set
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case, hybrid
from litecl.delegate import CLDelegate
from litecl.delegate.native.backend import Native
from litecl.delegate.opencl.probes.capabilities import capabilities
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import unary
from litecl.interpreter.ops.gelu import GELU, GeluOptions
from support import devices

_KINDS = {"near zero": 1e-3, "small": 1.0, "ordinary": 10.0, "large": 110.0, "every magnitude": None}
_SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, -1e-38, 3e38, -3e38, 88.8, -88.0, -104.0, 89.0]
_LENGTH = 1 << 14

# What each computes, and the units of the last place by which it may err.
_FUNCTIONS: dict[Op, tuple[Callable[[Array], Array], float]] = {
    unary.EXP: (np.exp, 1.0),
    unary.LOG: (np.log, 1.0),
    unary.LOGISTIC: (lambda x: 1 / (1 + np.exp(-x)), 3.0),
    unary.TANH: (np.tanh, 2.0),
    unary.ELU: (lambda x: np.where(x < 0, np.expm1(x), x), 2.0),
}
_WITHOUT_FMA = {unary.TANH: 2.5}  # measured: 2.41, where products are rounded before they are added
_OPS = pytest.mark.parametrize("op", _FUNCTIONS, ids=lambda op: op.name)


def _macros(device: Any) -> Set[str]:
    """Return the names of the macros that a device's compiler defines for its processor, of those that matter here."""
    if device == "native":
        (native,) = Native().devices()
        return native.compiler.macros.keys()
    return capabilities(device).macros


def _values(largest: float | None) -> Array:
    random = np.random.default_rng(7)
    if largest is None:
        return (np.exp2(random.uniform(-149, 128, _LENGTH)) * random.choice([-1, 1], _LENGTH)).astype(np.float32)
    return (random.uniform(-1, 1, _LENGTH) * largest).astype(np.float32)


def _run(device: Any, op: Op, options: Any, x: Array) -> Array:
    interpreter = Interpreter(Case("", op, options, [x]).model(), delegates=[CLDelegate(device=device, strict=True)])
    interpreter.allocate_tensors()
    assert interpreter.delegation_report().nodes[0].claimed
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


@devices.on_each
@_OPS
@pytest.mark.parametrize("kind", _KINDS)
def test_error(device: Any, op: Op, kind: str) -> None:
    """The error stays within the bound, subnormal results included, and infinities are where they belong."""
    function, bound = _FUNCTIONS[op]
    if {"__x86_64__", "__FMA__"} & _macros(device) == {"__x86_64__"}:
        bound = _WITHOUT_FMA.get(op, bound)
    x = np.abs(_values(_KINDS[kind])) if op is unary.LOG else _values(_KINDS[kind])
    got = _run(device, op, NoOptions(), x)
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64))
        expected = exact.astype(np.float32)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(got[~finite], expected[~finite])
    last_place = np.spacing(np.abs(expected[finite])).astype(np.float64)
    assert np.max(np.abs(got[finite] - exact[finite]) / last_place) <= bound


@devices.on_each
@_OPS
def test_special_values(device: Any, op: Op) -> None:
    """Zeros, infinities, NaN, subnormal and huge numbers give what IEEE arithmetic gives."""
    x = np.resize(np.array(_SPECIAL, np.float32), 37)
    with np.errstate(all="ignore"):
        expected = _FUNCTIONS[op][0](x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(_run(device, op, NoOptions(), x), expected, rtol=3e-7)


@devices.on_each
@pytest.mark.parametrize("approximate", [False, True])
def test_gelu(device: Any, approximate: bool) -> None:
    """GELU errs by little, measured by its argument: 1 + erf(x) and 1 + tanh(x) vanish where x is very negative."""
    x = _values(10.0)
    wide = x.astype(np.float64)
    if approximate:
        exact = 0.5 * wide * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
    else:
        exact = 0.5 * wide * (1 + np.vectorize(math.erf)(wide * math.sqrt(0.5)))
    got = _run(device, GELU, GeluOptions(approximate), x)
    assert np.max(np.abs(got - exact) / np.spacing(np.abs(x))) <= 3


@devices.on_each
def test_rows_of_zeros_give_the_bias(device: Any) -> None:
    """A row without a range has a scale of 1: what its zero point times the weights leaves is not small beside it."""
    (case,) = (case for case in hybrid.CASES if case.name == "4 bits, many blocks")
    by = case.quantization[1]
    scales = by.scale.astype(np.float32) * np.float32(1 / 3)  # of 24 bits: their sums are rounded
    model = replace(case, quantization={1: replace(by, scale=scales)}).model()
    interpreter = Interpreter(model, delegates=[CLDelegate(device=device, strict=True)])
    interpreter.allocate_tensors()
    interpreter.invoke()
    bias = case.inputs[2]
    out = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(out, np.broadcast_to(bias, out.shape))
