"""The table of language models: what it says of a right file, of a wrong device, and of files that LiteRT refuses."""

from pathlib import Path

import numpy as np
import pytest

from litecl.interpreter.file.writer import write
from support.causal_lm import CausalLM
from support.pattern_models import classifier
from tools import language_models


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of tokens, one of embeddings without an embedder, one that is no language model, and no model."""
    lm = CausalLM(prefills=(8, 4))
    (tmp_path / "a.tflite").write_bytes(write(lm.model()))
    (tmp_path / "b.tflite").write_bytes(write(lm.model(embeddings=True)))
    (tmp_path / "c.tflite").write_bytes(write(classifier()))
    return tmp_path


def test_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert language_models.main([str(folder), "--steps", "5", "--tolerance", "1e-5"]) == 0
    lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert [Path(line[0]).name for line in lines[2:]] == ["a.tflite", "b.tflite", "c.tflite"]
    for line in lines[2:]:
        assert line[1] == "reference"
        assert all(number < 1e-5 for cell in line[2:4] if cell != "-" for number in _numbers(cell))
        claimed, nodes = line[4].split(" of ")
        assert claimed == nodes
    assert all(number > 0 for line in lines[2:4] for number in _numbers(line[2]))  # computed, not copied


def _numbers(cell: str) -> list[float]:
    numbers = [float(number) for number in cell.split(", ")]
    assert len(numbers) == 3
    return numbers


def test_a_wrong_number_is_seen(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the caches alone too, after the last step."""
    original = language_models.InterpreterRunner.values

    def wrong(self: object, caches: object) -> dict[str, np.ndarray]:
        values = original(self, caches)  # type: ignore[arg-type]
        values["kv_cache_v_0"][0, 0, 3, 1] += 1.0
        return values

    monkeypatch.setattr(language_models.InterpreterRunner, "values", wrong)
    assert language_models.main([str(folder / "a.tflite"), "--steps", "2"]) == 1
    cells = capsys.readouterr().out.splitlines()[-1].strip("| ").split(" | ")
    assert max(_numbers(cells[2])) < 1e-5
    theirs, *ours = _numbers(cells[3])
    assert theirs < 1e-5
    assert min(ours) > 0.03


def test_a_file_that_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "d.tflite").write_bytes((folder / "a.tflite").read_bytes()[:3000])
    assert language_models.main([str(folder / "d.tflite")]) == 1
    assert "LiteRT: The model is not a valid" in capsys.readouterr().out
