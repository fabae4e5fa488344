"""Damaged models run or are refused with a typed error; the search for those that do neither finds what it must."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.reader import read
from support.damage import changed_bytes, changed_words
from support.shared import GOLDEN, MODELS, needs_shared
from tools import fuzz
from tools.fuzz_record import Record, Round
from tools.fuzz_runtimes import RUNTIMES, Attempt, Limits, Tried
from tools.mutation import seeds
from tools.mutation.fields import changed_fields
from tools.mutation.layout import changed_layout
from tools.mutation.plan import Plan
from tools.mutation.tables import changed_tables


def _report(result: fuzz.Result) -> str:
    return "\n".join(f"{name}\n{trace}" for name, _, trace in result.failures[:3])


@pytest.mark.nightly
def test_damaged_operators() -> None:
    result = fuzz.fuzz(Plan(seeds.of_cases(), 2500, seed=3))
    assert not result.failures, _report(result)
    assert result.counts.total() == 2500
    assert min(result.counts["ran"], result.counts["ModelError"]) > 100


@pytest.mark.nightly
def test_damaged_graphs_on_the_way_to_a_device() -> None:
    """Claims, passes, lowerings and the placing of memory; and the whole way for a few."""
    plan = Plan(seeds.of_graphs(30), 600, seed=4)
    result = fuzz.fuzz(plan, tried=RUNTIMES["planned"])
    assert not result.failures, _report(result)
    assert min(result.counts["ran"], result.counts["ModelError"]) > 100
    result = fuzz.fuzz(plan, tried=RUNTIMES["device"], numbers=range(0, len(plan), 60))
    assert not result.failures and result.counts.total() == 10, _report(result)


@pytest.mark.nightly
@needs_shared
def test_damaged_real_models() -> None:
    plan = Plan(seeds.of_files([MODELS / "tensorflow-tflite-micro", GOLDEN / "models"]), 600, seed=5)
    result = fuzz.fuzz(plan, workers=2)
    assert not result.failures, _report(result)


def test_mutations_are_the_same_for_the_same_number() -> None:
    plan = Plan(seeds.of_cases()[:3], 20)
    assert [plan[i] for i in range(20)] == [plan[i] for i in range(20)]
    assert len({plan[i][1] for i in range(20)}) > 10


@pytest.mark.parametrize("change", [changed_bytes, changed_words, changed_layout, changed_fields, changed_tables])
def test_every_kind_of_mutation_damages_some_files_and_leaves_others_readable(
    change: Callable[[bytes, np.random.Generator], bytes],
) -> None:
    refused = different = 0
    for number, (_, content) in enumerate(seeds.of_cases(1)):
        mutant = change(content, np.random.default_rng(number))
        different += mutant != content
        try:
            read(mutant)
        except LiteclError:
            refused += 1
    assert different > 100 and 10 < refused < different


def test_what_escapes_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An error without a type of its own, and a process that ends."""

    def fails(content: bytes, limits: Limits) -> str:
        raise ZeroDivisionError("escaped")

    plan = Plan(seeds.of_cases()[:1], 3)
    result = fuzz.fuzz(plan, tried=Tried(fails))
    assert result.counts == {"failed": 3}
    assert "ZeroDivisionError: escaped" in result.failures[0][2]
    model = tmp_path / "model.tflite"
    model.write_bytes(plan.seeds[0][1])
    monkeypatch.setattr(fuzz, "RUNTIMES", {"interpreter": Tried(fails)})
    assert fuzz.main([str(model), "--mutants", "2", "--save", str(tmp_path / "saved")]) == 1
    assert len(list((tmp_path / "saved").iterdir())) == 2
    assert fuzz.fuzz(plan, tried=Tried(lambda content, limits: os._exit(3))).counts == {"crash": 3}


def _killed(content: bytes, limits: Limits) -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return ""


def _aborted(content: bytes, limits: Limits) -> str:
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'")
    os.abort()


def _loops(content: bytes, limits: Limits) -> str:
    while True:
        pass


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("attempt", "outcome"),
    [(_killed, "crash: SIGSEGV"), (_aborted, "crash: out of memory"), (_loops, "timeout")],
)
def test_deaths_are_told_apart(attempt: Attempt, outcome: str) -> None:
    limits = Limits(time_s=0.05, slack_s=0.1)
    result = fuzz.fuzz(Plan(seeds.of_cases()[:1], 2), limits=limits, tried=Tried(attempt))
    assert result.counts == {outcome: 2} and len(result.failures) == 2
    peer = fuzz.fuzz(Plan(seeds.of_cases()[:1], 2), limits=limits, tried=Tried(attempt, ours=False))
    assert peer.counts == {outcome: 2} and not peer.failures


def test_a_search_resumes_from_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, record = tmp_path / "model.tflite", tmp_path / "record.jsonl"
    model.write_bytes(seeds.of_cases()[0][1])
    asked = [str(model), "--mutants", "30", "--round", "10", "--record", str(record), "--on", "interpreter"]
    assert fuzz.main([*asked, "litert:5"]) == 0
    rounds = Record(record).rounds
    assert [(r.runtime, r.first, r.end, sum(r.counts.values())) for r in rounds] == [
        (name, first, first + 10, count)
        for first in (0, 10, 20)
        for name, count in (("interpreter", 10), ("litert", 2))
    ]
    record.write_text("".join(record.read_text().splitlines(keepends=True)[:-1]) + '{"runtime": "inter')
    monkeypatch.setattr(fuzz, "fuzz", lambda *given: pytest.fail("ran again"))
    assert Round("interpreter", 0, 0, 10, 1) in Record(record) and len(Record(record).rounds) == 5
    fuzz.main(asked)
