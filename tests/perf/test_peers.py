"""The comparison with LiteRT: what it measures, and the picture of it."""

from xml.etree import ElementTree

import numpy as np
import pytest

from litecl.interpreter import Interpreter
from litecl.perf.models import layers
from support import networks
from tools.chart import Bar, chart
from tools.peers import Peer, main, measure


def test_measures_a_model() -> None:
    """Ratios, the share of a peak of one operation a second, and outputs that agree."""
    peer = Peer("dense", lambda: layers.dense(8, 4), 1.0, 1.2)
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
