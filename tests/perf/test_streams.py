"""Throughput and memory: several interpreters at once, and a process with one."""

import csv
import threading
from pathlib import Path

import numpy as np
import pytest

from litecl.cli import main
from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.perf import bench as measure
from litecl.perf import resident
from litecl.perf.bench import BenchOptions, bench
from litecl.perf.contenders import Contender, litecl
from litecl.perf.streams import all_at_once, throughput
from litecl.perf.subject import in_streams
from litecl.verify.scenarios.images import sound
from support.build import Graph, model

needs_linux = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured on Linux")


def test_streams_run_at_the_same_time_in_threads_of_their_own() -> None:
    meeting, seen = threading.Barrier(3, timeout=10), set()

    def meet() -> None:
        meeting.wait()
        seen.add(threading.get_ident())

    all_at_once([meet] * 3)
    assert len(seen) == 3


def test_calls_and_times_add_up() -> None:
    counts = [0, 0]

    def count(i: int) -> None:
        counts[i] += 1

    rate, stats = throughput([lambda: count(0), lambda: count(1)], 0.05)
    assert all(counts) and len(stats.times_ms) == sum(counts)
    assert 0.05 <= len(stats.times_ms) / rate < 10
    assert sum(stats.times_ms) <= 2 * 1e3 * len(stats.times_ms) / rate
    assert len(throughput([lambda: count(0)] * 3, 0.0)[1].times_ms) == 3


def test_what_a_stream_raises_ends_all() -> None:
    def fail() -> None:
        raise LiteclError("no")

    with pytest.raises(LiteclError, match="no"):
        throughput([fail, lambda: None], 60.0)


def test_streams_have_states_of_their_own_and_the_same_outputs() -> None:
    content = write(sound())
    options = BenchOptions({"num_threads": 1}, runs=1, warmup=0, seconds=0.01, streams=(1, 3))
    alone, one, three = bench(content, {}, options).subjects
    assert [s.streams for s in (alone, one, three)] == [1, 1, 3]
    assert three.differs == 0.0 and not three.warnings
    assert three.per_second > 0 and len(three.stats.times_ms) >= 3


def test_outputs_that_differ_are_told() -> None:
    """Every interpreter that is loaded adds one more than the one before it."""
    added = iter(np.float32([1, 2]))

    def load() -> object:
        g = Graph()
        return litecl(
            write(model(g.build(g.op(ADD, [g.input((3,)), g.const(next(added))], AddOptions())))), {}, cpu=True
        )

    found = in_streams([(Contender("litecl", 1, None, 0.0, 0.0), load)], 2, {}, 0.0)  # type: ignore[arg-type, list-item]
    assert found[0].differs == 1.0
    assert "outputs of the streams differ, by 1.0e+00" in found[0].warnings[0]


def large(megabytes: int) -> Model:
    """An addition of a constant of a size, which nothing folds."""
    g = Graph()
    x = g.input((megabytes << 18,))
    return model(g.build(g.op(ADD, [x, g.const(np.ones(megabytes << 18, np.float32))], AddOptions())))


@needs_linux
def test_the_command_has_columns_for_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is at least the file, the input and the output; not ten times as much."""
    file, table = tmp_path / "large.tflite", tmp_path / "b.csv"
    file.write_bytes(write(large(8)))
    monkeypatch.setattr(measure, "_STREAM_S", 0.1)
    monkeypatch.setenv("COLUMNS", "160")
    asked = ["--runs", "2", "--streams", "2", "--memory", "--cpu", "-o", str(table)]
    assert main(["bench", str(file), *asked]) == 0
    shown = capsys.readouterr().out
    alone, streams = csv.DictReader(table.open())
    assert (alone["streams"], streams["streams"]) == ("1", "2")
    assert 24 << 20 < int(alone["process_end_bytes"]) <= int(alone["process_peak_bytes"]) < 80 << 20
    assert not streams["process_peak_bytes"]
    assert "streams" in shown and "process" in shown
    assert main(["bench", str(file), "--runs", "2", "--cpu"]) == 0
    shown = capsys.readouterr().out
    assert "streams" not in shown and "process" not in shown


@needs_linux
def test_a_process_that_fails_is_told() -> None:
    with pytest.raises(LiteclError, match=r"whose memory is measured failed: .*ModelError: not a \.tflite file"):
        resident.usage_of(b"no model", {}, "litecl", None, {})
