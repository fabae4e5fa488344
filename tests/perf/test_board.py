"""The page of devices: each operator's cell shows the results of its checks."""

from dataclasses import replace
from pathlib import Path

import pytest

from litecl.cli import main
from litecl.report import verified
from litecl.report.board import board, cell
from litecl.verify.document import sentence
from litecl.verify.record import DeviceResult, Result, Row, in_brief, labels, load


def row(op: str, status: str, reason: str = "", waived: str | None = None) -> Row:
    return Row(f"{op}/x", op, 1, "float32", "1", "", status, reason, waived=waived)


ENVIRONMENT = {"litecl": "1", "python": "3", "numpy": "2", "system": "Linux", "processor": "P", "cores": 4}


def result(name: str, *rows: Row) -> Result:
    device = {"index": 0, "name": name, "platform": "PoCL", "driver": "3", "version": "OpenCL 3"}
    environment = ENVIRONMENT | {"packages": {}, "variables": {}}
    return Result(environment, (DeviceResult(device, rows, 1.0),), "litecl verify", "2026-01-02T03:04:05+00:00")


@pytest.mark.parametrize(
    ("rows", "kind", "shown"),
    [
        ([], "none", ""),
        ([row("ADD", "pass")] * 3, "good", "3"),
        ([row("ADD", "pass"), row("ADD", "refused", "rank 9")], "part", "1 of 2"),
        ([row("ADD", "refused", "no kernel")], "cpu", "CPU"),
        ([row("ADD", "pass"), row("ADD", "crashed", "SIGSEGV")], "bad", "1 of 2"),
        ([row("ADD", "fail", "wrong", waived="driver 3")], "known", "0 of 1"),
    ],
)
def test_the_worst_decides(rows: list[Row], kind: str, shown: str) -> None:
    found = cell(rows)
    assert (found.kind, found.shown) == (kind, shown)
    assert all(r.reason in found.words for r in rows if kind in ("bad", "known") and r.status != "pass")


def test_operators_are_rows_and_devices_columns(tmp_path: Path) -> None:
    one = result("first <device>", row("ADD", "pass"), row("CONV_2D", "fail", "wrong & late"))
    other = result("second", row("ADD", "pass"), row("SOFTMAX", "refused", "no"))
    html = board([one, other])
    assert "<h1>2 devices, 3 operators</h1>" in html
    assert "first &lt;device&gt;" in html and "wrong &amp; late" in html
    assert "2 of 4 checks pass; 1 fails." in html
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, made in zip(files, (one, other), strict=True):
        verified.write(made, path)
    page = tmp_path / "devices.html"
    assert main(["coverage", "--results", *map(str, files), "--output", str(page), "--json"]) == 0
    assert page.read_text() == html


def test_a_result_in_brief_says_the_same(tmp_path: Path) -> None:
    rows = [
        row("ADD", "pass"),
        row("ADD", "pass"),
        row("ADD", "refused", "rank 9"),
        row("ADD", "fail", "a"),
        row("ADD", "fail", "b"),
    ]
    rows = [replace(r, check=f"ADD/{i}", relative=0.1 * i, kernels=("binary",)) for i, r in enumerate(rows)]
    full, path = result("first", *rows), tmp_path / "brief.json"
    verified.write(full, path, brief=True)
    brief = load(path)
    assert brief == in_brief(full)
    (device,) = brief.devices
    assert [(r.check, r.status, r.checks, r.relative) for r in device.rows] == [
        ("ADD/*", "pass", 2, 0.1),
        ("ADD/2", "refused", 1, 0.2),
        ("ADD/3", "fail", 1, pytest.approx(0.3)),
        ("ADD/4", "fail", 1, pytest.approx(0.4)),
    ]
    assert device.counts == full.devices[0].counts and device.checks == 5
    assert device.rows[2].kernels == ("binary",)
    assert sentence(brief) == sentence(full)
    assert cell(device.rows) == cell(full.devices[0].rows)


def test_devices_of_one_name_are_told_apart() -> None:
    results = [result("cpu", row("ADD", "pass")), result("cpu", row("ADD", "pass")), result("gpu", row("ADD", "pass"))]
    device = results[1].devices[0]
    results[1] = replace(results[1], devices=(replace(device, device={**device.device, "driver": "7"}),))
    assert labels(results) == ["cpu, 3", "cpu, 7", "gpu"]
