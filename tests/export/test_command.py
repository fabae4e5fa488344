"""The command ``litecl export``: what it writes, tells and refuses."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from litecl.cli import main
from litecl.delegate.export import files
from litecl.delegate.export.c_names import identifiers
from litecl.delegate.export.machines import names
from litecl.delegate.native import compiler
from litecl.interpreter.errors import DelegateError
from litecl.interpreter.file.writer import write_file
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.unique import UNIQUE, UniqueOptions
from litecl.interpreter.schema import TensorType
from support.build import Graph, model, randn
from support.command import data, failure, small_model, text
from support.exported import build, needs_cc, needs_zig
from support.full_disk import full_disk

C = "--for", "c", "--machine", "x86_64-linux"


@needs_cc
def test_files_and_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, folder = small_model(tmp_path), tmp_path / "made" / "here"
    told = data(capsys, "export", file, *C, "-o", folder, "--name", "small")
    assert sorted(path.name for path in folder.iterdir()) == ["main.c", "small.a", "small.h"]
    assert {row["path"]: row["size_bytes"] for row in told["files"]} == {
        str(path): path.stat().st_size for path in folder.iterdir()
    }
    (signature,) = told["signatures"]
    assert signature["inputs"] == [{"name": "x", "type": "FLOAT32", "shape": [1, 4], "scale": None, "zero_point": None}]
    assert told["needs"] == ["memcpy"]
    assert told["flash_bytes"] > told["constant_bytes"] > 0
    assert told["ram_bytes"] >= told["arena_bytes"] > 0
    assert all(row["claimed"] for row in told["delegation"]["nodes"])
    build(folder, [folder / "main.c", folder / "small.a"], folder / "main")
    assert subprocess.run([folder / "main"], capture_output=True, text=True, check=True).stdout.startswith("y: ")


@needs_zig
def test_a_shape_and_a_second_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An example that was changed stays; files that litecl did not write are never replaced."""
    file = small_model(tmp_path)
    said = text(capsys, "export", file, *C, "-o", tmp_path, "--shape", "x=3,4")
    assert "of flash" in said
    assert "kept" not in said
    assert "_SIZE 12 /* elements */" in (tmp_path / "model.h").read_text()
    (tmp_path / "main.c").write_text("mine")
    assert "main.c" in next(
        line for line in text(capsys, "export", file, *C, "-o", tmp_path).splitlines() if "kept" in line
    )
    assert "_SIZE 4 /* elements */" in (tmp_path / "model.h").read_text()
    assert (tmp_path / "main.c").read_text() == "mine"
    (tmp_path / "model.h").write_text("mine")
    assert "model.h is not a file that litecl made" in failure(capsys, "export", file, *C, "-o", tmp_path)
    assert (tmp_path / "model.h").read_text() == "mine"


