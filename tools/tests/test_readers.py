"""readers.py: its table has readers that answer, raise, die and hang."""

import json
import sys
from pathlib import Path

import pytest

from litecl.where.measure import Measured
from tools import readers

_ANSWER = {"outputs": {"y": {"wrong": "", "steps": 0, "relative": 0}}}
_READERS = {
    "answers": f"print({json.dumps(_ANSWER)!r})",
    "raises": "raise ValueError('no such operator')",
    "dies": "import os; os.abort()",
    "ends": "",
    "hangs": "import time; time.sleep(60)",
}


def test_every_reader_has_its_cell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(readers, "_OTHERS", dict.fromkeys(_READERS, ("numpy", "numpy", None)))
    monkeypatch.setattr(readers, "_RUNTIMES", ())
    monkeypatch.setattr(readers, "_TIMEOUT_S", 3)
    monkeypatch.setattr(readers, "_command", lambda reader, path: [sys.executable, "-c", _READERS[reader]])
    monkeypatch.setattr(readers, "files", lambda: {"a": lambda: b""})
    (page := tmp_path / "page.md").write_text(f"# Page\n\n{readers._HEADING}\nold\n\n## Next\n")
    readers.main(["--page", str(page)])
    text = page.read_text()
    assert "| a | same bits | no | no | no | no |\n" in text
    assert "- raises, a: ValueError: no such operator" in text
    assert "- dies, a: its process ended with -" in text
    assert "- hangs, a: no answer within 3 s" in text
    assert "old" not in text and text.endswith("## Next\n")


def test_a_runtime_that_dies_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_OTHERS", {})
    monkeypatch.setattr(readers, "_RUNTIMES", ("litert",))
    monkeypatch.setattr(readers, "PACKAGES", {"litert": ["numpy"]})
    monkeypatch.setattr(readers, "files", lambda: {"a": lambda: b""})
    monkeypatch.setattr(readers, "measure", lambda *_: Measured("litert", "", "its process died", {}))
    assert readers._table().startswith("| file | litert |\n|---|---|\n| a | no |\n")
