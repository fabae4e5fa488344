"""Kernels for processors without vectors, such as microcontrollers, whose vectors have one number: run here."""

from dataclasses import replace
from pathlib import Path

import pytest

from litecl.cases import Case
from litecl.delegate import CLDelegate
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.native import compiler
from litecl.delegate.native.backend import NativeFound
from litecl.interpreter import Interpreter
from litecl.interpreter.dataclass import dataclass
from support import compare
from support.all_cases import DEVICE_CASES, content, expected
from support.exported import needs_zig


@dataclass(frozen=True)
class WithoutVectors(NativeFound):
    """This processor, whose vectors are not used."""

    def target(self, directory: Path | None = None) -> CpuTarget:
        """See ``FoundDevice``."""
        return replace(super().target(directory), vector_width=1, takes_turns=False)


@needs_zig
@pytest.mark.nightly
@pytest.mark.parametrize("case", DEVICE_CASES[::7], ids=repr)
def test_cases(case: Case) -> None:
    """Of all operators, and all types of products."""
    found = compiler.found()
    assert found is not None
    delegate = CLDelegate(device=WithoutVectors(found), num_threads=1, dynamic_range="reference")
    interpreter = Interpreter(model_content=content(case), delegates=[delegate])
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), case.feeds, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    assert not interpreter.delegation_report().failures
    for detail, wanted in zip(interpreter.get_output_details(), expected(case), strict=True):
        tolerance = compare.DEVICE.get(wanted.dtype.name, 0.0) if case.tolerance is None else case.tolerance
        compare.assert_close(interpreter.get_tensor(detail["index"]), wanted, tolerance)
