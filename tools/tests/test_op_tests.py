"""TensorFlow Lite's own operator tests: how they are found, and some of them where ``../shared`` has them."""

import sys
from pathlib import Path

import pytest

tf = pytest.importorskip("tensorflow")

from support.shared import SHARED  # noqa: E402
from tools.op_test_folder import OpTest, op_tests  # noqa: E402
from tools.op_test_run import run  # noqa: E402
from tools.op_tests import main  # noqa: E402

_REAL = SHARED / "op_tests"
_FEW = (
    *("fully_connected_4bit_hybrid", "gelu", "local_response_norm", "matrix_band_part", "one_hot", "real", "roll"),
    *("softsign", "static_hashtable", "tensor_list_dynamic_shape", "tensor_list_get_item", "tensor_list_resize"),
    "while",
)
_JUDGED = {
    "empty results": "range(delta=-3, dtype=tf.int32, offset=0)",
    "a string": "fill(dims_dtype=tf.int32, dims_shape=[1], value_dtype=tf.string)",
}
"""Those that LiteRT's Python hands out, or takes, in one way alone."""
_FILE = """
import tensorflow as tf
from {package}.testing.zip_test_utils import create_tensor_data, make_zip_of_tests, register_make_test_function


@register_make_test_function()
def make_negative_tests(options):
    def build(parameters):
        x = tf.compat.v1.placeholder(tf.float32, parameters["shape"], "x")
        return [x], [-x]

    def feed(parameters, session, inputs, outputs):
        value = create_tensor_data(tf.float32, parameters["shape"])
        return [value], session.run(outputs, dict(zip(inputs, [value])))

    make_zip_of_tests(options, [{{"shape": [[], [2, 3]]}}], build, feed)
"""


@pytest.mark.parametrize("package", ["tensorflow.lite", "tflite"])
def test_files_of_either_repository(package: str, tmp_path: Path) -> None:
    (tmp_path / "negative.py").write_text(_FILE.format(package=package))
    (tmp_path / "other.py").write_text("import of_no_library\n")
    tests, faults = op_tests(tmp_path)
    assert "tflite" not in sys.modules
    assert [test.label for test in tests] == ["negative(shape=[])", "negative(shape=[2, 3])"]
    assert faults == ["other.py: ModuleNotFoundError: No module named 'of_no_library'"]
    result = run(tests[1])
    assert (result.tensorflow, result.peer, result.ours, result.litert) == ("ok",) * 4
    assert result.ours_ops == ("NEG",)


def test_nothing_to_run_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "expected LiteRT's op_tests, found none in 0 files" in capsys.readouterr().err
    (tmp_path / "other.py").write_text("import of_no_library\n")
    assert main([str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "other.py: ModuleNotFoundError" in said
    assert "found none in 1 files (1 cannot be read)" in said
    (tmp_path / "negative.py").write_text(_FILE.format(package="tflite"))
    assert main([str(tmp_path), "negative", "positive"]) == 2
    assert "no test is called positive" in capsys.readouterr().err


@pytest.fixture(scope="module")
def real() -> list[OpTest]:
    if not _REAL.is_dir():
        pytest.skip("../shared (TensorFlow Lite's operator tests) is not beside this checkout")
    tests, faults = op_tests(_REAL)
    assert not faults
    return tests


def test_every_real_file_is_read(real: list[OpTest]) -> None:
    assert len({test.name for test in real}) > 150
    assert len(real) > 10_000


@pytest.mark.parametrize("name", _FEW)
def test_a_real_one(name: str, real: list[OpTest]) -> None:
    """The first and the last set of parameters."""
    named = [test for test in real if test.name == name]
    results = [run(named[i]) for i in (0, -1)]
    assert {result.tensorflow for result in results} == {"ok"}
    assert [(result.ours, result.litert) for result in results] == [("ok", "ok")] * 2


@pytest.mark.parametrize("label", _JUDGED.values(), ids=_JUDGED)
def test_right_results_are_recognized(label: str, real: list[OpTest]) -> None:
    (test,) = (test for test in real if test.label == label)
    result = run(test)
    assert (result.tensorflow, result.peer, result.ours, result.litert) == ("ok",) * 4
