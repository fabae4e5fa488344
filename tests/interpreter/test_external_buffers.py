"""Constants in other files: beside the model, in a bundle, absent, too short, elsewhere."""

import os
from pathlib import Path
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
import pytest

from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file import external
from litecl.interpreter.file.reader import content_of, read
from litecl.interpreter.file.writer import write
from litecl.interpreter.ops.binary import ADD, AddOptions
from support.build import Graph, model

VALUES = np.random.default_rng(3).standard_normal((2, 3)).astype(np.float32)
FILE = b"\xff" * 20 + VALUES.tobytes() + b"tail"


def content(**changes: Any) -> bytes:
    """A model that adds a constant of another file, written by the schema's own accessors."""
    g = Graph()
    y = g.op(ADD, [g.input((2, 3)), g.const(np.zeros((2, 3), np.float32))], AddOptions())
    made = schema.ModelT.InitFromPackedBuf(bytes(write(model(g.build(y)))))
    (constant,) = [t for t in made.subgraphs[0].tensors if t.name.startswith(b"const")]
    constant.buffer, constant.externalBuffer = 0, 2**31
    group, buffer = schema.ExternalBufferGroupT(), schema.ExternalBufferT()
    group.name = "weights/one.bin"
    buffer.id, buffer.group, buffer.offset, buffer.length, buffer.packing = 2**31, 0, 20, VALUES.nbytes, "unpacked"
    for name, value in changes.items():
        setattr(group if name == "name" else constant if name == "externalBuffer" else buffer, name, value)
    made.externalBufferGroups, made.externalBuffers = [group], [buffer]
    builder = flatbuffers.Builder(1024)
    builder.Finish(made.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def written(folder: Path, file: bytes = FILE, **changes: Any) -> Path:
    (folder / "weights").mkdir(parents=True)
    (folder / "weights" / "one.bin").write_bytes(file)
    (folder / "model.tflite").write_bytes(content(**changes))
    return folder / "model.tflite"


def test_values_are_read_beside_the_model(tmp_path: Path) -> None:
    interpreter = Interpreter(written(tmp_path))
    interpreter.allocate_tensors()
    x = np.random.default_rng(4).standard_normal((2, 3)).astype(np.float32)
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), x + VALUES)


@pytest.mark.parametrize("offset", [20, 21])
def test_values_are_given(offset: int) -> None:
    """By the name of their file, at any offset."""
    file = b"\xff" * offset + VALUES.tobytes()
    made = read(content(offset=offset), external.given({"weights/one.bin": memoryview(file)}))
    (found,) = [t.data for t in made.subgraphs[0].tensors if t.data is not None]
    np.testing.assert_array_equal(found, VALUES)


def test_a_bundle_is_no_model() -> None:
    with pytest.raises(ModelError, match=r"litecl\.Generator read it"):
        Interpreter(b"LITERTLM" + content())


def test_a_file_of_bytes_alone() -> None:
    with pytest.raises(ModelError, match=r"tensor 1 .*lie in another file, 'weights/one\.bin', which does not exist"):
        Interpreter(content())


