"""litecl compare: finds slowdowns, and ignores chance."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cli import main
from litecl.interpreter.errors import ModelError
from litecl.perf.compare import changes, differences, load, rank_test, unpaired
from litecl.perf.environment import header

RNG = np.random.default_rng(8)


def times(count: int = 50, factor: float = 1.0) -> list[float]:
    """Times as of a machine: a floor, a spread above it, and now and then a disturbance."""
    spread = RNG.gamma(2.0, 0.03, count) + (RNG.random(count) < 0.05) * RNG.exponential(2.0, count)
    return list(factor * (1.0 + spread))


def bench(of: list[float], **more: Any) -> dict[str, Any]:
    subject = {"name": "litecl", "times_ms": of}
    return (
        header("litecl bench")
        | {"sha256": "a", "device": None, "subjects": [subject], "profile": None}
        | {"numbers": "reference"}
        | more
    )


def test_the_rank_test_is_mann_whitney_s() -> None:
    # By hand: U is 0 of a mean of 8 with a deviation of sqrt(12); and 2.5 of 8, with sqrt(312 / 28) because of ties.
    assert rank_test([1.1, 2.2, 3.3, 4.4], [5.5, 6.6, 7.7, 8.8]) == pytest.approx(0.03038282, rel=1e-6)
    assert rank_test([1, 2, 2, 3], [2, 3, 4, 4]) == pytest.approx(0.134169, rel=1e-5)
    assert rank_test([1, 1], [1, 1]) == 1.0


def test_what_is_slower_is_found_and_chance_is_not() -> None:
    found = [changes(bench(times()), bench(times(factor=1.1)), 0.05)[0].verdict for _ in range(20)]
    assert found.count("slower") == 20
    same = [changes(bench(times()), bench(times()), 0.05)[0].verdict for _ in range(20)]
    assert same.count("same") == 20
    assert changes(bench(times(factor=1.2)), bench(times()), 0.05)[0].verdict == "faster"
    assert changes(bench(times()), bench(times(factor=1.1)), 0.2)[0].verdict == "same"


def disturbed(count: int = 1200) -> list[float]:
    """Times of a machine that others keep busy now and then, for a hundred invokes in a row."""
    slow = np.repeat(RNG.random(-(-count // 100)) < 0.4, 100)[:count]
    return list(1.0 + RNG.gamma(2.0, 0.01, count) + 0.2 * slow)


def test_what_disturbs_many_invokes_in_a_row_is_chance() -> None:
    """Every twelfth part of a run counts once: taken one by one, most of such pairs differ."""
    pairs = [(disturbed(), disturbed()) for _ in range(40)]
    assert sum(rank_test(a, b) < 0.01 for a, b in pairs) > 20
    verdicts = [changes(bench(a), bench(b), 0.03)[0].verdict for a, b in pairs]
    assert verdicts.count("same") >= 38
    slower = [changes(bench(a), bench([1.3 * ms for ms in b]), 0.03)[0].verdict for a, b in pairs]
    assert slower.count("slower") >= 38


def test_the_command_fails_where_it_is_slower(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    kernels = [{"op": "CONV_2D", "duration_ms": 0.5}, {"op": "ADD", "duration_ms": 0.1}]
    slower = [{"op": "CONV_2D", "duration_ms": 0.9}, {"op": "ADD", "duration_ms": 0.1}]
    old.write_text(json.dumps(bench(times(), profile={"kernels": kernels})))
    new.write_text(json.dumps(bench(times(factor=1.3), sha256="b", profile={"kernels": slower})))
    assert main(["compare", str(old), str(old)]) == 0
    capsys.readouterr()
    assert main(["compare", str(old), str(new), "--fail-above", "5%", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["changes"][0]["verdict"] == "slower"
    assert found["operators"][0] == {"op": "CONV_2D", "old_ms": 0.5, "new_ms": 0.9}
    assert found["differences"] == ["model:  (SHA-256 a...) before,  (SHA-256 b...) now"]
    assert main(["compare", str(old), str(new), "--fail-above", "50%"]) == 0


def test_what_only_one_benchmark_measured_is_said() -> None:
    def subject(name: str, threads: int | None, of: list[float]) -> dict[str, Any]:
        return {"name": name, "num_threads": threads, "times_ms": of}

    old = bench([]) | {"subjects": [subject("litecl", None, times()), subject("litert", 1, times())]}
    both = [subject("litert", 1, times(factor=2.0)), subject("litert", 2, times())]
    new = bench([], numbers="tflm") | {"subjects": [subject("litecl", 1, times()), *both]}
    assert [(c.name, c.verdict) for c in changes(old, new, 0.05)] == [
        ("litecl", "same"),
        ("litert, 1 thread", "slower"),
    ]
    assert unpaired(old, new) == ["litert, 2 threads: measured in the new benchmark only"]
    assert unpaired(new, old) == ["litert, 2 threads: measured in the old benchmark only"]
    assert differences(old, new) == ["numbers: reference before, tflm now"]


def test_what_is_no_benchmark_is_told(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    for content in ("{}", "[1]", "no json", json.dumps(header("litecl verify"))):
        file.write_text(content)
        with pytest.raises(ModelError, match="litecl bench"):
            load(file)
