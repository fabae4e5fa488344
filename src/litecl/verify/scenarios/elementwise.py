"""Chains of element-wise operators, which run as one kernel: special values, odd sizes and high ranks."""

from collections.abc import Callable

import numpy as np

from litecl.interpreter.graph import Array, Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, MAXIMUM, MUL, AddOptions, MulOptions
from litecl.interpreter.ops.unary import ABS, NEG, RELU, TANH
from litecl.perf.models.build import Graph, model
from litecl.verify.check import Check, Step
from litecl.verify.scenarios.scenario import scenario

_NONE = NoOptions()
_SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e38, -1e38, 1e-38, 3.0, -7.5], np.float32)
_DENORMAL = np.array([1e-40, -1e-40, 2e-41, 1.4e-45, -1.4e-45, 1e-39, -1e-39, 0.0], np.float32)
_SIZES = ((1,), (3,), (5, 7), (17,), (1, 1, 9), (3, 65), (131,), (2, 1, 2, 1, 3, 1))


def _chain(shape: tuple[int, ...]) -> Model:
    """Return a model of relu(max(-x, |x| / 2) + x) and its tanh."""
    g = Graph()
    x = g.input(shape)
    half = g.op(MUL, [g.op(ABS, [x], _NONE), g.const(np.float32(0.5))], MulOptions())
    larger = g.op(MAXIMUM, [g.op(NEG, [x], _NONE), half], _NONE)
    y = g.op(RELU, [g.op(ADD, [larger, x], AddOptions())], _NONE)
    return model(g.build(y, g.op(TANH, [y], _NONE)))


def _exact(shape: tuple[int, ...]) -> Model:
    """Return a model of max(-x, |x|), which is exact."""
    g = Graph()
    x = g.input(shape)
    return model(g.build(g.op(MAXIMUM, [g.op(NEG, [x], _NONE), g.op(ABS, [x], _NONE)], _NONE)))


def _check(name: str, build: Callable[[tuple[int, ...]], Model], x: Array, tolerance: float | None = None) -> Check:
    return scenario(name, "chain", lambda: build(x.shape), lambda: [Step([x])], tolerance=tolerance)


CHECKS = (
    _check("NaN and infinities", _chain, _SPECIAL),
    _check("NaN and infinities, 41 elements", _chain, np.resize(_SPECIAL, 41)),
    _check("denormal numbers are kept", _exact, _DENORMAL, 0.0),
    *(
        _check(f"size {list(shape)}", _chain, np.linspace(-4, 4, int(np.prod(shape)), dtype=np.float32).reshape(shape))
        for shape in _SIZES
    ),
)
