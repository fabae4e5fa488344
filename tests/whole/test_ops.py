"""Every operator case on every backend, against ai_edge_litert's reference kernels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.ops import OPS
from support import compare, devices
from support.all_cases import CASES, DEVICE_CASES, content, expected

ELSEWHERE = {
    "test_device_loops.py": "IF WHILE",
    "test_live_memory.py": "CALL",
    "test_resources.py": "ASSIGN_VARIABLE CALL_ONCE HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE "
    "READ_VARIABLE VAR_HANDLE",
    "test_stablehlo.py": "STABLEHLO_CASE STABLEHLO_COMPOSITE STABLEHLO_REDUCE_WINDOW STABLEHLO_SCATTER",
    "test_densify.py": "DENSIFY",
    "test_max_unpooling.py": "LiteRtMaxUnpooling2D MaxPoolingWithArgmax2D MaxUnpooling2D",
    "test_signal.py": "SignalDelay SignalEnergy SignalFftAutoScale SignalFilterBank SignalFilterBankLog "
    "SignalFilterBankSpectralSubtraction SignalFilterBankSquareRoot SignalFramer SignalIrfft SignalOverlapAdd "
    "SignalPCAN SignalRfft SignalStacker SignalWindow",
}
"""The operators that have no case, by the file with their tests."""


def test_every_operator_has_cases_or_tests_of_its_own() -> None:
    """These run subgraphs, keep state, read what a case cannot hold, or are strangers to LiteRT."""
    without = {op.name for op in OPS} - {case.op.name for case in CASES}
    named = [(name, file) for file, names in ELSEWHERE.items() for name in names.split()]
    assert without == {name for name, _ in named}
    text = {file: next(Path(__file__).parents[1].rglob(file)).read_text() for file in ELSEWHERE}
    assert not [place for place in named if place[0] not in text[place[1]]]


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_interpreter(case: Case) -> None:
    """The numpy kernel agrees."""
    _check(case, Interpreter(model_content=content(case)), compare.INTERPRETER)


@pytest.mark.parametrize("case", DEVICE_CASES, ids=repr)
@pytest.mark.parametrize("device", devices.tested(), ids=lambda device: device.name)
def test_device(device: Any, case: Case) -> None:
    """The device kernel agrees, and the device claims what it is expected to claim, if anything is expected."""
    interpreter = Interpreter(model_content=content(case), delegates=[CLDelegate(device=device)])
    _check(case, interpreter, compare.DEVICE)
    (row,) = interpreter.delegation_report().nodes
    if case.on_device:
        assert row.claimed == (case.device is None), row.reason or "claimed"


def _check(case: Case, interpreter: Interpreter, tolerances: dict[str, float]) -> None:
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), case.feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    got = [np.asarray(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]
    for a, b in zip(got, expected(case), strict=True):
        tolerance = tolerances.get(b.dtype.name, 0.0) if case.tolerance is None else case.tolerance
        compare.assert_close(a, b, tolerance)
