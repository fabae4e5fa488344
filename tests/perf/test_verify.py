"""litecl verify: finds and names planted faults, and passes everything else."""

import ast
import importlib
import inspect
import json
import pkgutil
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from litecl import kernels_cl
from litecl.cli import main
from litecl.converter import lower
from litecl.delegate.devices import NATIVE
from litecl.interpreter.errors import ModelError
from litecl.interpreter.op import ControlOp, Op
from litecl.perf.devices import device_rows
from litecl.perf.environment import described, plain
from litecl.report import verified
from litecl.verify import children, coverage, goldens, waivers
from litecl.verify.catalogue import catalogue, named_cases, quick_cases, selected
from litecl.verify.check import edge_of
from litecl.verify.children import in_threads, serve
from litecl.verify.document import sentence
from litecl.verify.judge import Settings
from litecl.verify.record import CRASHED, FAIL, NOT_RUN, PASS, REFUSED, SLOWER, TIMEOUT, Result, Row, load
from litecl.verify.supervise import Plan, devices_of, verify_device
from litecl.verify.waivers import Waiver
from support import all_cases

PLANTED = Path(__file__).resolve().parents[1] / "support" / "planted"
FAULTS = {
    "l2_normalization.cl": ("const float norm = ", "const float norm = 1.01f * "),
    "cumsum.cl": ("T sum = 0;", "T sum = *(volatile __global T *)8;"),
    "topk_v2.cl": ("SHARE(n, per_item);", "SHARE(n, per_item); volatile int stay = 1; while (stay) {}"),
    "one_hot.cl": ("SHARE(n, per_item);", "SHARE(n, per_item); planted_fault();"),
}
"""A kernel that computes wrongly, one that crashes, one that hangs and one that does not build."""


def some(op: str) -> str:
    """The name of the first check of an operator that its device runs."""
    return next(name for name in catalogue() if name in quick_cases() and catalogue()[name].op == op)


@pytest.fixture(scope="module")
def device() -> dict[str, Any]:
    found, problem = devices_of([], 60.0)
    assert not problem
    return found[0]


@pytest.fixture(scope="module")
def planted(device: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Result]:
    """Return the results of checking each operator with planted faults, among others."""
    folder = tmp_path_factory.mktemp("kernels")
    shutil.copytree(Path(kernels_cl.__file__).parent, folder, dirs_exist_ok=True)
    for name, (line, fault) in FAULTS.items():
        source = (folder / name).read_text()
        assert line in source
        (folder / name).write_text(source.replace(line, fault))
    names = [some(op) for op in ("EXP", "L2_NORMALIZATION", "CUMSUM", "TOPK_V2", "ONE_HOT", "NEG")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(PLANTED), prepend=":")
        patch.setenv("LITECL_PLANTED", str(folder))
        plan = Plan(jobs=1, timeout_s=4, keep_cache=True)
        found = verify_device(device, [catalogue()[name] for name in names], plan, lambda: None)
    yield Result(
        {
            "system": "s",
            "processor": "p",
            "cores": 1,
            "python": "3",
            "numpy": "2",
            "litecl": "0",
            "packages": {},
            "variables": {},
        },
        (found,),
        "litecl verify",
        "today",
    )


def test_planted_faults_are_found_and_named(planted: Result) -> None:
    rows = {row.op: row for row in planted.devices[0].rows}
    assert {op: row.status for op, row in rows.items()} == {
        "EXP": PASS,
        "L2_NORMALIZATION": FAIL,
        "CUMSUM": CRASHED,
        "TOPK_V2": TIMEOUT,
        "ONE_HOT": FAIL,
        "NEG": PASS,
    }
    assert {row.alone for row in rows.values() if row.status == PASS} == {None}
    assert all(row.alone == row.status for row in rows.values() if row.status != PASS)
    wrong = rows["L2_NORMALIZATION"]
    assert wrong.relative == pytest.approx(0.01, rel=0.1)
    assert (wrong.bound, wrong.bound_source, wrong.kernels) == (1e-4, "litecl.cases.tolerances", ("l2_normalization",))
    assert "wrong values: off by 0.0099" in wrong.reason
    assert "while running cumsum: the process killed by SIGSEGV" in rows["CUMSUM"].reason
    assert "while running topk_v2: the process said nothing for 4 s" in rows["TOPK_V2"].reason
    assert "planted_fault" in rows["ONE_HOT"].reason and "KernelBuildError" in rows["ONE_HOT"].reason
    assert not planted.devices[0].notes


