"""Damaged models run or are refused with a typed error; the search for those that do neither finds what it must."""

from pathlib import Path

import pytest

from litecl.cases.tables import TABLES
from litecl.interpreter.errors import LiteclError, ModelError
from litecl.interpreter.file.writer import write
from litecl.interpreter.interpreter import Interpreter
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops import unary
from litecl.interpreter.run.executor import Executor
from support.shared import GOLDEN, MODELS, needs_shared, rows
from tools import fuzz, mutants


def _case_seeds() -> list[tuple[str, bytes]]:
    """The first two cases of every operator."""
    seen: dict[str, int] = {}
    found = []
    for case in (case for table in TABLES for case in table.CASES):
        seen[case.op.name] = seen.get(case.op.name, 0) + 1
        if seen[case.op.name] <= 2:
            found.append((repr(case), write(case.model())))
    return found


def _report(result: fuzz.Result) -> str:
    return "\n".join(f"{name}\n{trace}" for name, _, trace in result.failures[:3])


def test_damaged_operators() -> None:
    result = fuzz.fuzz(mutants.Plan(_case_seeds(), 2500, seed=3))
    assert not result.failures, _report(result)
    assert result.counts.total() == 2500
    assert min(result.counts["ran"], result.counts["ModelError"]) > 100


@needs_shared
def test_damaged_real_models() -> None:
    plan = mutants.Plan(mutants.seeds([MODELS / "tensorflow-tflite-micro", GOLDEN / "models"]), 600, seed=5)
    result = fuzz.fuzz(plan, workers=2)
    assert not result.failures, _report(result)


def test_mutations_are_the_same_for_the_same_number() -> None:
    plan = mutants.Plan(_case_seeds()[:3], 20)
    assert [plan[i] for i in range(20)] == [plan[i] for i in range(20)]
    assert len({plan[i][1] for i in range(20)}) > 10


def test_what_escapes_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An error without a type of its own, and a process that ends."""

    def fails(content: bytes, limits: fuzz.Limits) -> str:
        raise ZeroDivisionError("escaped")

    seeds = _case_seeds()[:1]
    monkeypatch.setattr(fuzz, "attempt", fails)
    result = fuzz.fuzz(mutants.Plan(seeds, 3))
    assert result.counts == {"failed": 3}
    assert "ZeroDivisionError: escaped" in result.failures[0][2]
    model = tmp_path / "model.tflite"
    model.write_bytes(seeds[0][1])
    assert fuzz.main([str(model), "--mutants", "2", "--save", str(tmp_path / "saved")]) == 1
    assert len(list((tmp_path / "saved").iterdir())) == 2
    monkeypatch.setattr(fuzz, "attempt", lambda content, limits: __import__("os")._exit(3))
    assert fuzz.fuzz(mutants.Plan(seeds, 2)).counts == {"crash": 2}


def test_what_a_kernel_raises_is_a_model_error_that_names_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(options: NoOptions, inputs: object) -> list[object]:
        raise MemoryError

    case = next(case for table in TABLES for case in table.CASES if case.op is unary.SIN)
    broken = Op("SIN", NoOptions, unary.SIN.infer, breaks)  # type: ignore[arg-type]
    interpreter = Interpreter(write(case.model()))
    interpreter.allocate_tensors()
    steps = vars(interpreter)
    executor = next(value for value in steps.values() if isinstance(value, Executor))
    monkeypatch.setattr(executor, "_steps", [tuple(_with(step, broken) for step in s) for s in executor._steps])
    with pytest.raises(ModelError, match="not enough memory") as caught:
        interpreter.invoke()
    assert caught.value.__notes__ == ["while running SIN (subgraph 0, node 0)"]


def _with(step: object, op: Op) -> object:
    from dataclasses import replace

    return replace(step, run=op.run)  # type: ignore[type-var]


@needs_shared
@pytest.mark.parametrize("row", [r for r in rows() if "CRASH" in r["litert_note"]], ids=lambda r: Path(r["file"]).name)
def test_models_that_crash_litert(row: dict[str, str]) -> None:
    """They run, or say what is wrong with them."""
    try:
        interpreter = Interpreter(str(MODELS / row["file"]))
        interpreter.allocate_tensors()
        interpreter.invoke()
    except LiteclError as error:
        assert str(error)
