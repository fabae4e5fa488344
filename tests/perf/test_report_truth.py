"""Reports that are true: ratios with intervals, one unit in a sentence, peaks that are measured again."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from litecl.cli.tables import to_json
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write_file
from litecl.perf import peak
from litecl.perf.feeds import random_inputs
from litecl.perf.intervals import Ratio, ratio
from litecl.report.collect import Wanted, collect, report, run
from litecl.report.collect.verdict import verdict
from litecl.report.draw import units
from litecl.report.facts import Latency
from litecl.report.page import page
from litecl.verify.scenarios.images import sound

RNG = np.random.default_rng(5)


def _latency(name: str, median_ms: float) -> Latency:
    return Latency(name, 2, 1.0, 1.0, (median_ms,), median_ms, median_ms, median_ms, {}, 0)


def _compared(ours_ms: float, theirs_ms: float, *ratios: Ratio) -> str:
    return verdict((), (), _latency("litecl", ours_ms), 2, [_latency("litert", theirs_ms)], ratios, (), ())[1]


def test_an_interval_holds_the_true_ratio_nineteen_times_of_twenty() -> None:
    """Of log-normal times, whose medians are known; a constant factor has no interval."""
    found = [ratio(1.5 * np.exp(0.2 * RNG.normal(size=60)), np.exp(0.2 * RNG.normal(size=60))) for _ in range(100)]
    assert all(one.low <= one.value <= one.high for one in found)
    assert 85 <= sum(one.low <= 1.5 <= one.high for one in found) <= 99
    times = np.exp(RNG.normal(size=50))
    assert ratio(2 * times, times) == Ratio(2.0, 2.0, 2.0)


def test_ratios_have_intervals_and_those_that_hold_1_tell_of_no_difference() -> None:
    faster = _compared(0.8, 1.2, Ratio(1.5, 1.4, 1.62))
    assert faster == (
        "An invoke takes 0.800 ms with 2 threads: 1.50 times (1.40 to 1.62) as fast as litert with 2 threads (1.20 ms)."
    )
    slower = _compared(2.0, 1.0, Ratio(0.5, 0.4, 0.8))
    assert "2.00 times (1.25 to 2.50) as long as litert" in slower
    assert ": about as fast as litert" in _compared(1.0, 1.2, Ratio(1.2, 0.9, 1.5))


def test_a_busy_machine_allows_no_ratio() -> None:
    assert _compared(0.8, 1.2) == (
        "An invoke takes 0.800 ms with 2 threads, litert with 2 threads 1.20 ms; a busy machine allows no ratio."
    )


def test_times_of_a_sentence_have_one_unit() -> None:
    assert [units.ms(value, 0.081, 0.11) for value in (0.081, 0.11)] == ["81.0 µs", "110 µs"]
    assert [units.ms(value, 0.5, 1200.0) for value in (0.5, 1200.0)] == ["0.000500 s", "1.20 s"]


def test_the_cost_of_measuring_is_told() -> None:
    assert run.cost_of_measuring(0.9, 1.1, 0.8) == "Without launch times an invoke takes 0.900 ms, with them 1.10 ms."
    more = run.cost_of_measuring(0.081, 0.12, 0.11)
    assert more.startswith(
        "Without launch times an invoke takes 81.0 µs, with them 120 µs. Launches and nodes add up to"
    )


@pytest.fixture
def _peaks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Each measurement of the peaks is the next of these, in operations and bytes a second; the last is kept."""
    rates: list[float] = []
    monkeypatch.setattr(peak, "bandwidth", lambda device, size: rates[0])
    monkeypatch.setattr(peak, "operations", lambda device, kind: rates.pop(0) if len(rates) > 1 else rates[0])
    yield rates


def _collected(path: Any, load: float, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(report, "load", lambda: load)
    wanted = Wanted({}, (0,), "litert-reference", runs=12, cold=False)
    found = collect(path, random_inputs(Interpreter(path).get_input_details(), 0), wanted)
    data: dict[str, Any] = json.loads(to_json(asdict(found)))
    return data


def test_peaks_that_launches_exceed_are_measured_again(
    tmp_path: Any, _peaks: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sound.tflite"
    write_file(sound(), path)
    _peaks += [1.0, 1e15]
    idle = _collected(path, 0.0, monkeypatch)
    (one,) = idle["runs"]
    assert one["roofs"]["operations_per_s"] == {"float32": 1e15}
    assert all(row["work"]["of_bound"] is None or row["work"]["of_bound"] < 1 for row in one["launches"])
    assert "exceed these peaks" not in page(idle)
    assert len(one["ratios"]) == len(idle["peers"]) and "no ratio" not in page(idle)
    _peaks[:] = [1.0, 2.0]
    busy = _collected(path, 99.0, monkeypatch)
    (one,) = busy["runs"]
    assert one["roofs"]["operations_per_s"] == {"float32": 2.0}
    assert "launches exceed these peaks, by up to" in page(busy)
    assert one["ratios"] == [] and "a busy machine allows no ratio" in page(busy)
    assert "Without launch times an invoke takes" in one["profile"]["sentence"]
