"""The page and the exit codes of ``litecl diff``."""

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from litecl.cli.parser import main
from litecl.interpreter.file.writer import write
from support.fused_models import gelu, made


class _Cells(HTMLParser):
    """The cells of a page's tables, and the tags that would fetch something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.fetches: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("td", "th"):
            self.cells.append("")
        given = dict(attrs)
        self.fetches += [
            value for key in ("src", "href") if (value := given.get(key)) and not value.startswith("data:")
        ]

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def test_the_page_and_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, page, figures = (tmp_path / name for name in ("a<b.tflite", "b.tflite", "diff.html", "diff.json"))
    a.write_bytes(write(made(gelu(False))))
    b.write_bytes(write(made(gelu(True))))
    assert main(["diff", str(a), str(b), "-o", str(page), "-o", str(figures)]) == 1
    said = capsys.readouterr().out
    assert "fused, split or replaced" in said
    data = json.loads(figures.read_text())
    assert [row["ops_b"] for row in data["replaced"]] == [["GELU"]]
    text = page.read_text()
    read = _Cells(text)
    assert read.fetches == []
    assert {"1 to 9", "GELU"} <= {cell.strip() for cell in read.cells}
    assert "a&lt;b.tflite" in text
    assert "a<b.tflite" not in text
    assert "<svg" in text  # the layers' errors, which are not 0 but small
    assert main(["diff", str(a), str(a), "-o", str(page)]) == 0
    assert "The same structure." in page.read_text()
    for wrong in ([str(a), str(tmp_path / "none.tflite")], [str(page), str(a)], [str(a), str(b), "--input", "z=x.npy"]):
        assert main(["diff", *wrong]) == 2
    capsys.readouterr()
    assert main(["diff", str(tmp_path / "none.tflite"), str(a), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["exit_code"] == 2
    with pytest.raises(SystemExit, match="2"):
        main(["diff", str(a), str(b), "-o", str(tmp_path / "diff.pdf")])
