"""ONNX files by onnx2tf, compared with ONNX Runtime: both must be installed, but for what is said without them."""

import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.cli import main
from litecl.converter import ConversionWarning, Converter
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ConversionError, MissingExtra

onnx = pytest.importorskip("onnx")
make = pytest.importorskip("onnx.helper")


def _onnx2tf() -> bool:
    if importlib.util.find_spec("onnx2tf") is not None:
        return int(importlib.metadata.version("onnx2tf").partition(".")[0]) >= 2
    return shutil.which("onnx2tf") is not None


needs_onnx2tf = pytest.mark.skipif(not _onnx2tf(), reason="onnx2tf 2 is not installed (litecl[onnx], Python 3.12)")
RNG = np.random.default_rng(3)


def _weights(name: str, *shape: int) -> Any:
    return onnx.numpy_helper.from_array(RNG.standard_normal(shape).astype(np.float32), name)


def _written(
    folder: Path,
    nodes: Sequence[Any],
    inputs: dict[str, Sequence[int | str]],
    outputs: dict[str, Sequence[int | str]],
    constants: Sequence[Any] = (),
) -> Path:
    values = [
        [make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in each.items()]
        for each in (inputs, outputs)
    ]
    graph = make.make_graph(nodes, "net", *values, list(constants))
    path = folder / "net.onnx"
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 20)], ir_version=9), str(path))
    return path


