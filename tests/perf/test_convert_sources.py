"""``litecl convert`` of frozen graphs, functions and Keras files."""

import os
import re
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from litecl.cli.quiet import load_tensorflow  # noqa: E402
from litecl.interpreter import Interpreter  # noqa: E402
from support.command import data, failure, text  # noqa: E402

SOURCE = """
import tensorflow as tf

SPEC = tf.TensorSpec([2], tf.float32, name="x")


class Scaled(tf.Module):
    def __init__(self):
        self.factor = tf.Variable(3.0)

    @tf.function(input_signature=[SPEC])
    def __call__(self, x):
        return {"y": x * self.factor}


@tf.function(input_signature=[SPEC])
def halved(x):
    while tf.reduce_max(x) > 1:
        x = x / 2
    return {"y": x}


@tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
def lowered(x):
    return tf.strings.lower(x)


@tf.function
def open_(x):
    return x


scaled, concrete, number = Scaled(), halved.get_concrete_function(), 5
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "functions_to_convert.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("functions_to_convert.py:halved", [0.5, 0.75]),
        ("functions_to_convert:concrete", [0.5, 0.75]),
        ("functions_to_convert.py:scaled", [6, 9]),
    ],
)
def test_a_function(name: str, wanted: list[float], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = data(capsys, "convert", name, "-o", "out.tflite", "--verify")
    assert all(difference["largest"] < 1e-6 for difference in told["differences"])
    assert Interpreter("out.tflite").get_signature_runner()(x=np.float32([2, 3]))["y"].tolist() == wanted


def test_operators_that_litert_does_not_have(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = " ".join(text(capsys, "convert", "functions_to_convert.py:lowered", "-o", "out.tflite").split())
    assert "WARNING: LiteRT has no litecl.StringLower: only litecl runs what needs them" in said
    assert re.search(r"'StringLower', made in \S*functions_to_convert.py:\d+: return tf.strings.lower", said)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("functions_to_convert.py:nothing", "there is no 'nothing'"),
        ("functions_to_convert.py:number", "expected a tf.function, or a tf.Module"),
        ("functions_to_convert.py:open_", "expected tf.function(input_signature=[...])"),
        ("none.py:halved", "No such file"),
        ("no_such_module:halved", "No module named 'no_such_module'"),
    ],
)
def test_what_is_no_function(name: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in failure(capsys, "convert", name, "-o", "out.tflite")


def test_a_frozen_graph(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [None, 3], name="x")
        tf.add(tf.nn.relu(x), 1.0, name="y")
    (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    flags = "-o", "out.tflite", "--inputs", "x", "--outputs", "y", "--input-shape", "x=2,3", "--verify"
    told = data(capsys, "convert", "graph.pb", *flags)
    assert told["differences"][0]["largest"] == 0
    interpreter = Interpreter("out.tflite")
    assert interpreter.get_input_details()[0]["shape"].tolist() == [2, 3]
    said = failure(capsys, "convert", "graph.pb", "-o", "out.tflite", "--inputs", "x")
    assert "expected --inputs and --outputs" in said


@pytest.mark.parametrize("batch", [1, None])
def test_a_keras_file_whose_layer_stays_in_one_piece(
    batch: int | None, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The operator that replaces the layer is compared with what Keras computes."""
    model = tf.keras.Sequential([tf.keras.Input((5, 3), batch_size=batch), tf.keras.layers.LSTM(4)])
    model.save("lstm.keras")
    told = data(capsys, "convert", "lstm.keras", "-o", "out.tflite", "--verify")
    assert "UNIDIRECTIONAL_SEQUENCE_LSTM" in told["operators"]
    (difference,) = told["differences"]
    assert difference["largest"] < 1e-6


@pytest.mark.parametrize(("ends", "said"), [("", ""), ("raise ImportError('broken')", "noise of libraries\n")])
def test_tensorflow_loads_without_a_word_unless_it_fails(
    ends: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tensorflow.py").write_text(f"import os\nos.write(2, b'noise of libraries\\n')\n{ends}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "tensorflow")
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")
    with pytest.raises(ImportError) if ends else nullcontext():
        load_tensorflow()
    os.write(2, b"later\n")
    assert capfd.readouterr().err == f"{said}later\n"
