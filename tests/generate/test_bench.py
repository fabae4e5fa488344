"""``litecl bench --generate``: figures of prefill and decode, in turns with LiteRT."""

from pathlib import Path

import pytest

from litecl.interpreter.file.writer import write_file
from support.causal_lm import CausalLM
from support.command import data, failure, text

LM = CausalLM()
SMALL = ("--generate", "--prompt-tokens", "12", "--max-tokens", "5", "--runs", "2")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return LM.write(tmp_path)


def test_figures(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, "bench", path, *SMALL, "--against", "litert", "--threads", "1")
    assert [(speed["name"], speed["num_threads"]) for speed in found["speeds"]] == [("litecl", 1), ("litert", 1)]
    for speed in found["speeds"]:
        assert (speed["prefill"]["runs"], speed["decode"]["runs"]) == (2, 10)
        assert speed["prefill_tokens_per_s"] == pytest.approx(11e3 / speed["prefill"]["median_ms"])
        assert speed["decode_tokens_per_s"] == pytest.approx(1e3 / speed["decode"]["median_ms"])
    ours, theirs = found["speeds"]
    (compared,) = found["comparisons"]
    assert compared["decode_ratio"] == pytest.approx(theirs["decode"]["median_ms"] / ours["decode"]["median_ms"])
    assert 0 < compared["difference"] < 1e-5
    assert found["delegation"]["nodes"]
    assert (found["prompt_tokens"], found["generated_tokens"], found["rounds"]) == (12, 5, 2)


def test_embeddings_of_a_file_beside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_file(LM.model(embeddings=True), tmp_path / "model.tflite")
    write_file(LM.embedder(), tmp_path / "embedder.tflite")
    found = data(capsys, "bench", tmp_path / "model.tflite", *SMALL, "--against", "litert", "--cpu")
    assert found["comparisons"][0]["difference"] < 1e-5
    assert (found["delegation"], found["device"]) == (None, None)


def test_a_table(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = text(capsys, "bench", path, *SMALL, "--against", "litert", "--threads", "1")
    assert "a prompt of 12 tokens, 5 generated, 2 times" in shown
    assert "decode" in shown  # a narrow column breaks its title
    assert "litert with 1 thread takes" in shown
    assert "nodes in" in shown


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--prompt-tokens", "60", "--max-tokens", "5"), "64 at most with those that are generated, got 60 and 5"),
        (("--prompt-tokens", "1"), "expected 2 or more tokens of prompt"),
        (("--threads", "1", "--threads", "2"), "--generate: expected one num_threads, got 2"),
    ],
)
def test_errors(path: Path, flags: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in failure(capsys, "bench", path, "--generate", *flags)


def test_bundles_are_language_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.litertlm").write_bytes(b"LITERTLM")
    assert "a bundle of 8 bytes" in failure(capsys, "bench", tmp_path / "model.litertlm")
