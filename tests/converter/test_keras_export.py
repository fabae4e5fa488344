"""A recurrent model that Keras itself exports has TensorFlow's lists: the refusal names the way out."""

import subprocess
import sys
from pathlib import Path

import pytest

from litecl.cli import main

pytestmark = [pytest.mark.tensorflow, pytest.mark.nightly]

_EXPORT = """
import sys
import keras

model = keras.Sequential([keras.Input((6, 5)), keras.layers.GRU(4)])
model.save(sys.argv[1] + "/net.keras")
model.export(sys.argv[1] + "/net.tflite", format="litert")
"""


def test_recurrent_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subprocess.run([sys.executable, "-c", _EXPORT, str(tmp_path)], capture_output=True, timeout=300)
    if not (tmp_path / "net.tflite").exists():
        pytest.skip("this Keras exports no .tflite file")
    assert main(["run", str(tmp_path / "net.tflite")]) == 1
    assert "convert the source model again with litecl (litecl convert" in capsys.readouterr().err
    out = str(tmp_path / "own.tflite")
    assert main(["convert", str(tmp_path / "net.keras"), "-o", out, "--verify"]) == 0
    assert main(["run", out]) == 0
