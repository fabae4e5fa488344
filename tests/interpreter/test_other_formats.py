"""Files of other formats are recognised, and the message says what to do next."""

import gzip
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import pytest

from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError, UnsupportedOp
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.options import unknown_op
from litecl.interpreter.schema import TensorType
from support.build import Graph, model


def _zip(*members: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for member in members:
            file.writestr(member, b"")
    return content.getvalue()


_FILES = {
    "a web page": (b"\n<!DOCTYPE html><html>", "a web page, no model: get the file itself"),
    "an error of a server": (b'<?xml version="1.0"?><Error>', "a web page"),
    "a pointer of Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "git lfs pull"),
    "ONNX": (b"\x08\x08\x12\x07pytorch\x1a\x032.0", "an ONNX model: litecl convert"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(32), "an HDF5 file, as Keras writes: litecl convert"),
    "Keras": (_zip("metadata.json", "config.json", "model.weights.h5"), "a Keras model: litecl convert"),
    "PyTorch": (_zip("net/data.pkl", "net/version"), "a PyTorch model: export it"),
    "PyTorch, a pickle": (b"\x80\x02\x8a\nl\xfc\x9cF", "a pickle, as torch.save writes"),
    "torch.export": (_zip("net/models/model.json", "net/data/weights/a"), "a program of torch.export: litecl convert"),
    "SavedModel": (b"\x08\x01\x12\x05\n\x03abc", "litecl convert takes the folder"),
    "a zipped SavedModel": (_zip("m/saved_model.pb", "m/variables/variables.index"), "a SavedModel in a zip file"),
    "a bundle": (_zip("pose_detector.tflite", "pose_landmarks.tflite"), "a bundle of several files"),
    "another zip file": (_zip("README"), "a zip file"),
    "a zip file with a strange name": (_zip("a\nb"), "a zip file"),
    "a damaged zip file": (_zip("README")[:20], "a damaged zip file"),
    "gzip": (gzip.compress(b"a model"), "gunzip"),
    "JSON": (b'{ "version": 3 }', "a JSON file"),
    "anything else": (b"0123456789", "not a .tflite file: file identifier: expected b'TFL3', got b'4567'"),
    "nearly nothing": (b"\x1f", "a file of 1 bytes is not a FlatBuffer"),
}


@pytest.mark.parametrize("name", _FILES)
def test_files(name: str, tmp_path: Path) -> None:
    """As bytes, and by a path, which a note then has."""
    content, text = _FILES[name]
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    with pytest.raises(ModelError) as of_bytes:
        Interpreter(model_content=content)
    with pytest.raises(ModelError) as of_path:
        Interpreter(path)
    assert text in str(of_bytes.value)
    assert str(of_path.value) == str(of_bytes.value)
    assert of_path.value.__notes__ == [f"in {path}"]


def _compiled(name: str, *extra: int) -> bytes:
    """A file with one custom operator, and inputs besides the first of these sizes, which have no values."""
    g = Graph()
    spec = TensorSpec(TensorType.INT8, (4,))
    inputs: Sequence[int] = [g.input((4,), TensorType.INT8)]
    scratch = [g._add(TensorSpec(TensorType.UINT8, (size,), f"scratch{size}")) for size in extra]
    op = unknown_op(name, custom=True)
    (y,) = g.node(op, [*inputs, *scratch], [spec], op.options(b""))
    return write(model(g.build(y)))


def test_compiled_for_an_accelerator() -> None:
    """The tensors of Vela's scratch memory have no values."""
    with pytest.raises(ModelError, match=r"operator 0: the file is compiled for an Ethos-U \(Vela\), which alone"):
        Interpreter(model_content=_compiled("ethos-u", 128, 64))
    with pytest.raises(ModelError, match="input tensor 1 has no value yet"):
        Interpreter(model_content=_compiled("mine", 128))
    interpreter = Interpreter(model_content=_compiled("edgetpu-custom-op"))
    with pytest.raises(UnsupportedOp, match=r"compiled for an Edge TPU \(edgetpu_compiler\)"):
        interpreter.allocate_tensors()
        interpreter.invoke()


def test_zip_files_made_to_take_long() -> None:
    """A directory of a million members, and long names: both are read up to a limit."""
    name = "models/" * 9000
    many = b"PK\x03\x04" + (b"PK\x01\x02" + bytes(24) + b"\x01" + bytes(17) + b"a") * 1_000_000
    many += b"PK\x05\x06" + bytes(4) + b"\xff" * 4 + (47_000_000).to_bytes(4, "little") + b"\x04" + bytes(5)
    for content in (_zip(*(f"{name}{i}" for i in range(20))), many):
        start = process_time()
        with pytest.raises(ModelError, match="a zip file"):
            read(content)
        assert process_time() - start < 3
