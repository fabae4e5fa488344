"""Helpers share the runs of a short region where that was measured to pay, whatever the results."""

import itertools
from typing import Any

import numpy as np
import pytest

from litecl.delegate.native import compiler
from litecl.delegate.native.execution import NativeExecution
from litecl.delegate.plan.region_tables import NativeCall
from litecl.interpreter import Interpreter
from support import small_models
from support.small_models import native, reference, run

_FOUND = compiler.found()
pytestmark = pytest.mark.skipif(
    _FOUND is None or not {"__x86_64__", "__aarch64__"} & _FOUND.macros.keys(),
    reason="no compiler for the processor, or no counter of time that every program may read",
)
X = np.random.default_rng(5).standard_normal((2, 5)).astype(np.float32)
CHAIN = small_models.chain()
TRIES, ROUND = 6, 1024  # as in kernels_cl/region_native.h


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> tuple[Interpreter, Any]:
    """An interpreter of two workers, and what its region's function is called with."""
    records = list[Any]()
    prepare = NativeExecution._prepare

    def kept(self: NativeExecution, *arguments: Any) -> Any:
        records.append(prepare(self, *arguments))
        return records[-1]

    monkeypatch.setattr(NativeExecution, "_prepare", kept)
    interpreter = native(CHAIN, num_threads=2)
    (record,) = records
    if record[NativeCall.WORKERS] == 1:
        pytest.skip("one processor")
    return interpreter, record


def _runs_with_helpers(interpreter: Interpreter, record: Any, count: int) -> int:
    """Run so often; return how many of these runs helpers may have shared, which each had a number of its own."""
    numbers = [int(record[NativeCall.NUMBER])]
    for _ in range(count):
        interpreter.invoke()
        numbers.append(int(record[NativeCall.NUMBER]))
    return sum(a != b for a, b in itertools.pairwise(numbers))


def test_both_ways_are_tried(made: tuple[Interpreter, Any]) -> None:
    """Alone first, as helpers that have just run take part of a shared core."""
    interpreter, record = made
    wanted = run(reference(CHAIN), X)
    record[NativeCall.RUNS] = 0
    np.testing.assert_allclose(run(interpreter, X), wanted, rtol=1e-5)
    record[NativeCall.RUNS] = 0
    assert _runs_with_helpers(interpreter, record, TRIES) == 0
    assert _runs_with_helpers(interpreter, record, TRIES) == TRIES
    assert 0 < record[NativeCall.ALONE] < 1 << 63
    assert 0 < record[NativeCall.TOGETHER] < 1 << 63


@pytest.mark.parametrize(("together", "shared"), [(900, 9), (990, 0), (1000, 0), (1 << 63, 0)])
def test_what_took_less_time_is_kept_for_a_round(made: tuple[Interpreter, Any], together: int, shared: int) -> None:
    interpreter, record = made
    record[NativeCall.RUNS], record[NativeCall.ALONE], record[NativeCall.TOGETHER] = 2 * TRIES, 1000, together
    assert _runs_with_helpers(interpreter, record, 9) == shared
    record[NativeCall.RUNS] = ROUND - 1
    interpreter.invoke()
    assert record[NativeCall.RUNS] == 0
    assert _runs_with_helpers(interpreter, record, 2 * TRIES) == TRIES  # they are tried again
    np.testing.assert_allclose(run(interpreter, X), run(reference(CHAIN), X), rtol=1e-5)
