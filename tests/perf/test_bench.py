"""litecl bench: several models and threads in one table, files, and doubts."""

import csv
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from litecl.cli import main
from litecl.cli.commands import bench
from litecl.interpreter.file.writer import write
from litecl.perf import doubts
from litecl.perf.compare import changes
from litecl.perf.timing import Stats
from litecl.verify.scenarios.images import sound


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = tmp_path_factory.mktemp("bench") / "sound.tflite"
    model.write_bytes(write(sound()))
    return model


def text(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def data(capsys: pytest.CaptureFixture[str], *arguments: Any) -> Any:
    return json.loads(text(capsys, *arguments, "--json"))


def failure(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    assert main([str(argument) for argument in arguments]) == 1
    return capsys.readouterr().err


def test_bench_of_several_models_devices_and_threads(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, table, page, figures = (tmp_path / name for name in ("other.tflite", "b.csv", "b.md", "b.json"))
    other.write_bytes(path.read_bytes())
    asked = ["--threads", 1, "--threads", 2, "--against", "litert", "--runs", 3, "--warmup", 0]
    shown = text(capsys, "bench", path, other, *asked, "-o", table, "-o", page, "-o", figures)
    rows = list(csv.DictReader(table.open()))
    expected = [(name, threads) for name in (path.name, other.name) for threads in (("1", "1"), ("2", "1", "2"))]
    assert [(row["model"], row["threads"]) for row in rows] == [(name, n) for name, ns in expected for n in ns]
    assert all(0 < float(row["min_ms"]) <= float(row["p5_ms"]) <= float(row["p99_ms"]) for row in rows)
    assert all(float(row["per_second"]) == pytest.approx(1e3 / float(row["median_ms"])) for row in rows)
    assert page.read_text().count("\n| ") == len(rows)
    assert all(name in shown for name in (path.name, other.name, "litert (2 threads) / litecl"))
    data = json.loads(figures.read_text())
    assert [len(case["subjects"]) for case in data["cases"]] == [2, 3, 2, 3]
    assert "expected a benchmark of one model" in failure(capsys, "compare", figures, figures)
    with pytest.raises(SystemExit):
        main(["bench", str(path), "-o", "b.txt"])
    assert "ends in .csv or .md or .json" in capsys.readouterr().err


@pytest.mark.parametrize("folder", [False, True])
def test_a_warning_of_a_busy_machine_comes_before_ratios_with_intervals(
    folder: bool, path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "load", lambda: 99.0)
    shown = text(capsys, "bench", *[path] * (1 + folder), "--runs", 3, "--threads", 1, "--against", "litert")
    ratio = re.search(r"\d\.\d\d \(\d+\.\d\d to \d+\.\d\d\)", shown)
    assert ratio is not None
    assert 0 < shown.index("WARNING: load was already 99.0") < ratio.start()


def test_the_threads_that_litecl_chose(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text(capsys, "bench", path, "--runs", 3, "-o", tmp_path / "b.csv")
    (row,) = csv.DictReader((tmp_path / "b.csv").open())
    assert row["threads"] == "1"  # of a small model


def test_bench_goes_on_for_so_many_seconds(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start_s = time.monotonic()
    found = data(capsys, "bench", path, "--seconds", 1, "--cpu")
    assert time.monotonic() - start_s >= 1
    (subject,) = found["subjects"]
    assert subject["runs"] > 5


def test_a_peer_with_several_numbers_of_threads_is_compared_with_itself() -> None:
    def bench(single: float, all_: float) -> dict[str, Any]:
        subjects = [("litecl", None, 1.0), ("litert", 1, single), ("litert", 4, all_)]
        rows = [{"name": name, "num_threads": threads, "times_ms": [ms] * 20} for name, threads, ms in subjects]
        return {"subjects": rows}

    found = {change.name: change.verdict for change in changes(bench(2.0, 1.0), bench(1.0, 2.0), 0.05)}
    assert found == {"litecl": "same", "litert, 1 thread": "faster", "litert, 4 threads": "slower"}


def test_doubts_are_told() -> None:
    assert doubts.doubts(Stats((1.0, 1.01) * 20)) == ()
    assert doubts.doubts(Stats((1.0, 1.01, 1.0, 1.01, 1.0, 1.01, 9.0) * 6)) == ("6 of 42 runs are outliers",)
    (drift,) = doubts.doubts(Stats(tuple(1.0 + i / 50 for i in range(50))))
    assert drift.startswith("times rose during the run: 1.1")
    assert doubts.busy(None) == doubts.busy(0.0) == ()
    assert "load was already 99.0" in doubts.busy(99.0)[0]


def test_short_invokes_go_on_for_half_a_second(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And every n-th time is kept, so that files do not grow."""
    (subject,) = data(capsys, "bench", path)["subjects"]
    assert subject["mean_ms"] * subject["runs"] >= 250  # the rest is the loop around them
    assert subject["runs"] == 50 or 40 <= len(subject["times_ms"]) <= 2000
    many = Stats(tuple(float(i) for i in range(5001)))
    assert many.to_dict()["times_ms"] == [float(i) for i in range(0, 5001, 3)]
    assert many.to_dict()["runs"] == 5001
