"""Names in a model that would control a terminal, forge a line or reorder text: every command writes them out."""

import json
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from litecl.cli import main
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write_file
from litecl.interpreter.graph import Model
from litecl.interpreter.visible import visible, visible_lines
from support.command import small_model

# A title for the window, a bell, C1's CSI, DEL, an override of direction, a line of its own, rich's markup and emoji.
EVIL = "\x1b]0;title\x07\x9b2J\x7f\u202egpj\u2066\nFORGED[/x][red]:bomb:"
SHOWN = r"\x1b]0;title\x07\x9b2J\x7f\u202egpj\u2066\nFORGED[/x][red]:bomb:"
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]")


def test_one_function_writes_them_out() -> None:
    assert visible(EVIL) == SHOWN
    assert visible_lines("a\n\tb\r\x1b") == r"a" + "\n\tb" + r"\r\x1b"
    for text in ("plain", "é ü 日本語 한국어 العربية עברית", "a\u3000b", "🎉", "a/b:0;c"):
        assert visible(text) == visible_lines(text) == text
    assert visible("\ud800\ufeff\u00ad\U000e0041") == r"\ud800\ufeff\xad\U000e0041"


def named(model: Model, name: Callable[[str], str]) -> Model:
    """The same model with other names wherever a file has some."""
    tensors = [tuple(replace(t, name=name(f"t{i}")) for i, t in enumerate(g.tensors)) for g in model.subgraphs]
    graphs = tuple(
        replace(graph, name=name("graph"), tensors=own) for graph, own in zip(model.subgraphs, tensors, strict=True)
    )
    signatures = tuple(
        replace(
            signature,
            key=name("key"),
            inputs={name(f"in{i}"): t for i, t in enumerate(signature.inputs.values())},
            outputs={name(f"out{i}"): t for i, t in enumerate(signature.outputs.values())},
        )
        for signature in model.signatures
    )
    return replace(
        model,
        subgraphs=graphs,
        signatures=signatures,
        description=name("description"),
        metadata={name("metadata"): b"x"},
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    plain = read(small_model(tmp_path))
    write_file(named(plain, lambda text: text + EVIL), tmp_path / "evil.tflite")
    write_file(named(plain, lambda text: text + EVIL + "b"), tmp_path / "other.tflite")
    return tmp_path / "evil.tflite"


COMMANDS = {
    "inspect": "inspect {path}",
    "inspect everything": "inspect {path} --nodes --tensors --delegate --device native",
    "run": "run {path} --device native --top 2",
    "run on the CPU": "run {path} --cpu -o {folder}/out",
    "bench": "bench {path} --seconds 0.02 --cpu",
    "bench with a profile": "bench {path} --seconds 0.02 --device native --profile",
    "trace": "trace {path} --runs 1 -o {folder}/trace.json",
    "compile": "compile {path} --device native",
    "quantize": "quantize {path} --quantize int8 --calibrate {folder}/x.npy -o {folder}/small.tflite "
    "--quantize-report {folder}/q.txt",
    "quantize by a budget": "quantize {path} --min-sqnr 20 -o {folder}/small.tflite",
    "diff": "diff {path} {folder}/other.tflite -o {folder}/diff.html",
    "bisect": "bisect {path} --page {folder}/bisect.html",
    "bisect in halves": "bisect {path} --fp16 both --page {folder}/bisect.html",
    "report": "report {path} --no-start --device native -o {folder}/report.html",
    "many inputs": "run {path} --inputs {folder}/*.npy -o {folder}/many",
    "an error of a name": "run {path} --signature none",
    "an error of a shape": "run {path} --shape nothing=1,2",
    "an error of an input": "run {path} --input nothing=x.npy",
    "a model that is none": "inspect {folder}/none.tflite",
}


@pytest.mark.parametrize("columns", ["30", "160"])
@pytest.mark.parametrize("case", COMMANDS)
def test_no_command_prints_them(
    case: str,
    columns: str,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "none.tflite").write_bytes(b"no model")
    np.save(tmp_path / "x.npy", np.random.default_rng(1).standard_normal((1, 4)).astype(np.float32))
    with caplog.at_level(logging.DEBUG, "litecl"):
        main(COMMANDS[case].format(path=path, folder=tmp_path).split())
    shown = capsys.readouterr()
    logged = "\n".join(record.getMessage() for record in caplog.records)
    pages = "".join(page.read_text(encoding="utf-8") for page in tmp_path.glob("*.html"))
    for text in (shown.out, shown.err, logged, pages):
        assert not (found := _CONTROL.search(text)), text[max(0, found.start() - 60) : found.end() + 20]
    if columns == "160":  # at 30 every line is folded
        assert not re.search(r"^[\s│]*FORGED", "\n".join((shown.out, shown.err, logged)), re.MULTILINE)
    if case in ("inspect", "inspect everything", "quantize") and columns == "160":
        assert r"\x1b]0;title\x07" in shown.out
        assert "[red]:bomb:" in shown.out


def test_json_has_them_as_json_writes_them(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(path), "--json"]) == 0
    out = capsys.readouterr().out
    assert not _CONTROL.search(out)
    (signature,) = json.loads(out)["signatures"]
    assert signature["inputs"] == [f"in0{EVIL}"]


def test_prompts_and_notebooks(path: Path) -> None:
    interpreter = Interpreter(path, delegates=[CLDelegate("native", deny_ops=["SOFTMAX"])])
    interpreter.allocate_tensors()
    report = interpreter.delegation_report()
    for text in (repr(interpreter), interpreter._repr_html_(), str(report), report._repr_html_()):
        assert not _CONTROL.search(text)
    assert SHOWN[:20] in repr(interpreter)


def test_errors(path: Path) -> None:
    """Whatever a message quotes, and its notes if the command prints them."""
    assert str(ModelError(f"there is no {EVIL}")) == "there is no " + visible_lines(EVIL)
    assert not _CONTROL.search(str(ModelError("a\rb\x1b", operator="A")))


def test_a_language_model_cannot_control_the_terminal() -> None:
    from litecl.cli.commands import generate

    class Terminal:
        def __init__(self, terminal: bool) -> None:
            self.terminal, self.text = terminal, ""

        def isatty(self) -> bool:
            return self.terminal

        def write(self, text: str) -> None:
            self.text += text

        def flush(self) -> None:
            pass

    pieces = [f"one\n{EVIL}", "\ttwo"]
    for terminal in (True, False):
        out = Terminal(terminal)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdout", out)
            list(generate._shown(iter(pieces), True))  # type: ignore[arg-type]
        expected = "".join(pieces) + "\n"
        assert out.text == (visible_lines(expected) if terminal else expected)
