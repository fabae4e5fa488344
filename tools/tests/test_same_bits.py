"""same_bits.py: two models on five processors, and what it says of results that differ."""

import shutil
from pathlib import Path

import pytest

from litecl.delegate.native import kinds
from litecl.interpreter.file.writer import write_file
from support import small_models
from tools import same_bits

STEADY = "deterministic: the same bits on every processor, NaN's sign and payload aside"


@pytest.mark.skipif(not all(map(shutil.which, ("qemu-aarch64", "qemu-riscv64"))), reason="qemu-user is not installed")
@pytest.mark.skipif(kinds.here().name != "x86_64-linux", reason="the tool compares with x86-64")
def test_two_models(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if "avx512vl" not in Path("/proc/cpuinfo").read_text():
        monkeypatch.delitem(same_bits._TARGETS, "x86-64-v4")
    write_file(small_models.lstm(), tmp_path / "lstm.tflite")
    write_file(small_models.chain(), tmp_path / "chain.tflite")
    assert same_bits.main(tmp_path / "bits", [tmp_path / "lstm.tflite", tmp_path / "chain.tflite"]) == 0
    printed = capsys.readouterr().out
    assert printed.count(f"same bits; {STEADY}\n") == 2
    assert f"2 models on {len(same_bits._TARGETS)} processors, 0 not as promised" in printed


def _row(first: str, second: str = "", report: str = STEADY) -> dict[str, object]:
    return {"1": [first], "2": [second or first], "report": report}


def test_what_it_says() -> None:
    announced = f"{STEADY}, but for SIN (1)"
    assert same_bits._said({"a": _row("x"), "b": _row("x")}) == f"same bits; {STEADY}"
    assert same_bits._said({"a": _row("x"), "b": _row("y")}) == f"DIFFERS: a/1, a/2 | b/1, b/2; {STEADY}"
    assert same_bits._said({"a": _row("x", "y")}).startswith("DIFFERS: a/1 | a/2")
    told = same_bits._said({"a": _row("x", report=announced), "b": _row("y", report=announced)})
    assert told == f"announced: a/1, a/2 | b/1, b/2; {announced}"
    assert same_bits._said({"a": _row("x"), "b": _row("x", report=announced)}).startswith("DIFFERS: the reports")
    assert same_bits._said({"a": _row("x"), "b": {"failed": "no compiler"}}) == "DIFFERS: {'b': 'no compiler'}"
