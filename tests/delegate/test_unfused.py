"""Processors without fused multiply-add: operations that round once elsewhere round once there too."""

from dataclasses import replace
from fractions import Fraction
from math import floor

import numpy as np
import pytest

from litecl.delegate.native import backend, compiler
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops import binary
from litecl.perf.models.build import Graph, model
from support.small_models import prepared

_FOUND = compiler.found()


@pytest.mark.skipif(_FOUND is None or "__x86_64__" not in _FOUND.macros, reason="no compiler for an x86-64 processor")
@pytest.mark.parametrize("processor", ["x86-64", "sandybridge", "native"])
def test_quotients_that_are_nearly_whole(processor: str) -> None:
    """A float's product with a whole number, rounded, divided by that float again: floors of the exact quotients."""
    assert _FOUND is not None
    rng, count = np.random.default_rng(9), 4000
    divisors = rng.uniform(0.5, 2, count).astype(np.float32) * rng.choice([-1, 1], count).astype(np.float32)
    dividends = divisors * rng.integers(1, 1000, count).astype(np.float32)
    graph = Graph()
    a, b = graph.input((count,)), graph.input((count,))
    divided = model(graph.build(graph.op(binary.FLOOR_DIV, [a, b], NoOptions())))
    device = backend.NativeFound(replace(_FOUND, target=(f"-march={processor}",), known=None))
    interpreter = prepared(divided, device=device, strict=True)
    interpreter.set_tensor(a, dividends)
    interpreter.set_tensor(b, divisors)
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    wanted = [floor(Fraction(float(x)) / Fraction(float(y))) for x, y in zip(dividends, divisors, strict=True)]
    np.testing.assert_array_equal(got, np.array(wanted, np.float32))
