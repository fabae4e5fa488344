"""Checkpoints by litecl.Save and litecl.Restore: what a model may write and read, where, and the errors otherwise."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litecl.interpreter import Interpreter, checkpoint_ops
from litecl.interpreter.errors import ModelError, ModelFileError, ModelFileNotFound, ShapeError, UnsupportedOp
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Signature, TensorSpec
from litecl.interpreter.op import NoOptions
from litecl.interpreter.ops.checkpoint import RESTORE, SAVE
from litecl.interpreter.schema import TensorType
from support.build import Graph, model

_NAMES = [b"a/weights", b"count"]
_WEIGHTS = np.float32([[1, 2], [3, 4]])


def _strings(*values: bytes) -> Any:
    return np.array(values, np.object_)


def _content(names: Any = None, shape: tuple[int, ...] = (2, 2)) -> bytes:
    """Return a model that saves two constants, and restores tensors of the same names."""
    save, restore = Graph("save"), Graph("restore")
    path = save.input((), TensorType.STRING)
    tensors = [save.const(_WEIGHTS), save.const(np.int64(7))]
    save.node(SAVE, [path, save.const(_strings(*_NAMES) if names is None else names), *tensors], [], NoOptions())
    again = restore.input((), TensorType.STRING)
    specs = [TensorSpec(TensorType.FLOAT32, shape), TensorSpec(TensorType.INT64, ())]
    made = restore.node(RESTORE, [again, restore.const(_strings(*_NAMES))], specs, NoOptions())
    signatures = [
        Signature("save", {"path": path}, {"path": path}, 0),
        Signature("restore", {"path": again}, {"weights": made[0], "count": made[1]}, 1),
    ]
    return write(model(save.build(path), restore.build(*made), signatures=signatures))


def _run(content: bytes, key: str, path: Any, folder: Path) -> Any:
    runner = Interpreter(content, custom_ops=checkpoint_ops(folder)).get_signature_runner(key)
    return runner(path=np.array(path))


def test_what_is_saved_is_restored(tmp_path: Path) -> None:
    for path in ("file", str(tmp_path / "whole path"), "file"):
        _run(_content(), "save", path, tmp_path)
        result = _run(_content(), "restore", path, tmp_path)
        np.testing.assert_array_equal(result["weights"], _WEIGHTS)
        assert (result["count"].shape, result["count"].dtype, int(result["count"])) == ((), np.int64, 7)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "whole path"]
    with np.load(tmp_path / "file") as archive:
        assert sorted(archive) == ["a/weights", "count"]


def test_what_numpy_saves_is_restored(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "made.npz", **{"a/weights": 2 * _WEIGHTS, "count": np.int64(3)})
    result = _run(_content(), "restore", "made.npz", tmp_path)
    np.testing.assert_array_equal(result["weights"], 2 * _WEIGHTS)


@pytest.mark.parametrize("path", ["../out", "/etc/out", "inner/../../out", "", "link/out"])
@pytest.mark.parametrize("key", ["save", "restore"])
def test_no_file_outside_of_the_folder_is_used(tmp_path: Path, key: str, path: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    with pytest.raises(ModelError, match="may use files of"):
        _run(_content(), key, path, inside)
    assert [file.name for file in tmp_path.iterdir()] == ["inside"]


@pytest.mark.parametrize("key", ["save", "restore"])
def test_no_file_is_used_unless_a_folder_is_given(key: str) -> None:
    runner = Interpreter(_content()).get_signature_runner(key)
    with pytest.raises(ModelError, match=r"custom_ops=checkpoint_ops\(folder\)"):
        runner(path=np.array("file"))


def test_a_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ModelFileNotFound, match="is not a folder"):
        checkpoint_ops(tmp_path / "none")
    with pytest.raises(ModelFileNotFound, match="none"):
        _run(_content(), "save", "none/file", tmp_path)


def test_files_that_are_no_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(ModelFileNotFound, match="missing"):
        _run(_content(), "restore", "missing", tmp_path)
    (tmp_path / "text").write_text("nothing")
    with pytest.raises(ModelFileError, match="zip"):
        _run(_content(), "restore", "text", tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ModelFileError):
        _run(_content(), "restore", "folder", tmp_path)
    with pytest.raises(ModelFileError):
        _run(_content(), "save", "folder", tmp_path)
    np.savez(tmp_path / "less.npz", count=np.int64(3))
    with pytest.raises(ModelError, match=r"has no tensor 'a/weights'"):
        _run(_content(), "restore", "less.npz", tmp_path)
    np.savez(tmp_path / "objects.npz", **{"a/weights": np.array([print]), "count": np.int64(3)})
    with pytest.raises(ShapeError, match=r"expected float32\[2, 2\], got object\[1\]"):
        _run(_content(), "restore", "objects.npz", tmp_path)
    assert not [file for file in tmp_path.iterdir() if file.name.startswith("tmp")]


@pytest.mark.parametrize("compressed", [False, True])
def test_a_damaged_file(tmp_path: Path, compressed: bool) -> None:
    _run(_content(), "save", "file", tmp_path)
    if compressed:
        with (tmp_path / "file").open("wb") as file:
            np.savez_compressed(file, **{"a/weights": _WEIGHTS, "count": np.int64(3)})
    whole = (tmp_path / "file").read_bytes()
    for i in range(0, len(whole), 7):
        (tmp_path / "file").write_bytes(whole[:i] + bytes([whole[i] ^ 0xFF]) + whole[i + 1 :])
        try:
            _run(_content(), "restore", "file", tmp_path)
        except ModelError:
            continue


def test_a_tensor_of_another_shape(tmp_path: Path) -> None:
    _run(_content(), "save", "file", tmp_path)
    with pytest.raises(ShapeError, match=r"'a/weights' of .*: expected float32\[4\], got float32\[2, 2\]"):
        _run(_content(shape=(4,)), "restore", "file", tmp_path)


def test_names_must_differ_and_be_as_many_as_tensors(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="distinct names"):
        _run(_content(_strings(b"a", b"a")), "save", "file", tmp_path)
    with pytest.raises(ShapeError, match="1 names for 2 tensors"):
        _run(_content(_strings(b"a")), "save", "file", tmp_path)


def test_strings_are_not_saved(tmp_path: Path) -> None:
    g = Graph()
    path = g.input((), TensorType.STRING)
    g.node(SAVE, [path, g.const(_strings(b"a")), g.const(_strings(b"text"))], [], NoOptions())
    with pytest.raises(UnsupportedOp, match="holds strings"):
        Interpreter(model(g.build(path)), custom_ops=checkpoint_ops(tmp_path)).allocate_tensors()


def test_it_can_be_pickled(tmp_path: Path) -> None:
    interpreter = pickle.loads(pickle.dumps(Interpreter(_content(), custom_ops=checkpoint_ops(tmp_path))))
    interpreter.get_signature_runner("save")(path=np.array("file"))
    assert (tmp_path / "file").is_file()
