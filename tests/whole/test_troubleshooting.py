"""docs/troubleshooting.md: litecl says what its tables quote."""

import gzip
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import litecl
from litecl import sample
from litecl.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md"
ROWS = re.findall(r"^\| `(.+?)`.* \| (.+) \|$", PAGE.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mistakes")
    made = sample.write(path)
    (path / "page.tflite").write_text("<!DOCTYPE html><html></html>")
    (path / "pointer.tflite").write_text("version https://git-lfs.github.com/spec/v1\nsize 3\n")
    (path / "model.tflite.gz").write_bytes(gzip.compress(made.model.read_bytes()))
    (path / "half.tflite").write_bytes(made.model.read_bytes()[:5000])
    np.save(path / "doubles.npy", np.zeros((1, 8, 8, 3)))
    np.save(path / "small.npy", np.zeros((1, 7, 7, 3), np.float32))
    (path / "net.onnx").write_bytes(b"\x08\x07\x12\x07pytorch")
    (path / "net.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(40))
    return path


def test_there_are_twenty() -> None:
    assert len(ROWS) >= 20


@pytest.mark.parametrize(("did", "says"), ROWS)
def test_it_says_so(
    did: str, says: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "ray", None)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    if did.startswith("litecl "):
        with pytest.raises(SystemExit) as ended:
            sys.exit(main(shlex.split(did)[1:]))
        assert ended.value.code in (1, 2)
        said = capsys.readouterr().err
    else:
        with pytest.raises((litecl.interpreter.errors.LiteclError, TypeError)) as raised:
            eval(did, {"litecl": litecl, "np": np, "model": litecl.Interpreter("model.tflite")})
        said = str(raised.value)
    assert says in " ".join(said.split())
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
