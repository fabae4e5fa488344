"""Measuring: figures, turns, traces, comparisons, and models' inputs."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from litecl.cli.tables import size, to_json
from litecl.interpreter import Interpreter
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.binary import ADD, AddOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.softmax import SOFTMAX, SoftmaxOptions
from litecl.interpreter.ops.unary import EXP
from litecl.interpreter.schema import TensorType
from litecl.perf import contenders, timing
from litecl.perf.bench import BenchOptions, bench, profile
from litecl.perf.feeds import (
    difference,
    outputs_of,
    prepare,
    random_inputs,
    save_outputs,
    steps,
)
from litecl.perf.summary import describe, node_lines, summarize
from litecl.perf.timing import Stats, in_turns
from litecl.perf.trace import Trace
from support.build import Graph, model, randn
from support.loop_models import FLOAT, INT, below, next_, times, while_model

RNG = np.random.default_rng(5)


def dense() -> Model:
    """softmax(x w + b) and x w + b + exp(b), where b is one constant under two names."""
    g = Graph()
    x = g.input((2, 6), signature=(-1, 6))
    bias = randn(RNG, 4)
    y = g.op(FULLY_CONNECTED, [x, g.const(randn(RNG, 4, 6)), g.const(bias)], FullyConnectedOptions())
    shifted = g.op(ADD, [y, g.op(EXP, [g.const(bias)], NoOptions())], AddOptions())
    return model(g.build(g.op(SOFTMAX, [y], SoftmaxOptions(1.0)), shifted))


def test_stats_are_the_order_statistics() -> None:
    stats = Stats(tuple(float(n) for n in (11, 1, 10, 2, 9, 3, 8, 4, 7, 5, 6)))
    assert (stats.min_ms, stats.median_ms, stats.p10_ms, stats.p90_ms) == (1.0, 6.0, 2.0, 10.0)
    told = stats.to_dict()
    assert told.pop("times_ms") == list(stats.times_ms)
    percentiles = {"p1_ms": 1.1, "p5_ms": 1.5, "p10_ms": 2.0, "p25_ms": 3.5, "p75_ms": 8.5}
    percentiles |= {"p90_ms": 10.0, "p95_ms": 10.5, "p99_ms": 10.9}
    assert told == pytest.approx({"runs": 11, "median_ms": 6.0, "mean_ms": 6.0, "min_ms": 1.0} | percentiles)


def test_turns_alternate_and_tick_once_a_round() -> None:
    calls: list[str] = []
    runs = [lambda: calls.append("a"), lambda: calls.append("b")]
    stats = in_turns(runs, 3, pause_s=0.0, tick=lambda: calls.append("."))
    assert "".join(calls) == "ab.ab.ab."
    assert [len(s.times_ms) for s in stats] == [3, 3]


def test_untimed_calls_follow_a_rest_until_threads_have_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, calls = [0.0], list[str]()

    def lasting(name: str) -> Callable[[], None]:
        def run() -> None:
            calls.append(name)
            now_s[0] += 0.4 * timing.SETTLE_S

        return run

    clock = SimpleNamespace(perf_counter=lambda: now_s[0], sleep=lambda s: calls.append(f"rest {s}, "))
    monkeypatch.setattr(timing, "time", clock)
    stats = in_turns([lasting("a"), lasting("b")], 1, pause_s=0.5)
    assert "".join(calls) == "rest 0.5, aaaarest 0.5, bbbb"  # three last 1.2 SETTLE_S
    assert [s.times_ms for s in stats] == [pytest.approx([400 * timing.SETTLE_S])] * 2


def test_trace_does_not_count_what_a_callee_took() -> None:
    trace = Trace()
    trace.ran(0, 0, "ADD", 0.0, 1.0)
    for start_s in (2.0, 4.0):
        trace.ran(1, 0, "MUL", start_s, start_s + 1.5)
    trace.ran(0, 1, "WHILE", 1.0, 6.0)
    rows = {(row.subgraph, row.node): row for row in trace.rows}
    assert rows[0, 1].total_ms == pytest.approx(2000.0)
    assert rows[1, 0].total_ms == pytest.approx(3000.0)
    assert rows[1, 0].calls == 2
    assert rows[0, 0].total_ms == pytest.approx(1000.0)


def test_trace_hears_every_node_that_runs() -> None:
    trace = Trace()
    interpreter = Interpreter(dense(), listeners=[trace])
    prepare(interpreter, {})
    for _ in range(3):
        interpreter.invoke()
    assert {(row.op, row.calls) for row in trace.rows} == {("FULLY_CONNECTED", 3), ("ADD", 3), ("SOFTMAX", 3)}
    trace.clear()
    assert trace.rows == ()


def test_steps_are_those_of_quantized_outputs() -> None:
    quantized, plain = ({"quantization_parameters": {"scales": np.ones(n, np.float32)}} for n in (1, 0))
    got, expected = [np.int8([127, 3]), np.int8([1])], [np.int8([-128, 4]), np.int8([9])]
    assert steps([quantized, plain], got, expected) == 255
    assert steps([plain], got[1:], expected[1:]) is None


def test_difference_is_relative_to_the_tensors_magnitude() -> None:
    expected = np.array([100.0, 1.0], np.float32)
    assert difference([expected], [expected]) == 0.0
    assert difference([expected + np.float32([0, 1])], [expected]) == pytest.approx(0.01)
    nan = np.array([np.nan, 1.0], np.float32)
    assert difference([nan], [nan]) == 0.0
    assert difference([nan], [expected]) == math.inf
    assert difference([expected[:1]], [expected]) == math.inf
    assert difference([np.array([b"a"], object)], [np.array([b"b"], object)]) == math.inf
    assert difference([np.array([True])], [np.array([True])]) == 0.0


def test_random_inputs_are_repeatable_and_fit_their_types() -> None:
    types = (np.float32, np.int8, np.uint8, np.int32, np.int64, np.bool_, np.complex64)
    details = [{"name": np.dtype(t).name, "shape": np.array([50, 2]), "dtype": t} for t in types]
    values, again, other = random_inputs(details, 1), random_inputs(details, 1), random_inputs(details, 2)
    for name, value in values.items():
        assert value.shape == (50, 2)
        assert value.dtype == np.dtype(name)
        assert np.array_equal(value, again[name])
        assert not np.array_equal(value, other[name])
    assert set(np.unique(values["int64"])) == {0, 1}


def test_prepare_resizes_and_outputs_are_saved(tmp_path: Path) -> None:
    interpreter = Interpreter(dense())
    prepare(interpreter, {"main_in0": randn(RNG, 5, 6)})
    interpreter.invoke()
    values = outputs_of(interpreter)
    assert [v.shape for v in values] == [(5, 4), (5, 4)]
    saved = save_outputs(interpreter.get_output_details(), outputs_of(interpreter), tmp_path / "new" / "folder")
    for path, value in zip(saved, values, strict=True):
        np.testing.assert_array_equal(np.load(path), value)


def test_summary_counts_nodes_tensors_and_shared_constants_once() -> None:
    summary = summarize(dense())
    (graph,) = summary.subgraphs
    assert summary.operators == {"ADD": 1, "EXP": 1, "FULLY_CONNECTED": 1, "SOFTMAX": 1}
    assert graph.tensors == {"FLOAT32": 8}
    assert graph.inputs[0].shape == (-1, 6)
    assert summary.constant_bytes == (4 * 6 + 4) * 4


def test_node_lines_tell_tensors_and_unusual_options() -> None:
    lines = node_lines(dense())
    assert lines[0].op == "FULLY_CONNECTED"
    assert lines[0].inputs[:2] == ("0:FLOAT32[2,6]", "1=FLOAT32[4,6]")
    assert lines[0].options == ""
    assert lines[-1].options == "beta=1.0"
    assert describe(3, TensorSpec(TensorType.INT32, None)) == "3:INT32[?]"


def test_bench_measures_in_turns_and_compares() -> None:
    ticks: list[None] = []
    inputs = {"main_in0": randn(RNG, 2, 6)}
    options = BenchOptions({"num_threads": 1}, runs=4, warmup=1, against=("litert",))
    result = bench(write(dense()), inputs, options, lambda: ticks.append(None))
    ours, theirs = result.subjects
    assert (ours.name, theirs.name) == ("litecl", "litert")
    assert len(ticks) == 5
    assert len(ours.stats.times_ms) == len(theirs.stats.times_ms) == 4
    (comparison,) = result.comparisons
    assert comparison.difference < 1e-5
    assert comparison.median_ratio == pytest.approx(theirs.stats.median_ms / ours.stats.median_ms)
    assert result.report is not None


def test_reference_kernels_are_a_peer_of_the_cpu() -> None:
    inputs = {"main_in0": randn(RNG, 2, 6)}
    options = BenchOptions({"num_threads": 1}, cpu=True, runs=3, against=("litert-reference",))
    result = bench(write(dense()), inputs, options)
    assert [(s.name, s.num_threads) for s in result.subjects] == [("litecl", 1), ("litert-reference", 1)]
    assert result.comparisons[0].difference < 1e-5


def test_threads_of_the_cpu_are_those_of_its_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """``litecl bench --cpu --threads 1`` really limits numpy's BLAS."""
    given: list[Any] = []

    class Spy(Interpreter):
        def __init__(self, *args: Any, **options: Any) -> None:
            given.append(options.get("num_threads"))
            super().__init__(*args, **options)

    monkeypatch.setattr(contenders, "Interpreter", Spy)
    for threads in (1, None):
        contenders.litecl(write(dense()), {"num_threads": threads}, cpu=True)
    assert given == [1, None]


