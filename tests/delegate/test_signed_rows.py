"""A row of signed bytes times weights of its own, for processors of each level that this one can stand in for."""

from dataclasses import replace

import numpy as np
import pytest

from litecl.cases import Case
from litecl.cases.hybrid import CASES as HYBRID
from litecl.cases.integer_device import CASES as INTEGERS
from litecl.delegate import CLDelegate
from litecl.delegate.backend.sources import Defines
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.native import compiler
from litecl.delegate.native.backend import NativeFound
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.schema import TensorType
from support.by_name import Fed, agrees, launches
from support.levels import stand_in

_LEVELS = {4: ("x86-64-v2", "__SSSE3__"), 8: ("x86-64-v3", "__AVX2__")}
_KERNELS = "quantized_conv_2d", "hybrid_conv_2d"


def _fed(case: Case) -> Fed:
    return write(case.model()), list(case.feeds)


def _signed(case: Case, width: int, *, able: bool = True) -> list[tuple[str, Defines]]:
    """Return the kernels, with their macros, that multiply signed rows on a CPU with vectors of so many lanes."""
    of_all = launches(_fed(case), CpuTarget(width, 1, signed_rows=able))
    return [(launch.kernel, launch.defines) for launch in of_all if "SIGNED_ROW" in dict(launch.defines)]


def _extreme(case: Case, least: int, units: int) -> Case:
    """The case with whole fours, and numbers whose products are largest in every pair. least: one of the weights."""
    x, weights, bias = case.inputs
    assert x is not None and weights is not None and bias is not None
    depth = x.shape[1] // 4 * 4
    extremes: Array = np.where(np.indices((units, depth)).sum(0) // 2 % 2, 127, -127).astype(np.int8)
    extremes[:, :2] = least
    inputs = [np.full_like(x[:, :depth], -128), extremes, bias[:units]]
    return replace(case, name=f"{depth} x {units}, down to {least}", inputs=inputs)


def _narrow(case: Case, least: int) -> Case:
    """The case with weights of 4 bits. least: one of them."""
    x, weights, bias = case.inputs
    assert weights is not None
    narrow: Array = np.clip(weights, -7, 7)
    narrow[:, 0] = least
    name = f"4 bits, down to {least}"
    return replace(case, name=name, types={1: TensorType.INT4}, inputs=[x, narrow, bias])


_ALL = [case for case in (*INTEGERS, *HYBRID) if case.op == FULLY_CONNECTED and case.kernels == "reference"]
_BYTES = [case for case in _ALL if case.name in ("INT8, 1 x 17 x 33", "INT8, 1 x 130 x 100")]
_EXTREME = [_extreme(case, least, units) for case in _BYTES for least in (-127, -128) for units in (3, 33)]
_ROWS = [case for case in HYBRID if case.name == "8 bits, 1 x 16 to 33"]
_FOUR_BITS = [_narrow(case, least) for case in _ROWS for least in (-7, -8)]
_SIGNED = [(case, width) for width in _LEVELS for case in (*_ALL, *_EXTREME, *_FOUR_BITS) if _signed(case, width)]


def test_whose_rows_are_signed() -> None:
    signed = {case.name for case, _ in _SIGNED}
    assert (len(_EXTREME), len(_FOUR_BITS)) == (8, 2)
    assert all((case.name in signed) == case.name.endswith("7") for case in (*_EXTREME, *_FOUR_BITS))
    macros = [(name, dict(defines)) for case, width in _SIGNED for name, defines in _signed(case, width)]
    assert set(_KERNELS) == {name for name, _ in macros}
    assert {None, 4} <= {defines.get("WEIGHT_BITS") for _, defines in macros}
    assert {None, 1} <= {defines.get("ACROSS") for _, defines in macros}
    assert not any(_signed(case, width, able=False) for case, width in _SIGNED)


@pytest.mark.parametrize("width", _LEVELS)
@pytest.mark.parametrize("case", [*_EXTREME, *_FOUR_BITS], ids=lambda case: case.name)
def test_extremes(case: Case, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, *_LEVELS[width])
    agrees(_fed(case), [CLDelegate(device="native", num_threads=1, strict=True)])


@pytest.mark.parametrize(("case", "width"), _SIGNED, ids=lambda each: getattr(each, "name", str(each)))
def test_numbers(case: Case, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, *_LEVELS[width])
    agrees(_fed(case), [CLDelegate(device="native", num_threads=1, strict=True)])


@pytest.mark.parametrize(
    ("level", "signed"),
    [("x86-64", 0), ("x86-64-v2", 1), ("sandybridge", 0), ("x86-64-v3", 1), ("alderlake", 0), ("x86-64-v4", 0)],
)
def test_processors(level: str, signed: int) -> None:
    compiled = compiler.found(None)
    if compiled is None or "__x86_64__" not in compiled.macros:
        pytest.skip("no compiler for x86-64")
    lower = replace(compiled, target=(f"-march={level}",), known=None)
    assert NativeFound(lower).target().signed_rows == bool(signed)
