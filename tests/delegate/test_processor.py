"""The probe of a device's compiler, and the consequences of its answers."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyopencl as cl
import pytest

from litecl.cases import Case
from litecl.delegate import CLDelegate, disk
from litecl.delegate.opencl import identity
from litecl.delegate.opencl.devices import device
from litecl.delegate.opencl.devices.device import Device, _part_of
from litecl.delegate.opencl.probes import capabilities
from litecl.delegate.opencl.probes.capabilities import Capabilities
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import KernelBuildError
from litecl.perf import devices as listing
from litecl.perf.feeds import run_on
from support import devices
from support.all_cases import DEVICE_CASES, content
from support.skips import as_itself


def case_of(fragment: str) -> Case:
    """Return the first device case whose name begins so."""
    return next(case for case in DEVICE_CASES if repr(case).startswith(fragment))


def run(case: Case, **options: Any) -> Interpreter:
    """Return an interpreter that has run a case."""
    interpreter = Interpreter(model_content=content(case), delegates=[CLDelegate(**options)])
    run_on(interpreter, case.feeds)
    return interpreter


@as_itself
def test_numpy_tells_what_the_processor_has() -> None:
    """Without this every x86-64 processor that LLVM does not know would be taken for the first of them."""
    if sys.platform == "linux" and os.uname().machine == "x86_64":
        assert {"SSE2", "SSE3"} <= identity.features()


@pytest.mark.parametrize(
    ("macros", "reported", "width"),
    [
        ({"__SSE2__", "__AVX__", "__AVX2__", "__AVX512F__"}, 16, 16),
        ({"__SSE2__", "__AVX__", "__AVX2__", "__AVX512F__"}, 8, 8),
        ({"__SSE2__", "__AVX__", "__AVX2__"}, 16, 8),
        ({"__SSE2__", "__AVX__", "__AVX2__"}, 8, 8),
        ({"__SSE2__"}, 16, 4),
        ({"__SSE2__"}, 1, 4),
        ({"__ARM_NEON"}, 4, 4),
        (set(), 16, 16),  # Intel's runtime, which compiles for the processor only after it has read the macros
        (set(), 1, 4),
    ],
)
def test_vector_width(macros: set[str], reported: int, width: int) -> None:
    """The compiler's registers limit the width that the driver reports."""
    assert Capabilities(frozenset(macros)).vector_width(reported) == width


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a device of which this process knows nothing yet."""
    monkeypatch.setattr(capabilities, "_known", {})
    return devices.tested()[0]


def test_the_probe_is_kept(unknown: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later process reads the first one's result."""
    found = capabilities.capabilities(unknown, tmp_path)
    (file,) = tmp_path.iterdir()
    assert set(json.loads(file.read_bytes())["macros"]) == found.macros
    monkeypatch.setattr(capabilities, "_known", {})
    monkeypatch.setattr(capabilities, "_ask", lambda device: pytest.fail("asked again"))
    assert capabilities.capabilities(unknown, tmp_path) == found


@pytest.mark.parametrize(
    "content_",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"version": 1, "macros": []}',
        b'{"version": 4, "macros": ["__AVX512F__"], "assembly": "yes"}',
        b'{"version": 4, "macros": ["__AVX1024__"], "assembly": true}',
        b'{"version": 4, "macros": 5, "assembly": true}',
    ],
)
def test_a_file_of_anything_else_is_written_anew(
    content_: bytes, unknown: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a file, one of another program or version."""
    real = Capabilities(frozenset({"__SSE2__"}))
    monkeypatch.setattr(capabilities, "_ask", lambda device: real)
    file = tmp_path / f"{disk.key('capabilities', identity.identity(unknown))}.json"
    file.write_bytes(content_)
    assert capabilities.capabilities(unknown, tmp_path) == real
    assert json.loads(file.read_bytes())["macros"] == ["__SSE2__"]


def test_assembly_that_a_compiler_rejects_is_left_out_of_kernels(
    unknown: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regions still run."""
    rejected = capabilities._Feature("not C at all;")
    before = capabilities.capabilities(unknown)
    monkeypatch.setattr(capabilities, "_known", {})
    monkeypatch.setattr(capabilities, "_FEATURES", {**capabilities._FEATURES, "assembly": rejected})
    found = capabilities.capabilities(unknown)
    assert found == replace(before, assembly=False)
    programs = Device(unknown, False, None).programs
    assert "LITECL_ASSEMBLY" not in programs._macros
    monkeypatch.setattr(capabilities, "_known", {disk.key("capabilities", identity.identity(unknown)): found})
    report = run(case_of("ADD_N-five"), device=unknown, cache_dir=tmp_path, strict=True).delegation_report()
    assert [row.claimed for row in report.nodes] == [True]


@pytest.mark.parametrize(("right", "there"), [(None, True), ("0", False)])
def test_a_probe_that_computes_something_else_is_left_out(
    right: str | None, there: bool, unknown: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dot products are used where they are right; those of plain C are."""
    plain = capabilities._FEATURES["dots"]._replace(options=(), there=lambda device: True)
    before = capabilities.capabilities(unknown)
    monkeypatch.setattr(capabilities, "_known", {})
    feature = plain if right is None else plain._replace(right=right)
    monkeypatch.setattr(capabilities, "_FEATURES", {**capabilities._FEATURES, "dots": feature})
    assert capabilities.capabilities(unknown) == replace(before, dots=there)


@pytest.mark.parametrize("found", cl.get_platforms(), ids=lambda found: str(found.name))
def test_devices_that_multiply_bytes_are_found(found: Any) -> None:
    """Kernels reach the dot products that a driver reports, in its default version of OpenCL C."""
    able = [one for one in found.get_devices() if "cl_khr_integer_dot_product" in one.extensions.split()]
    assert all(capabilities.capabilities(one).dots for one in able)


def test_a_device_that_builds_nothing_says_what_to_do(unknown: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is typed, names the device and the way out."""
    monkeypatch.setattr(capabilities, "_MACROS", ("__SSE2__\n#error no compiler\n#endif\n#if 0",))
    with pytest.raises(KernelBuildError, match=r"Choose\s+another device"):
        capabilities.capabilities(unknown)


def test_a_device_that_builds_nothing_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """``litecl devices`` shows it with the problem."""

    def broken(*_: Any) -> Any:
        raise KernelBuildError("it cannot\nmore")

    monkeypatch.setattr(device, "target_of", broken)
    rows = [row for row in listing.device_rows() if row.name != "native"]
    assert {(row.problem, row.vector_width, row.float64) for row in rows} == {("it cannot", 0, False)}


def test_a_device_that_cannot_be_divided_stays_whole() -> None:
    """As PoCL 7.1's, for fewer threads than it has."""
    whole = SimpleNamespace(max_compute_units=8, type=cl.device_type.CPU, partition_properties=[0])
    assert _part_of(whole, 2) is whole


@pytest.mark.parametrize("name", ["POCL_EXTRA_BUILD_FLAGS", "PYOPENCL_BUILD_OPTIONS"])
def test_a_binary_with_options_of_the_users_is_another(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may make arithmetic less exact, for this process alone."""
    monkeypatch.delenv(name, raising=False)
    device = devices.tested()[0]
    plain = identity.identity(device)
    monkeypatch.setenv(name, "-cl-fast-relaxed-math")
    assert identity.identity(device) != plain
