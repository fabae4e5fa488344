"""POW by constant exponents on devices, which multiplies: against float64, in units of the last place."""

import numpy as np
import pytest

from litecl.cases import Case
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import POW
from litecl.perf.feeds import run_on
from support import devices
from support.all_cases import content

_TINY, _LARGEST = np.float32(1e-45), np.finfo(np.float32).max
_SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, _TINY, -_TINY, _LARGEST, -_LARGEST, 1e-19, 1e19, 3e-39], np.float32
)


def _run(x: Array, exponent: float, device: object) -> Array:
    case = Case("", POW, NoOptions(), [x, np.array(exponent, np.float32)], frozenset({1}))
    interpreter = Interpreter(model_content=content(case), delegates=[CLDelegate(device)])
    (output,) = run_on(interpreter, [x])
    report = interpreter.delegation_report()
    assert report.nodes[0].claimed and not report.failures
    return output


@devices.on_each
@pytest.mark.parametrize("exponent", [0, -0.0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, -1, -2, -3, -4, -16, 0.5])
def test_exponents(exponent: float, device: object) -> None:
    """Every product and every reciprocal rounds by half a unit, and a power multiplies what its base is off by."""
    rng = np.random.default_rng(4)
    ordinary = np.exp(rng.uniform(-5, 5, 999)) * (1 if exponent == 0.5 else rng.choice([-1, 1], 999))
    wide = np.exp(rng.uniform(-80, 80, 999))
    x = np.concatenate([_SPECIAL, ordinary, wide]).astype(np.float32)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), np.full(x.size, exponent))  # of one exponent numpy may take a root
        wanted = exact.astype(np.float32)
    units = 0.501 if abs(exponent) <= 2 and exponent != -2 else abs(exponent) + 1
    got = _run(x, exponent, device)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    np.testing.assert_array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(wanted)[~np.isnan(got)])
    known = np.isfinite(wanted) & np.isfinite(got)
    np.testing.assert_array_equal(got[~known], wanted[~known])
    unit = np.spacing(np.abs(wanted[known])).astype(np.float64)
    assert (np.abs(got[known] - exact[known]) <= units * unit).all()
