"""Convolutions of bytes whose weights lie in pairs, for processors of each level that this one can stand in for."""

import pytest

from litecl.cases import Case
from litecl.cases.integer_device import CASES
from litecl.delegate import CLDelegate
from litecl.delegate.cpu.target import CpuTarget
from litecl.interpreter.file.writer import write
from litecl.interpreter.schema import TensorType
from support.by_name import Fed, agrees, launches
from support.levels import stand_in

_LEVELS = {4: ("x86-64-v2", "__SSSE3__"), 8: ("x86-64-v3", "__AVX2__")}


def _fed(case: Case) -> Fed:
    return write(case.model()), list(case.feeds)


def _paired(case: Case, width: int, *, able: bool = True) -> bool:
    of_all = launches(_fed(case), CpuTarget(width, 1, byte_pairs=able))
    return any("PAIRED" in dict(launch.defines) for launch in of_all)


_PAIRED = [(case, width) for width in _LEVELS for case in CASES if _paired(case, width)]


def test_which_weights_lie_in_pairs() -> None:
    assert {case.types[0] for case, _ in _PAIRED} == {TensorType.INT8, TensorType.UINT8}
    assert {case.op.name for case, _ in _PAIRED} >= {"CONV_2D", "FULLY_CONNECTED"}
    assert not any(_paired(case, width, able=False) for case, width in _PAIRED)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("case", "width"), _PAIRED, ids=lambda each: f"{each.op.name} {each.name}" if isinstance(each, Case) else str(each)
)
def test_numbers(case: Case, width: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, *_LEVELS[width])
    agrees(_fed(case), [CLDelegate(device="native", num_threads=threads, strict=True)])
