"""Models by their names on the Hugging Face Hub, with a stand-in for the network."""

import sys
from pathlib import Path
from typing import Any

import pytest

from support.command import data, failure, small_model

NAME = "hf://owner/repo/folder/model.tflite"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Hub's cache, with one file of one repository in two revisions, and no network."""
    huggingface_hub = pytest.importorskip("huggingface_hub")
    folder = tmp_path / "hub" / "models--owner--repo"
    content = small_model(tmp_path).read_bytes()
    for name, commit in (("main", "a" * 40), ("v1", "b" * 40)):
        file = folder / "snapshots" / commit / "folder" / "model.tflite"
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
        (folder / "refs").mkdir(exist_ok=True)
        (folder / "refs" / name).write_text(commit)
    real, address = huggingface_hub.hf_hub_download, huggingface_hub.hf_hub_url

    def in_that_cache(**given: Any) -> str:
        return str(real(**given, cache_dir=tmp_path / "hub"))

    def where_nobody_answers(**given: Any) -> str:
        return str(address(**given, endpoint="http://127.0.0.1:9"))

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", in_that_cache)
    monkeypatch.setattr(huggingface_hub, "hf_hub_url", where_nobody_answers)
    return folder


def test_a_model_of_the_hub(cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert data(capsys, "run", NAME, "--cpu")["outputs"]
    told = data(capsys, "inspect", NAME.replace("/folder", "@v1/folder"))
    assert told["model"] == str(cache / "snapshots" / ("b" * 40) / "folder" / "model.tflite")
    assert data(capsys, "bench", NAME, "--runs", 1, "--cpu")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hf://owner/repo/other.tflite", "hf://owner/repo/other.tflite: the Hub cannot be reached ("),
        ("hf://owner/repo", "expected hf://OWNER/REPOSITORY/FILE.tflite, with @REVISION"),
        ("hf:/owner/repo/model.tflite", "expected hf://OWNER"),
        ("hf://", "expected hf://OWNER"),
    ],
)
def test_what_is_not_there(name: str, said: str, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = failure(capsys, "run", name, "--cpu")
    assert said in told
    assert told.startswith("ModelFileError")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "pip install 'litecl[hf]'" in failure(capsys, "run", NAME)
