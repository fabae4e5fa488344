"""Every operator case on every backend, against ai_edge_litert's reference kernels."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import compare
import devices
import oracle
from cases import Case
from cases.tables import TABLES
from litecl.delegate import CLDelegate
from litecl.delegate.ops import CL_OPS
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.interpreter.writer import write

CASES = tuple(case for table in TABLES for case in table.CASES)
DEVICE_CASES = tuple(case for case in CASES if case.op in CL_OPS and case.on_device)


@cache
def content(case: Case) -> bytes:
    """The case as a file."""
    return write(case.model())


@cache
def expected(case: Case) -> list[Array]:
    """What the reference kernels make of it, or those that the case names."""
    return oracle.run(content(case), case.feeds, oracle.RESOLVERS[case.kernels])


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_interpreter(case: Case) -> None:
    """The numpy kernel agrees."""
    _check(case, Interpreter(model_content=content(case)), compare.INTERPRETER)


@pytest.mark.parametrize("case", DEVICE_CASES, ids=repr)
@pytest.mark.parametrize("device", devices.tested(), ids=lambda device: device.name)
def test_device(device: Any, case: Case) -> None:
    """The device kernel agrees, and the device claims what it is expected to claim."""
    interpreter = Interpreter(model_content=content(case), delegates=[CLDelegate(device=device)])
    _check(case, interpreter, compare.DEVICE)
    (row,) = interpreter.delegation_report().nodes
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