def _image(folder: Path, side: tuple[int, int] = (8, 6)) -> Path:
    """A convolution; every output is read as channels last by onnx2tf."""
    nodes = [
        make.make_node("Conv", ["x", "w", "b"], ["a"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        make.make_node("Relu", ["a"], ["y"]),
    ]
    shape = [1, 3, *side]
    return _written(folder, nodes, {"x": shape}, {"y": shape}, [_weights("w", 3, 3, 3, 3), _weights("b", 3)])


def _resize(folder: Path, **attributes: Any) -> Path:
    scales = onnx.numpy_helper.from_array(np.array([1, 1, 0.5, 0.5], np.float32), "s")
    node = make.make_node("Resize", ["x", "", "s"], ["y"], **attributes)
    return _written(folder, [node], {"x": [1, 3, 16, 12]}, {"y": [1, 3, 8, 6]}, [scales])


def _lstm(folder: Path, peepholes: bool = False) -> Path:
    constants = [_weights("w", 1, 16, 5), _weights("r", 1, 16, 4), _weights("b", 1, 32)]
    inputs = ["x", "w", "r", "b"]
    if peepholes:
        constants.append(_weights("p", 1, 12))
        inputs += ["", "", "", "p"]
    node = make.make_node("LSTM", inputs, ["y", "h", "c"], hidden_size=4)
    outputs: dict[str, Sequence[int | str]] = {"y": [6, 1, 1, 4], "h": [1, 1, 4], "c": [1, 1, 4]}
    return _written(folder, [node], {"x": [6, 1, 5]}, outputs, constants)


def _mlp(folder: Path) -> Path:
    nodes = [make.make_node("Gemm", ["x", "w"], ["a"]), make.make_node("Softmax", ["a"], ["y"])]
    return _written(folder, nodes, {"x": ["batch", 5]}, {"y": ["batch", 3]}, [_weights("w", 5, 3)])


def _expected(path: Path, inputs: dict[str, Any]) -> dict[str, Any]:
    session = pytest.importorskip("onnxruntime").InferenceSession(str(path))
    return dict(zip((each.name for each in session.get_outputs()), session.run(None, inputs), strict=True))


@needs_onnx2tf
@pytest.mark.parametrize("source", [_image, lambda folder: _image(folder, (3, 3)), _lstm, _mlp])
def test_as_onnx_runtime_again_and_again(source: Any, tmp_path: Path) -> None:
    """Outputs have ONNX's shapes, of cubes too, and no state carries over. The file itself stays as it is."""
    path = source(tmp_path)
    before = path.read_bytes()
    converter = Converter.from_onnx(path)
    runner = Interpreter(model_content=converter.convert()).get_signature_runner()
    assert max(converter.report.differences.values()) < 1e-5
    for _ in range(3):
        shape = [2 if n == -1 else n for n in runner.get_input_details()["x"]["shape_signature"]]
        x = RNG.standard_normal(shape).astype(np.float32)
        results = runner(x=x)
        for name, wanted in _expected(path, {"x": x}).items():
            assert results[name].shape == wanted.shape, name
            np.testing.assert_allclose(results[name], wanted, atol=1e-5)
    assert path.read_bytes() == before


@needs_onnx2tf
def test_sizes_of_inputs(tmp_path: Path) -> None:
    converter = Converter.from_onnx(_mlp(tmp_path), input_shapes={"x": (4, 5)})
    runner = Interpreter(model_content=converter.convert()).get_signature_runner()
    assert runner.get_input_details()["x"]["shape_signature"].tolist() == [4, 5]
    for shapes in ({"y": (4, 5)}, {"x": (4, 6)}, {"x": (4,)}):
        with pytest.raises(ConversionError, match="input_shapes"):
            Converter.from_onnx(tmp_path / "net.onnx", input_shapes=shapes).convert()


@needs_onnx2tf
def test_names_that_onnx2tf_changes(tmp_path: Path) -> None:
    """Two inputs and two outputs of one shape."""
    nodes = [make.make_node("Sub", ["z:0", "a b"], ["q:1"]), make.make_node("Mul", ["q:1", "a b"], ["p"])]
    path = _written(tmp_path, nodes, {"z:0": [2, 3], "a b": [2, 3]}, {"q:1": [2, 3], "p": [2, 3]})
    converter = Converter.from_onnx(path)
    converter.convert()
    assert len(converter.report.differences) == 2
    assert max(converter.report.differences.values()) < 1e-6


@needs_onnx2tf
def test_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A dropped attribute is known before, and seen afterwards."""
    pytest.importorskip("onnxruntime")
    path = _resize(tmp_path, mode="linear", antialias=1)
    converter = Converter.from_onnx(path)
    with pytest.warns(ConversionWarning, match="output 'y' differs from ONNX Runtime's by 0"):
        converter.convert()
    assert "drops antialias" in " ".join(converter.report.notes)
    out = str(tmp_path / "net.tflite")
    assert main(["convert", str(path), "-o", out]) == 0
    assert "WARNING: output 'y' differs" in capsys.readouterr().out
    assert main(["convert", str(path), "-o", out, "--verify"]) == 1


@needs_onnx2tf
def test_custom_operators(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="custom operators that no runtime has: ONNX_LSTM") as raised:
        Converter.from_onnx(_lstm(tmp_path, peepholes=True)).convert()
    assert any("no peepholes" in note for note in raised.value.__notes__)


@needs_onnx2tf
def test_failures(tmp_path: Path) -> None:
    node = make.make_node("Mod", ["a", "b"], ["y"], fmod=1)
    shape: Sequence[int] = [2, 2]
    path = _written(tmp_path, [node], {"a": shape, "b": shape}, {"y": shape})
    with pytest.raises(ConversionError, match=r"writes no \.tflite file of it: .*Mod with fmod=1"):
        Converter.from_onnx(path).convert()


@needs_onnx2tf
def test_without_onnx_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes tell the order of dimensions; of a cube they don't, which is said."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    converter = Converter.from_onnx(_image(tmp_path))
    runner = Interpreter(model_content=converter.convert()).get_signature_runner()
    assert runner.get_output_details()["y"]["shape"].tolist() == [1, 3, 8, 6]
    assert "not compared" in converter.report.notes[0]
    assert len(converter.report.notes) == 1
    converter = Converter.from_onnx(_image(tmp_path, (3, 3)))
    converter.convert()
    assert "'y' may be channels last" in converter.report.notes[1]
    assert main(["convert", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "n.tflite"), "--verify"]) == 1


def test_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of onnx2tf stays behind."""
    from litecl.converter.importer import onnx_file

    marker = tmp_path / "pid"
    code = f"import os, time; open({str(marker)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    monkeypatch.setattr(onnx_file, "_command", lambda: [sys.executable, "-c", code])
    with pytest.raises(ConversionError, match="onnx2tf did not end in 2 s"):
        onnx_file.model_of(onnx_file.load(_mlp(tmp_path)), timeout_s=2)
    assert subprocess.run(["kill", "-0", marker.read_text()], capture_output=True).returncode


def test_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = _mlp(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MissingExtra, match=r"onnx2tf 2: pip install 'litecl\[onnx\]'"):
        Converter.from_onnx(path).convert()
    assert main(["convert", str(path), "-o", str(tmp_path / "n.tflite")]) == 1
    assert "litecl[onnx]" in capsys.readouterr().err
    assert not (tmp_path / "n.tflite").exists()


def test_damaged(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"\x08\x07\x12\x07pytor")
    with pytest.raises(ConversionError, match="onnx does not load it"):
        Converter.from_onnx(path).convert()


@pytest.mark.parametrize(
    ("attributes", "doubt"),
    [
        ({"mode": "linear"}, None),
        ({"mode": "linear", "antialias": 1}, "drops antialias"),
        ({"mode": "nearest"}, None),
        ({"mode": "nearest", "nearest_mode": "floor"}, "rounds nearest neighbours otherwise than floor of half_pixel"),
        ({"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}, None),
    ],
)
def test_doubts(attributes: dict[str, Any], doubt: str | None, tmp_path: Path) -> None:
    from litecl.converter.importer import onnx_file

    doubts = onnx_file.load(_resize(tmp_path, **attributes)).doubts
    assert len(doubts) == (doubt is not None)
    assert doubt is None or doubt in doubts[0]


@needs_onnx2tf
def test_weights_in_another_file(tmp_path: Path) -> None:
    path = _image(tmp_path)
    onnx.save(onnx.load(path), str(path), save_as_external_data=True, location="w.data", size_threshold=0)
    before = (tmp_path / "w.data").read_bytes()
    converter = Converter.from_onnx(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConversionWarning)
        converter.convert()
    assert (tmp_path / "w.data").read_bytes() == before
