"""Matrix units are probed: what a device should have, whether it computes that, and how long the answer holds."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyopencl as cl
import pytest

from litecl.delegate.gpu.properties import MATRIX_UNITS, MatrixUnit
from litecl.delegate.opencl.probes import capabilities, matrix_probe
from litecl.delegate.opencl.probes.gpu import matrix_of
from support import devices


def emulated(name: str) -> MatrixUnit:
    return replace(MATRIX_UNITS[name], emulated=True)


@pytest.mark.parametrize("name", MATRIX_UNITS)
def test_the_probe(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit that computes what it should is found right, one that loses a product, or a sum, is not."""
    opened, unit = devices.tested()[0], emulated(name)
    assert matrix_probe.fault_of(opened, unit) == ""
    text = matrix_probe.source_of("matrix_unit.cl")
    for right, wrong in {
        "k < UNIT_DEPTH; ++k": "k < UNIT_DEPTH - 1; ++k",
        "return sums;": "return sums * 0.0f;",
    }.items():
        assert right in text
        monkeypatch.setattr(matrix_probe, "source_of", lambda file, a=right, b=wrong: text.replace(a, b))
        assert matrix_probe.fault_of(opened, unit).endswith(f"of {unit.rows * unit.columns} sums are wrong")


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("", ("mma", "", True)),
        ("3 of 128 sums are wrong", ("", "3 of 128 sums are wrong", True)),
        (cl.status_code.BUILD_PROGRAM_FAILURE, ("", "refused", True)),
        (cl.status_code.OUT_OF_RESOURCES, ("", "refused", False)),
    ],
)
def test_what_was_probed_is_kept(
    fault: Any, found: tuple[str, str, bool], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A unit that errs or is refused is left out for good, one that fails in another way for this process."""

    def probe(*_: Any) -> str:
        if isinstance(fault, str):
            return fault
        raise cl.Error(
            SimpleNamespace(routine=lambda: "probe", code=lambda: fault, what=lambda: "refused", __str__=str)
        )

    real = devices.tested()[0]
    asked = SimpleNamespace(int_ptr=real.int_ptr, type=cl.device_type.GPU, name="GPU", platform=real.platform)
    monkeypatch.setattr(capabilities, "_known", {})
    monkeypatch.setattr(capabilities, "identity", lambda device: ("probed",))
    monkeypatch.setattr(capabilities, "_ask", lambda device: capabilities.Capabilities(frozenset()))
    monkeypatch.setattr(capabilities, "matrix_of", lambda device: MATRIX_UNITS["mma"])
    monkeypatch.setattr(matrix_probe, "fault_of", probe)
    able = capabilities.capabilities(asked, tmp_path)
    name, why, final = found
    assert able.matrix == name
    assert why in able.without_matrix
    assert [json.loads(file.read_bytes())["matrix"] for file in tmp_path.iterdir()] == [name] * final
    if final:
        monkeypatch.setattr(capabilities, "_known", {})
        monkeypatch.setattr(matrix_probe, "fault_of", lambda *_: pytest.fail("probed again"))
        assert capabilities.capabilities(asked, tmp_path) == able


def _gpu(vendor: str, name: str = "", extensions: str = "", **more: Any) -> SimpleNamespace:
    return SimpleNamespace(vendor=vendor, name=name, extensions=extensions, **more)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (_gpu("NVIDIA Corporation", compute_capability_major_nv=9, compute_capability_minor_nv=0), "mma"),
        (_gpu("NVIDIA Corporation", compute_capability_major_nv=7, compute_capability_minor_nv=5), None),
        (_gpu("Advanced Micro Devices, Inc.", "gfx90a:sramecc+:xnack-"), "mfma"),
        (_gpu("Advanced Micro Devices, Inc.", "gfx1100"), "wmma"),
        (_gpu("Advanced Micro Devices, Inc.", "gfx1201"), None),
        (_gpu("Intel(R) Corporation"), None),
        (_gpu("Mesa"), None),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_which_unit_a_device_should_have(asked: Any, name: str | None) -> None:
    """By what its driver says."""
    assert matrix_of(asked) == (None if name is None else MATRIX_UNITS[name])