def test_the_sentence_names_a_driver_once(planted: Result) -> None:
    of_native = {"platform": "clang 22, of ziglang", "driver": "clang 22", "version": ""}
    device = replace(planted.devices[0], device={**planted.devices[0].device, **of_native})
    assert "(clang 22, of ziglang): " in sentence(replace(planted, devices=(device,)))


def test_the_sentence_names_them(planted: Result) -> None:
    told = sentence(planted)
    for part in ("2 of 6 checks pass", "2 fail", "1 crashed", "1 timed out", some("CUMSUM"), "litecl verify --device"):
        assert part in told


def test_results_are_kept_and_shown(planted: Result, tmp_path: Path) -> None:
    for ending in verified.FORMATS:
        verified.write(planted, tmp_path / f"result{ending}")
    assert plain(load(tmp_path / "result.json").to_dict()) == plain(planted.to_dict())
    for page in ("result.html", "result.md"):
        text = (tmp_path / page).read_text()
        assert "SIGSEGV" in text and "KernelBuildError" in text
    shown = (tmp_path / "result.html").read_text()
    assert shown.index("2 of 6 checks pass") < shown.index("Failures on") < shown.index(">Operators<")
    assert shown.count('<tr class="bad">') >= 4 and 'class="sorts"' in shown
    suite = ElementTree.fromstring((tmp_path / "result.xml").read_text())[0]
    assert (suite.get("tests"), suite.get("failures")) == ("6", "4")
    with pytest.raises(ModelError, match="expected a name that ends in"):
        verified.write(planted, tmp_path / "result.txt")


def test_waivers_cover_known_failures(planted: Result, tmp_path: Path) -> None:
    file = tmp_path / "waivers"
    file.write_text("# the driver's\nCUMSUM/*: a crash, 12\n*: the rest\nEXP/*: mended\n")
    known = waivers.load(file)
    device = planted.devices[0]
    rows = waivers.waived(device.rows, known)
    assert {row.op: row.waived for row in rows if row.waived} == {
        "CUMSUM": "a crash, 12",
        **dict.fromkeys(("L2_NORMALIZATION", "TOPK_V2", "ONE_HOT"), "the rest"),
    }
    assert planted.failed and not Result({}, (replace(device, rows=rows),)).failed
    assert waivers.unused(rows, known) == ("the waiver 'EXP/*' covers no failure: remove it",)
    file.write_text("CUMSUM/*\n")
    with pytest.raises(ModelError, match="line 1: expected 'PATTERN: REASON'"):
        waivers.load(file)
    assert Waiver("A/[1, 2] x", "").covers("A/[1, 2] x")


def test_what_is_well_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "result.json"
    name = some("NEG")
    assert main(["verify", "--replay", name, "--keep-cache", "--timed", "-o", str(file), "--json"]) == 0
    (row,) = load(file).devices[0].rows
    assert row.device_ms and row.cpu_ms
    assert (row.check, row.status) == (name, SLOWER if row.device_ms > row.cpu_ms else PASS)
    assert json.loads(capsys.readouterr().out)["devices"][0]["rows"][0]["check"] == name


def test_a_platform_names_a_device() -> None:
    for row in device_rows():
        if row.name != NATIVE:
            (found,) = described([row.platform.split()[0]])
            assert found["platform"] == row.platform


def test_a_device_that_is_not_there_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--device", "nosuch", "--replay", some("NEG")]) == 1
    assert "there is no device 'nosuch'" in capsys.readouterr().err


def test_checks_are_selected() -> None:
    assert {check.op for check in selected(["exp", "WHILE"])} == {"EXP", "WHILE"}
    quick = selected(quick=True)
    assert {check.op for check in quick} == {check.op for check in selected() if check.wanted}
    assert len(quick) < len(selected()) / 3
    with pytest.raises(ModelError, match="no check for NO_SUCH"):
        selected(["NO_SUCH"])
    with pytest.raises(ModelError, match=r"no check for SOFTMX: .* did you mean 'SOFTMAX'"):
        selected(["SOFTMX"])
    with pytest.raises(ModelError, match="there is no check 'x'"):
        selected(only="x")


def test_a_worker_that_dies_at_once_is_told() -> None:
    end = serve({"nonsense": 1}, 60.0, lambda message: None)
    assert "ended with exit code 1" in end.how and "KeyError" in end.how