def test_files_that_are_absent_or_short(tmp_path: Path) -> None:
    path = written(tmp_path, FILE[:40])
    with pytest.raises(ModelError, match=r"'weights/one\.bin': bytes 20 to 44 of a file of 40 bytes"):
        Interpreter(path)
    (tmp_path / "weights" / "one.bin").unlink()
    with pytest.raises(ModelError, match=r"No such file or directory: .*one\.bin"):
        Interpreter(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offset": 2**63}, "of a file of 48 bytes"),
        ({"length": 2**64 - 1}, "of a file of 48 bytes"),
        ({"length": 20}, "expected 24 bytes"),
        ({"group": 1}, "group 1 out of range for 1 groups"),
        ({"packing": "zip"}, "packing 'zip' is not known"),
        ({"id": 7}, "external buffer 2147483648 is not listed"),
        ({"externalBuffer": 9}, "external buffer 9 is not listed"),
        ({"name": "../one.bin"}, "expected one in the folder of the model"),
        ({"name": "/etc/hostname"}, "expected one in the folder of the model"),
        ({"name": "C:\\one.bin"}, "expected one in the folder of the model"),
        ({"name": "weights\\..\\..\\one.bin"}, "expected one in the folder of the model"),
        ({"name": ""}, "expected one in the folder of the model"),
        ({"name": "notes.txt"}, r"'notes\.txt': expected a name that ends in \.bin, \.weights, \.weight or \.data"),
        ({"name": ".bin"}, "expected a name that ends in"),
        ({"name": "id_rsa"}, "expected a name that ends in"),
        ({"name": "one.bin/"}, "No such file|Not a directory"),
        ({"name": "weights"}, "expected a name that ends in"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=message):
        Interpreter(written(tmp_path, **changes))


def _reads(path: Path) -> bool:
    interpreter = Interpreter(path)
    return any(t.data is not None and np.array_equal(t.data, VALUES) for t in interpreter._model.subgraphs[0].tensors)


links = pytest.mark.skipif(os.name != "posix", reason="links and pipes of POSIX")


@links
@pytest.mark.parametrize("target", ["../secret.bin", "secret.txt", "folder/secret.bin"])
def test_a_link_leads_to_weights_in_the_folder_or_is_refused(target: str, tmp_path: Path) -> None:
    path = written(tmp_path / "model")
    weights = tmp_path / "model" / "weights" / "one.bin"
    content_ = weights.read_bytes()
    (weights.parent / "folder").mkdir()
    for name in ("../../secret.bin", "secret.txt", "folder/secret.bin"):
        (weights.parent / name).write_bytes(content_)
    weights.unlink()
    weights.symlink_to(target.replace("../", "../../"))
    if target == "folder/secret.bin":
        assert _reads(path)
    else:
        with pytest.raises(ModelError, match=r"'weights/one\.bin', which is a link: expected one to"):
            Interpreter(path)


@links
def test_a_folder_that_is_a_link_leads_nowhere(tmp_path: Path) -> None:
    path = written(tmp_path / "model")
    (path.parent / "weights").rename(tmp_path / "elsewhere")
    (path.parent / "weights").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match="which is a link"):
        Interpreter(path)


@links
def test_a_store_of_links_is_read(tmp_path: Path) -> None:
    """As the Hub's cache: model and weights are links to files of one folder, which are named by their content."""
    path = written(tmp_path / "model")
    (tmp_path / "blobs").mkdir()
    for name, blob in (("model.tflite", "0" * 64), ("weights/one.bin", "1" * 64)):
        (path.parent / name).rename(tmp_path / "blobs" / blob)
        (path.parent / name).symlink_to(tmp_path / "blobs" / blob)
    assert _reads(path)
    (tmp_path / "blobs" / ("1" * 64)).rename(tmp_path / "other")
    (path.parent / "weights/one.bin").unlink()
    (path.parent / "weights/one.bin").symlink_to(tmp_path / "other")
    with pytest.raises(ModelError, match="which is a link"):
        Interpreter(path)


@links
def test_a_pipe_is_no_file_of_weights_and_no_model(tmp_path: Path) -> None:
    """Neither hangs."""
    path = written(tmp_path / "model")
    (path.parent / "weights" / "one.bin").unlink()
    os.mkfifo(path.parent / "weights" / "one.bin")
    with pytest.raises(ModelError, match="expected a regular file, got a pipe"):
        Interpreter(path)
    os.mkfifo(tmp_path / "pipe.tflite")
    for refused in (tmp_path / "pipe.tflite", Path("/dev/zero")):
        with pytest.raises(ModelError, match="expected a regular file, got a pipe, a socket or a device"):
            Interpreter(refused)


def test_bytes_name_no_file_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the working directory either; a program that knows the folder says so."""
    path = written(tmp_path / "model")
    monkeypatch.chdir(path.parent)
    with pytest.raises(ModelError, match="which does not exist"):
        Interpreter(path.read_bytes())
    read(path.read_bytes(), external.beside(path, content_of))
