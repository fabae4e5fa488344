"""The launch shapes that a GPU gets, run on whatever device there is: many work-items of a vector each, in groups."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compare
import devices
import oracle
from cases import Case, hybrid, integer_device, vector_width
from litecl.delegate import CLDelegate, device
from litecl.interpreter import Interpreter
from litecl.interpreter.writer import write

_TABLES = (vector_width.CASES, integer_device.CASES[::8], hybrid.CASES[::7])
_CASES = tuple(case for table in _TABLES for case in table if case.device is None)


@pytest.fixture(scope="module")
def delegate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CLDelegate]:
    """A delegate that takes the first device for a GPU; with a cache of its own, so that it opens the device anew."""
    real = device.target_of
    cache: Path = tmp_path_factory.mktemp("programs")

    def gpu(opened: Any, *rest: Any) -> Any:
        return replace(real(opened, *rest), kind="gpu", vector_width=4)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "target_of", gpu)
        yield CLDelegate(device=devices.tested()[0], cache_dir=cache)


@pytest.mark.parametrize("case", _CASES, ids=repr)
def test_agrees(delegate: CLDelegate, case: Case) -> None:
    """The result is the one that the reference kernels compute."""
    content = write(case.model())
    interpreter = Interpreter(model_content=content, delegates=[delegate])
    interpreter.allocate_tensors()
    assert all(row.claimed for row in interpreter.delegation_report().nodes)
    for detail, feed in zip(interpreter.get_input_details(), case.feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    for detail, expected in zip(interpreter.get_output_details(), oracle.run(content, case.feeds), strict=True):
        got = np.asarray(interpreter.get_tensor(detail["index"]))
        compare.assert_close(got, expected, compare.DEVICE.get(expected.dtype.name, 0.0))