def test_a_worker_ends_with_its_parent() -> None:
    worker = subprocess.Popen(
        [sys.executable, "-m", "litecl.verify.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert worker.stdin is not None and worker.stdout is not None
    names = [name for name in catalogue() if name.startswith("use/")] * 50
    settings = {"device": 0, "cache_dir": "auto"}
    worker.stdin.write(json.dumps({"checks": names, "settings": settings}) + "\n")
    worker.stdin.flush()
    assert json.loads(worker.stdout.readline()) == {"begin": names[0]}
    worker.stdin.close()
    assert worker.wait(30) == 1


def test_patience_is_counted_in_slices() -> None:
    """So that a machine that slept for an hour has lost one of them."""
    slices = []

    class Silent:
        def get(self, timeout: float) -> None:
            slices.append(timeout)
            raise queue.Empty

    with pytest.raises(queue.Empty):
        children._next(Silent(), 2.0)
    assert slices == [0.5] * 4


def test_edges_are_named() -> None:
    one = np.ones((2, 4), np.float32)
    assert edge_of([one]) == "plain"
    assert edge_of([one[:, :3]]) == "odd size"
    assert edge_of([one, one * np.nan]) == "NaN, Inf"
    assert edge_of([one * np.float32(1e-40)]) == "denormal"
    assert edge_of([one[:0]]) == "empty"


def test_goldens_are_litert_s() -> None:
    """One whose case has changed counts as none; where too many have, write all anew: tools/goldens.py."""
    stored, checks, cases = goldens.load(), catalogue(), named_cases()
    known = [name for name in stored.outputs if name in checks]
    fresh = [name for name in known if stored.of(name, checks[name].model(), checks[name].steps()) is not None]
    assert len(fresh) > 0.7 * len(quick_cases()), "write them anew: PYTHONPATH=tests .venv/bin/python -m tools.goldens"
    for name in fresh[::40]:
        for got, expected in zip(stored.outputs[name], all_cases.expected(cases[name]), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_coverage_tells_what_was_verified(planted: Result) -> None:
    rows = {row.name: row for row in coverage.rows([planted])}
    name = planted.devices[0].name
    assert {op: row.verified for op, row in rows.items() if row.verified} == {
        **{op: {name: "1/1"} for op in ("EXP", "NEG")},
        **{op: {name: "0/1"} for op in ("L2_NORMALIZATION", "CUMSUM", "TOPK_V2", "ONE_HOT")},
    }
    assert f"| {name} |" in coverage.markdown(list(rows.values()))
    assert "INT32 divisor that is not a constant without zeros" in rows["DIV"].refused
    assert (rows["WHILE"].on_device, rows["CONV_2D"].device_ranks) == (True, "4")


def test_what_lowerings_emit() -> None:
    """Every operator that stands in the text of a lowering's module is among those that are listed."""
    for info in pkgutil.iter_modules(lower.__path__):
        module = importlib.import_module(f"{lower.__name__}.{info.name}")
        emitted = {op.name for op in coverage.emitted_by(module)}
        attributes = [
            node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Attribute)
        ]
        named = [getattr(getattr(module, getattr(n.value, "id", ""), None), n.attr, None) for n in attributes]
        assert {value.name for value in named if isinstance(value, Op | ControlOp)} <= emitted


def test_every_row_has_a_status() -> None:
    row = Row("A/b", "A", 1, "", "", "", NOT_RUN)
    assert not row.counts and replace(row, status=FAIL).counts and not replace(row, status=REFUSED).counts


def test_an_interrupt_ends_the_workers_and_starts_no_more(tmp_path: Path) -> None:
    """Neither for work that would go on, nor for work that waits; and not after all their checks."""
    began, stop, starts = threading.Event(), threading.Event(), list[str]()
    request = {"checks": [*catalogue()][:20], "settings": asdict(Settings(0, str(tmp_path)))}

    def interrupted() -> None:
        assert began.wait(60)
        raise KeyboardInterrupt

    def work() -> None:
        for _ in range(5):
            starts.append("a worker")
            serve(request, 60, lambda message: began.set(), stop=stop)

    with pytest.raises(KeyboardInterrupt):
        in_threads([interrupted, work, work], 2, stop)
    assert len(starts) <= 4  # each work's second is refused