@needs_zig
@pytest.mark.parametrize("machine", names())
def test_every_machine(machine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its files are made; only those of the C library and of the compiler's are missing."""
    told = data(capsys, "export", small_model(tmp_path), "--for", "c", "--machine", machine, "-o", tmp_path)
    assert told["machine"].partition(":")[0] == machine
    assert {name for name in told["needs"] if not name.startswith("__")} <= {"memcpy", "memset", "expf"}


@needs_zig
def test_a_full_disk_leaves_the_earlier_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = small_model(tmp_path)
    data(capsys, "export", file, *C, "-o", tmp_path / "made")
    before = {path.name: path.read_bytes() for path in (tmp_path / "made").iterdir()}
    with full_disk(2000):  # the header fits, the library does not
        said = failure(capsys, "export", file, *C, "-o", tmp_path / "made", "--shape", "x=3,4")
        failure(capsys, "export", file, *C, "-o", tmp_path / "new")
    assert "File too large" in said or "No space left" in said
    assert {path.name: path.read_bytes() for path in (tmp_path / "made").iterdir()} == before
    assert not (tmp_path / "new").exists()


@needs_zig
def test_a_model_that_needs_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    g = Graph()
    specs = [TensorSpec(TensorType.FLOAT32, None), TensorSpec(TensorType.INT32, (4,))]
    write_file(model(g.build(*g.node(UNIQUE, [g.input((4,))], specs, UniqueOptions()))), tmp_path / "unique.tflite")
    said = failure(capsys, "export", tmp_path / "unique.tflite", *C, "-o", tmp_path / "made")
    assert "DelegateError: the model cannot be exported" in said
    assert "subgraph 0, node 0, UNIQUE" in said
    assert main(["export", str(tmp_path / "unique.tflite"), *C, "-o", str(tmp_path / "made"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["type"] == "DelegateError"
    assert not (tmp_path / "made").exists()


@needs_zig
def test_damaged_and_missing_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "damaged.tflite").write_bytes(b"TFL3" * 9)
    assert "damaged.tflite" in failure(capsys, "export", tmp_path / "damaged.tflite", *C, "-o", tmp_path)
    assert "none.tflite" in failure(capsys, "export", tmp_path / "none.tflite", *C, "-o", tmp_path)


def test_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for arguments, said in (
        (("--machine", "z80"), "there is no machine 'z80' to export for: expected host, or one of cortex-m55"),
        (("--machine", "x86_64-windows"), "there is no machine 'x86_64-windows' to export for"),
        (("--machine", "host", "--name", "int"), "name: expected a letter, then letters, digits"),
        (("--machine", "host", "-o", tmp_path / "file"), "file is a file, expected a folder"),
    ):
        with pytest.raises(SystemExit) as caught:
            main([*map(str, ("export", "x.tflite", "--for", "c", "-o", tmp_path, *arguments))])
        assert caught.value.code == 2
        assert said in capsys.readouterr().err
    assert "--for c needs --machine" in failure(capsys, "export", "x.tflite", "--for", "c", "-o", tmp_path)


def test_without_a_compiler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiler, "found", lambda directory=None: None)
    said = failure(capsys, "export", small_model(tmp_path), *C, "-o", tmp_path)
    assert "DeviceNotFound: no compiler for the processor: pip install ziglang" in said
    other = compiler.Compiler(("clang-19",), "/usr/bin/clang-19")
    monkeypatch.setattr(compiler, "found", lambda directory=None: other)
    said = failure(capsys, "export", small_model(tmp_path), *C, "-o", tmp_path)
    assert "export: expected the package ziglang, got /usr/bin/clang-19" in said


def test_names_are_identifiers() -> None:
    given = ["image", "Image", "a/b:0", "a.b:0", "2nd", "float", "", "größe"]
    assert identifiers(given) == ["image", "Image_2", "a_b_0", "a_b_0_2", "t_2nd", "t_float", "t", "gr_e"]


def test_a_file_that_appears_while_it_compiles(tmp_path: Path) -> None:
    """It is not replaced, nor is a text that only speaks of litecl beyond its first line."""
    for name, content in (("model.a", b"mine"), ("model.h", b"/* mine */\n/* beside what was made by litecl */\n")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_bytes(content)
        with pytest.raises(DelegateError, match=rf"{name} is not a file that litecl made"):
            files.write(folder, {"model.a": files.sealed(b"new"), "model.h": b"/* made by litecl */\n"}, [])
        assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [(name, content)]


@needs_cc
def test_a_users_library_with_an_exported_one_inside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is the user's, whether it has more members or fewer."""
    file, folder = small_model(tmp_path), tmp_path / "made"
    data(capsys, "export", file, *C, "-o", folder)
    library, made = folder / "model.a", (folder / "model.a").read_bytes()
    members = subprocess.run(["ar", "t", library], capture_output=True, text=True, check=True).stdout.split()
    (tmp_path / "mine.o").write_bytes(b"mine")
    for change in (("q", library, tmp_path / "mine.o"), ("d", library, members[-1])):
        library.write_bytes(made)
        subprocess.run(["ar", *change], check=True)
        changed = library.read_bytes()
        assert "model.a is not a file that litecl made" in failure(capsys, "export", file, *C, "-o", folder)
        assert library.read_bytes() == changed
    library.write_bytes(made)
    data(capsys, "export", file, *C, "-o", folder, "--shape", "x=3,4")


@needs_cc
def test_a_header_and_a_library_of_different_exports_do_not_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after an interruption between the two; models that differ in their weights alone differ too."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, seed in ((one, 1), (two, 2)):
        g = Graph()
        x = g.input((1, 4))
        weights = g.const(randn(np.random.default_rng(seed), 2, 4))
        y = g.op(FULLY_CONNECTED, [x, weights, None], FullyConnectedOptions())
        write_file(model(g.build(y)), tmp_path / "dense.tflite")
        data(capsys, "export", tmp_path / "dense.tflite", *C, "-o", folder)
        build(folder, [folder / "main.c", folder / "model.a"], folder / "main")
    (two / "model.h").write_bytes((one / "model.h").read_bytes())
    with pytest.raises(AssertionError, match=r"undefined reference to .model_invoke_[0-9a-f]{16}"):
        build(two, [two / "main.c", two / "model.a"], two / "main")


@needs_zig
def test_a_model_named_like_a_place_in_a_template(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = small_model(tmp_path).rename(tmp_path / "@SIGNATURES@.tflite")
    data(capsys, "export", file, "--for", "web", "-o", tmp_path / "site")
    assert (tmp_path / "site" / "model.mjs").read_text().startswith("// @SIGNATURES@.tflite for the web and Node")