def test_profile_gives_device_times_by_launch_and_host_times_by_node() -> None:
    inputs = {"main_in0": randn(RNG, 2, 6)}
    found = profile(write(dense()), inputs, BenchOptions(), runs=3)
    assert [row.op for row in found.host] == ["CL_REGION"]
    assert {k.op for k in found.kernels} >= {"FULLY_CONNECTED", "SOFTMAX"}
    assert all(k.duration_ms > 0 for k in found.kernels)
    on_cpu = profile(write(dense()), inputs, BenchOptions(cpu=True), runs=3)
    assert on_cpu.kernels == ()
    assert {row.op: row.calls for row in on_cpu.host} == {"FULLY_CONNECTED": 3, "ADD": 3, "SOFTMAX": 3}


def test_a_profile_counts_the_operations_of_all_iterations() -> None:
    """Times are those of all of them too."""
    state = [((), INT), ((4, 8), FLOAT)]
    flops = {}
    for trips in (1, 7):
        content = write(while_model(state, below(trips), lambda g, x: [next_(g, x[0]), times(g, x[1], x[1])]))
        found = profile(content, {"main_in1": randn(RNG, 4, 8)}, BenchOptions(), runs=3)
        (flops[trips],) = (k.flops for k in found.kernels if k.op == "MUL")
    assert flops == {1: 32, 7: 7 * 32}


def test_json_is_standard() -> None:
    text = to_json({"a": [float("nan"), float("inf"), 1.5], "b": True})
    assert json.loads(text, parse_constant=pytest.fail) == {"a": [None, None, 1.5], "b": True}


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB")]
)
def test_sizes_are_told_in_the_largest_unit(size_bytes: int, text: str) -> None:
    assert size(size_bytes) == text
