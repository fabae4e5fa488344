"""Every operator case on every backend, against ai_edge_litert's reference kernels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cases import Case
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.interpreter.ops import every_op, unary
from litecl.verify.refusals import device_refusal
from support import compare, devices
from support.all_cases import CASES, DEVICE_CASES, content, expected

ELSEWHERE = {
    "test_device_loops.py": "IF WHILE",
    "test_live_memory.py": "CALL",
    "test_resources.py": "ASSIGN_VARIABLE CALL_ONCE HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE "
    "READ_VARIABLE VAR_HANDLE",
    "test_stablehlo.py": "STABLEHLO_CASE STABLEHLO_COMPOSITE STABLEHLO_REDUCE_WINDOW STABLEHLO_SCATTER STABLEHLO_SORT",
    "test_checkpoints.py": "litecl.Restore litecl.Save",
    "test_densify.py": "DENSIFY",
    "test_strings.py": "litecl.AsString litecl.RegexFullMatch litecl.RegexReplace litecl.StringJoin "
    "litecl.StringLength litecl.StringLower litecl.StringSplit litecl.StringStrip litecl.StringToHashBucket "
    "litecl.StringToNumber litecl.StringUpper litecl.Substr",
    "test_max_unpooling.py": "LiteRtMaxUnpooling2D MaxPoolingWithArgmax2D MaxUnpooling2D",
    "test_signal.py": "SignalDelay SignalEnergy SignalFftAutoScale SignalFilterBank SignalFilterBankLog "
    "SignalFilterBankSpectralSubtraction SignalFilterBankSquareRoot SignalFramer SignalIrfft SignalOverlapAdd "
    "SignalPCAN SignalRfft SignalStacker SignalWindow",
    "test_convert_raw_operators.py": "litecl.BesselI0 litecl.BesselI0e litecl.BesselI1 litecl.BesselI1e "
    "litecl.BesselJ0 litecl.BesselJ1 litecl.BesselK0 litecl.BesselK0e litecl.BesselK1 litecl.BesselK1e "
    "litecl.Betainc litecl.CTCBeamSearchDecoder litecl.DecodeBase64 litecl.DecodeRaw litecl.DecodeWav "
    "litecl.EncodeBase64 litecl.EncodeWav litecl.Fingerprint litecl.Igamma litecl.Igammac "
    "litecl.Lu litecl.MatrixSolveLs litecl.MatrixSquareRoot litecl.ParseExample litecl.Polygamma litecl.Qr "
    "litecl.RandomGamma litecl.RandomPoisson litecl.ReduceJoin litecl.SelfAdjointEig litecl.ShardedFilename "
    "litecl.ShardedFilespec litecl.SparseCross litecl.SparseCrossHashed litecl.SparseCrossTexts "
    "litecl.StatelessIntegers litecl.StatelessKey litecl.StatelessMultinomial litecl.StatelessNormal "
    "litecl.StatelessTruncatedNormal litecl.StatelessUniform litecl.StringNGrams litecl.StringSplitAt "
    "litecl.StringToBucket litecl.Svd litecl.TridiagonalSolve litecl.UnicodeDecode "
    "litecl.UnicodeDecodeWithOffsets litecl.UnicodeEncode litecl.UnicodeTranscode litecl.UnsortedSegmentJoin "
    "litecl.Zeta",
}
"""The operators that have no case, by the file with their tests."""


def test_every_operator_has_cases_or_tests_of_its_own() -> None:
    """Operators without cases run subgraphs, keep state, read what a case cannot hold, or are unknown to LiteRT."""
    without = {op.name for op in every_op()} - {case.op.name for case in CASES}
    named = [(name, file) for file, names in ELSEWHERE.items() for name in names.split()]
    assert without == {name for name, _ in named}
    text = {file: next(Path(__file__).parents[1].rglob(file)).read_text() for file in ELSEWHERE}
    assert not [place for place in named if place[0] not in text[place[1]]]


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_interpreter(case: Case) -> None:
    """The numpy kernel agrees."""
    _check(case, Interpreter(model_content=content(case)), compare.INTERPRETER)


@pytest.mark.parametrize("case", DEVICE_CASES, ids=repr)
@devices.on_each
def test_device(device: Any, case: Case) -> None:
    """The device kernel agrees, and the device claims the case as expected."""
    num_threads = 2 if device == "native" else None
    delegate = CLDelegate(device, num_threads=num_threads, dynamic_range="reference")
    interpreter = Interpreter(model_content=content(case), delegates=[delegate])
    _check(case, interpreter, compare.DEVICE)
    report = interpreter.delegation_report()
    if case.on_device:
        assert report.nodes[0].claimed == (case.device is None), f"{report.nodes[0].reason} {report.failures}"
    if device == "native":
        assert report.nodes[0].reason == (device_refusal(case) or ""), "docs/operators.md says otherwise"


KEEPING_ZEROS = (unary.RELU, unary.RELU6, unary.RELU_0_TO_1, unary.RELU_N1_TO_1, unary.SIGN)
ZEROS = [case for case in CASES if case.op in KEEPING_ZEROS and case.name in ("edges", "infinities and NaN")]


@pytest.mark.parametrize("case", ZEROS, ids=repr)
@devices.on_each_and_the_cpu
def test_signs_of_zeros(device: Any, case: Case) -> None:
    """Later operators, such as ATAN2 or a division, distinguish -0 from 0."""
    delegates = [] if device is None else [CLDelegate(device=device)]
    (got,) = _outputs(case, Interpreter(model_content=content(case), delegates=delegates))
    (wanted,) = expected(case)
    np.testing.assert_array_equal(np.signbit(got[wanted == 0]), np.signbit(wanted[wanted == 0]))


def _outputs(case: Case, interpreter: Interpreter) -> list[Array]:
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), case.feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    return [np.asarray(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


def _check(case: Case, interpreter: Interpreter, tolerances: dict[str, float]) -> None:
    for a, b in zip(_outputs(case, interpreter), expected(case), strict=True):
        tolerance = tolerances.get(b.dtype.name, 0.0) if case.tolerance is None else case.tolerance
        compare.assert_close(a, b, tolerance)
