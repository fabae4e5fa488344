"""The elementary functions of common.h against float64, in units of the last place of the exact result."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import devices
from litecl.delegate.device import Device
from litecl.interpreter.graph import Array

Function = Callable[[Array], Array]

_ERF = np.vectorize(math.erf)

# Units of the last place that each function may err by.
_BOUNDS: dict[str, tuple[Function, float]] = {
    "EXP": (np.exp, 1.0),
    "LOG": (np.log, 1.0),
    "LOGISTIC": (lambda x: 1 / (1 + np.exp(-x)), 3.0),
    "TANH": (np.tanh, 2.0),
    "ELU": (lambda x: np.where(x < 0, np.expm1(x), x), 2.0),
    "ERF": (lambda x: _ERF(x), 2.0),
}
_SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, -1e-38, 3e38, -3e38, 88.8, -88.0, -104.0, 89.0]
_LENGTH = 1 << 14


def _values(name: str, kind: str) -> Array:
    random = np.random.default_rng(7)
    if kind == "special":
        return np.resize(np.array(_SPECIAL, np.float32), 37)
    if kind == "every magnitude":
        x = np.exp2(random.uniform(-149, 128, _LENGTH)) * random.choice([-1, 1], _LENGTH)
    else:
        x = random.uniform(-1, 1, _LENGTH) * {"near zero": 1e-3, "small": 1.0, "ordinary": 10.0, "large": 110.0}[kind]
    return np.abs(x).astype(np.float32) if name == "LOG" else x.astype(np.float32)


@cache
def _opened(device: Any) -> Device:
    return Device(device, profile=False, cache_dir=None)


def _defines(name: str) -> dict[str, str]:
    if name in ("LOGISTIC", "TANH", "ELU"):
        return {"T": "float", "OP": "ACTIVATE", "ACTIVATION": f"ACTIVATION_{name}"}
    return {"T": "float", "OP": f"{name.lower()}_v"}


def _run(device: Device, name: str, x: Array) -> Array:
    kernel = device.kernel("unary", "unary", _defines(name))
    source, result = device.buffer(x.nbytes, x), device.buffer(x.nbytes)
    count = np.int32(x.size)
    kernel(device.queue, (1,), (1,), source, result, count, count, np.float32(0), np.float32(0))
    y = np.empty_like(x)
    cl.enqueue_copy(device.queue, y, result, is_blocking=True)
    return y


@pytest.mark.parametrize("kind", ["near zero", "small", "ordinary", "large", "every magnitude"])
@pytest.mark.parametrize("name", _BOUNDS)
@pytest.mark.parametrize("device", devices.tested(), ids=lambda device: device.name)
def test_error(device: Any, name: str, kind: str) -> None:
    """The error stays within the bound, subnormal results included, and infinities are where they belong."""
    function, bound = _BOUNDS[name]
    x = _values(name, kind)
    got = _run(_opened(device), name, x)
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64))
        expected = exact.astype(np.float32)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(got[~finite], expected[~finite])
    last_place = np.spacing(np.abs(expected[finite])).astype(np.float64)
    worst = np.max(np.abs(got[finite] - exact[finite]) / last_place)
    assert worst <= bound


@pytest.mark.parametrize("name", _BOUNDS)
@pytest.mark.parametrize("device", devices.tested(), ids=lambda device: device.name)
def test_special_values(device: Any, name: str) -> None:
    """Zeros, infinities, NaN, subnormal and huge numbers give what IEEE arithmetic gives."""
    x = _values(name, "special")
    with np.errstate(all="ignore"):
        expected = _BOUNDS[name][0](x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(_run(_opened(device), name, x), expected, rtol=3e-7)
