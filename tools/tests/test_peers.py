"""The comparison with LiteRT: what it measures, and the picture of it."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import tools.peers
from litecl.interpreter import Interpreter
from litecl.interpreter.graph import Array
from litecl.perf.models import layers
from litecl.perf.peers import PEERS
from litecl.perf.peers.peer import Peer
from support import networks
from tools.chart import Bar, chart
from tools.peer_page import Result, Run, draw, keep, table, write
from tools.peers import main, measure


def test_measures_a_model() -> None:
    """Ratios, the share of a peak of one operation a second, and outputs that agree."""
    peer = tools.peers.Peer("dense", lambda: layers.dense(8, 4), 1.0, 1.2)
    result = measure(peer, threads=1, rounds=1, peak=1.0)
    assert result.difference < 1e-5
    assert result.claimed == "1/1 in 1"
    assert result.ratio == pytest.approx(result.litert_ms / result.litecl_ms)
    assert result.share_of_peak > 1


def test_command_says_whether_outputs_differ(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0 where all agree; the machine is named."""
    assert main(["--only", "56x56x64", "--rounds", "1"]) == 0
    assert "GFLOP/s a core" in capsys.readouterr().out


@pytest.mark.parametrize("build", [lambda: networks.mobilenet_v2(32), lambda: layers.lstm(3, 4)])
def test_models_run(build: object) -> None:
    """The interpreter runs them, and what comes out is finite and not all the same."""
    interpreter = Interpreter(model_content=build())  # type: ignore[operator]
    interpreter.allocate_tensors()
    detail = interpreter.get_input_details()[0]
    interpreter.set_tensor(detail["index"], np.ones(detail["shape"], np.float32))
    interpreter.invoke()
    output = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert np.isfinite(output).all()
    assert output.std() > 0


def test_chart_is_well_formed() -> None:
    """Names are escaped; a bar below its goal has another colour."""
    text = chart("a < b", "sub", [Bar("one & two", 1.5, 1.0, 2.0, 1.0), Bar("slow", 0.5, 0.4, 0.6, 1.0)])
    root = ElementTree.fromstring(text)
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a < b", "one & two", "slow", "1.50", "0.50"} <= set(words)
    assert len({rect.get("fill") for rect in root.iter("{http://www.w3.org/2000/svg}rect")}) == 3


_RESULT = Result("dense", 1, 0.5, 1.0, 2.0, 1.9, 2.1, 2.05, 0.4, 1e-7, "1/1 in 1", 1.0, 1.2)
_ZEN = Run("AMD Zen, 2 cores", "peak 9", "LiteRT 2.3.0", 0.1, "2026-11-24", (_RESULT,))


def test_a_page_shows_the_last_run_of_every_processor(tmp_path: Path) -> None:
    """A processor's second run replaces its first; a row that one of them lacks is empty there; other text stays."""
    page, file, picture = tmp_path / "page.md", tmp_path / "runs.json", tmp_path / "runs.svg"
    page.write_text("# Speed\n\nBefore.\n\n| model | threads | old |\n|---|---|---|\n| x | 1 | 2 |\n\nAfter.\n")
    arm = replace(_ZEN, processor="ARM, 4 cores " + "x" * 150, results=(replace(_RESULT, threads=2, ratio=1.5),))
    for run in (_ZEN, arm, replace(_ZEN, results=(replace(_RESULT, ratio=3.0),))):
        runs = keep(file, run)
        write(page, runs)
    draw(picture, runs)
    text = page.read_text()
    assert [run.processor for run in runs] == [_ZEN.processor, arm.processor]
    assert text.startswith("# Speed\n\nBefore.\n\n- **A**: AMD Zen, 2 cores;")
    assert text.count("**A**") == text.count("**B**") == 1
    assert "| dense | 2 |  |  |  | 0.500 | 1.50 (1.90-2.10) | 2.05 |" in text
    assert "| dense | 1 | 0.500 | 3.00 (1.90-2.10) | 2.05 |  |  |  |" in text
    assert text.endswith("|\n\nAfter.\n")
    assert "old" not in text
    assert "dense, 2T, B" in picture.read_text()


def test_a_run_against_several_has_a_column_for_the_fastest(tmp_path: Path) -> None:
    """A row that only LiteRT was measured of is empty there, and so is a run without others."""
    fast = replace(_RESULT, fastest="openvino", fastest_ratio=1.5)
    both = replace(_ZEN, processor="AMD Zen 5", results=(fast, replace(_RESULT, threads=2)))
    text = table([*keep(tmp_path / "runs.json", both), _ZEN])
    head = "| A: litecl ms | ratio | of minima | fastest | B: litecl ms | ratio | of minima |"
    assert f"{head}\n{'|---' * 9}|" in text
    cells = "0.500 | 2.00 (1.90-2.10) | 2.05"
    assert f"| dense | 1 | {cells} | openvino 1.50 | {cells} |" in text
    assert f"| dense | 2 | {cells} |  |  |  |  |" in text


def test_measures_the_fastest_that_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of LiteRT and one that computes something else, LiteRT."""

    class Wrong(Interpreter):
        def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Array:
            return super().get_tensor(tensor_index, subgraph_index) + 1

    wrong = Peer({"sys": "fake"}, lambda: None, lambda content, num_threads: Wrong(content))
    monkeypatch.setitem(PEERS, "openvino", wrong)
    result = measure(tools.peers.Peer("dense", lambda: layers.dense(8, 4), 1.0, 1.2), 1, 1, 1.0, ("openvino",))
    assert (result.fastest, result.fastest_ratio) == ("litert", pytest.approx(result.ratio))


def test_a_page_without_the_table_is_refused(tmp_path: Path) -> None:
    """The error names the page, which stays as it is."""
    page = tmp_path / "page.md"
    page.write_text("# Speed\n")
    with pytest.raises(ValueError, match=r"page\.md"):
        write(page, [_ZEN])
    assert page.read_text() == "# Speed\n"
