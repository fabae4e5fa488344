"""Arithmetic in halves is probed: whether a device computes it, whether sums beyond it are found, and what is kept."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyopencl as cl
import pytest

from litecl.delegate.opencl.probes import capabilities, half_probe
from support import devices

_FAULTS = {
    "return bits;": "return bits & (ushort4)(0xfff0);",  # fewer digits
    "vstore_half4_rte": "vstore_half4_rtz",
    "(as_int4(x) & 0x7f800000) == 0x7f800000": "as_int4(x) == 0",  # infinity is not found
    "return (found.s0": "return 1 | (found.s0",
}


def _opened() -> tuple[Any, dict[str, str | int | float]]:
    found = devices.tested()[0]
    return found, {} if "cl_khr_fp16" in found.extensions else {"EMULATED": 1}


def test_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves that are rounded to the nearest are right, what is rounded otherwise, or hides an infinite sum, is not."""
    opened, macros = _opened()
    assert half_probe.probe(opened, macros) == ("", False)
    text = half_probe.source_of("half_unit.cl")
    for right, wrong in _FAULTS.items():
        assert right in text
        monkeypatch.setattr(half_probe, "source_of", lambda file, a=right, b=wrong: text.replace(a, b))
        assert half_probe.probe(opened, {"EMULATED": 1}).fault.endswith("of 256 sums in halves are wrong"), right


def test_halves_that_saturate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that stay at the largest half would be wrong without a word."""
    opened, _ = _opened()
    text = half_probe.source_of("half_unit.cl").replace(
        "vstore_half4_rte(x, 0", "vstore_half4_rte(clamp_v(x, -65504.0f, 65504.0f), 0"
    )
    monkeypatch.setattr(half_probe, "source_of", lambda file: text)
    assert half_probe.probe(opened, {"EMULATED": 1}).fault == "4 of 256 sums in halves are wrong"


def test_subnormals_that_are_made_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """This is found, and no fault."""
    opened, _ = _opened()
    text = half_probe.source_of("half_unit.cl").replace(
        "vstore_half4_rte(x, 0", "vstore_half4_rte(abs_v(x) < 6.1e-5f ? (float4)(0.0f) : x, 0"
    )
    monkeypatch.setattr(half_probe, "source_of", lambda file: text)
    assert half_probe.probe(opened, {"EMULATED": 1}) == ("", True)


@pytest.mark.parametrize(
    ("macros", "fault", "found", "final"),
    [
        ({"cl_khr_fp16"}, "", (True, ""), True),
        ({"cl_khr_fp16"}, "3 of 256 sums in halves are wrong", (False, "3 of 256 sums in halves are wrong"), True),
        ({"cl_khr_fp16"}, cl.status_code.BUILD_PROGRAM_FAILURE, (False, "refused"), True),
        ({"cl_khr_fp16"}, cl.status_code.OUT_OF_RESOURCES, (False, "refused"), False),
        (set(), cl.status_code.BUILD_PROGRAM_FAILURE, (False, ""), True),
    ],
)
def test_what_was_probed_is_kept(
    macros: set[str],
    fault: Any,
    found: tuple[bool, str],
    final: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """What errs or is refused is left out for good, what fails in another way for this process; nothing is asked of a
    device that does not say that it has halves.
    """

    def probe(*_: Any) -> half_probe.Found:
        if isinstance(fault, str):
            return half_probe.Found(fault)
        raise cl.Error(
            SimpleNamespace(routine=lambda: "probe", code=lambda: fault, what=lambda: "refused", __str__=str)
        )

    real = devices.tested()[0]
    asked = SimpleNamespace(int_ptr=real.int_ptr, type=cl.device_type.GPU, name="GPU", platform=real.platform)
    monkeypatch.setattr(capabilities, "_known", {})
    monkeypatch.setattr(capabilities, "identity", lambda device: ("probed",))
    monkeypatch.setattr(capabilities, "_ask", lambda device: capabilities.Capabilities(frozenset(macros)))
    monkeypatch.setattr(capabilities, "matrix_of", lambda device: None)
    monkeypatch.setattr(half_probe, "probe", probe)
    able = capabilities.capabilities(asked, tmp_path)
    assert able.halves == found[0]
    assert found[1] in able.without_halves
    assert [json.loads(file.read_bytes())["halves"] for file in tmp_path.iterdir()] == [found[0]] * final
    if final:
        monkeypatch.setattr(capabilities, "_known", {})
        monkeypatch.setattr(half_probe, "probe", lambda *_: pytest.fail("probed again"))
        assert capabilities.capabilities(asked, tmp_path) == able
