"""``litecl.bisect`` names the operator that a runtime computes wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litecl
from litecl.bisection import Bisection, write_case
from litecl.delegate.native import compiler
from support.bisect_models import KERNELS, LOWERINGS, mislowered, planted, zoo

pytestmark = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor: pip install ziglang")
ON: dict[str, Any] = {"cache_dir": None, "num_threads": 1}


def again_of(case: Path) -> Bisection:
    """What the smallest model shows, of the files that were written."""
    return litecl.bisect(case / "case.tflite", "native", inputs=dict(np.load(case / "inputs.npz")), **ON)


def test_a_right_model() -> None:
    found = litecl.bisect(zoo(), "native", **ON)
    assert (found.verdict, found.output, found.fault, found.notes) == ("right", None, None, ())


@pytest.mark.parametrize("name", KERNELS)
def test_wrong_kernels(name: str, tmp_path: Path) -> None:
    file, text, wrong, op = KERNELS[name]
    (tmp_path / "kernels").mkdir()
    with planted(tmp_path / "kernels", file, text, wrong):
        found = litecl.bisect(zoo(), "native", **ON)
        assert found.verdict == "fault", found
        assert found.fault is not None
        assert found.fault.ops == (op,)
        write_case(found, tmp_path / "case")
        again = again_of(tmp_path / "case")
        assert again.fault is not None
        assert (again.fault.ops, again.nodes) == ((op,), 1)
    assert again_of(tmp_path / "case").verdict == "right"


@pytest.mark.parametrize("name", LOWERINGS)
def test_wrong_lowerings(name: str, tmp_path: Path) -> None:
    module, op, change = LOWERINGS[name]
    found = litecl.bisect(zoo(), "native", **ON, custom_ops=[mislowered(module, op, change)])
    assert found.verdict == "fault", found
    assert found.fault is not None
    assert found.fault.ops == (op,)
