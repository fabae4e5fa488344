"""The function of a region takes the times of its own steps: of the library that runs, which computes the same."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.delegate import CLDelegate, DelegationReport
from litecl.delegate.native import compiler
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Model
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.compare import LESS
from litecl.interpreter.ops.unary import TANH
from litecl.perf.feeds import outputs_of, prepare, random_inputs
from litecl.perf.models.build import Graph
from litecl.perf.models.build_control import (
    FLOAT,
    INT,
    below,
    if_node,
    int32,
    next_,
    plus,
    subgraph,
    times,
    while_model,
)
from litecl.verify.scenarios.images import sound

pytestmark = pytest.mark.skipif(compiler.found() is None, reason="no compiler for the processor")
_STATE = (((), INT), ((7,), FLOAT))


def branching() -> Model:
    """Return a loop of five iterations: two take the first branch and three the other, with a tanh after each."""

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        early = g.op(LESS, [x[0], g.const(int32(2))], NoOptions())
        (chosen,) = if_node(g, [early, x[1]], 3, 4, x[1])
        return [next_(g, x[0]), g.op(TANH, [chosen], NoOptions())]

    return while_model(
        _STATE,
        below(5),
        body,
        subgraph("early", _STATE[1:], lambda g, x: plus(g, x[0], x[0])),
        subgraph("late", _STATE[1:], lambda g, x: times(g, x[0], x[0])),
    )


def ready(model: Model, **options: Any) -> Interpreter:
    interpreter = Interpreter(model, delegates=[CLDelegate("native", strict=True, **options)])
    inputs = {d["name"]: np.zeros((), np.int32) for d in interpreter.get_input_details() if not d["shape"].size}
    prepare(interpreter, random_inputs(interpreter.get_input_details(), 0) | inputs)
    return interpreter


@pytest.mark.parametrize("make", [sound, branching])
@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 2}], ids=["one worker", "several workers"])
def test_the_same_program_computes_the_same(make: Any, options: dict[str, Any]) -> None:
    plain, timed = ready(make(), **options), ready(make(), profile=True, **options)
    for _ in range(3):
        plain.invoke(), timed.invoke()
        for a, b in zip(outputs_of(plain), outputs_of(timed), strict=True):
            np.testing.assert_array_equal(a, b)
    reports = [DelegationReport.of(interpreter) for interpreter in (plain, timed)]
    assert [row.manner.runs for report in reports for row in report.partitions] == ["one kernel", "one kernel"]
    assert not reports[0].kernels
    assert len(reports[1].kernels) == reports[1].partitions[0].launches


@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 2}], ids=["one worker", "several workers"])
def test_times_lie_within_the_invoke_one_after_another(options: dict[str, Any]) -> None:
    timed = ready(sound(), profile=True, **options)
    for _ in range(3):
        start_s = time.perf_counter()
        timed.invoke()
        invoke_ms = (time.perf_counter() - start_s) * 1e3
        rows = DelegationReport.of(timed).kernels
        assert all(row.duration_ms >= 0 and row.runs == 1 for row in rows)
        ends = [row.start_ms + row.duration_ms for row in rows]
        assert all(end <= later.start_ms + 1e-6 for end, later in zip(ends, rows[1:], strict=False))
        assert 0 < sum(row.duration_ms for row in rows) <= 1.02 * invoke_ms


@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 2}], ids=["one worker", "several workers"])
def test_what_loops_and_branches_run_is_counted(options: dict[str, Any]) -> None:
    timed = ready(branching(), profile=True, **options)
    for _ in range(2):
        timed.invoke()
        rows = DelegationReport.of(timed).kernels
        runs = {number: {row.runs for row in rows if row.subgraph == number} for number in (2, 3, 4)}
        assert runs == {2: {5}, 3: {2}, 4: {3}}


@pytest.mark.parametrize("options", [{"num_threads": 1}, {"num_threads": 2}], ids=["one worker", "several workers"])
def test_some_iterations_of_long_loops_stand_for_all(options: dict[str, Any]) -> None:
    """The second branch is first taken in an iteration that is not measured."""

    def body(g: Graph, x: Sequence[int]) -> list[int]:
        (chosen,) = if_node(g, [g.op(LESS, [x[0], g.const(int32(11))], NoOptions()), x[1]], 3, 4, x[1])
        return [next_(g, x[0]), g.op(TANH, [chosen], NoOptions())]

    branches = (subgraph(name, _STATE[1:], lambda g, x: times(g, x[0], x[0])) for name in ("early", "late"))
    timed = ready(while_model(_STATE, below(100), body, *branches), profile=True, **options)
    for _ in range(3):
        timed.invoke()
        rows = DelegationReport.of(timed).kernels
        assert {number: {row.runs for row in rows if row.subgraph == number} for number in (2, 3, 4)} == {
            2: {100},
            3: {11},
            4: {89},
        }
        assert all(row.duration_ms > 0 for row in rows)


def test_programs_of_runs_without_times_stay_as_they_are(tmp_path: Path) -> None:
    def kept() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in tmp_path.rglob("*.bin")}

    ready(branching(), num_threads=1, cache_dir=tmp_path).invoke()
    before = kept()
    timed = ready(branching(), num_threads=1, cache_dir=tmp_path, profile=True)
    timed.invoke()
    assert DelegationReport.of(timed).kernels
    after = kept()
    assert {name: after[name] for name in before} == before
    assert {name.split("-")[0].split("_")[0] for name in after.keys() - before.keys()} >= {"region"}
