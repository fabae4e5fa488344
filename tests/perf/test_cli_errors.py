"""Errors of the command: the same for a fault whichever subcommand meets it, short, and JSON for programs."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import litecl
from litecl import sample
from litecl.cli import parser
from support.command import data, failure, small_model, text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return small_model(tmp_path)


def _error(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    """Run a command that fails. Return the error that it prints as JSON."""
    try:
        code = parser.main([*map(str, words), "--json"])
    except SystemExit as exited:
        code = int(exited.code or 0)
    error: dict[str, Any] = json.loads(capsys.readouterr().out)["error"]
    assert error["exit_code"] == code > 0
    return error


_OF_A_MODEL = (
    *("inspect {}", "run {}", "run {} --inputs x.npy -o out", "bench {}", "compile {}"),
    *("compile {} --for x86_64-linux -o p.pack", "convert {} -o q.tflite", "quantize {} --quantize int8 -o q.tflite"),
    *("report {} -o r.html", "trace {} -o t.json", "diff {0} {0}", "bisect {}", "tune {}", "serve {}"),
    "generate {} --tokens 1",
)


@pytest.mark.parametrize("command", _OF_A_MODEL)
def test_a_bad_model_is_the_same_error_everywhere(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.zeros((1, 4), np.float32))
    Path("empty.tflite").touch()
    Path("text.tflite").write_text("no model at all, but text")
    asked = {"missing": "ModelFileNotFound", "empty": "ModelError", "text": "ModelError"}
    for name, kind in asked.items():
        if name == "missing" or not command.startswith("serve"):
            error = _error(capsys, *command.format(f"{name}.tflite").split())
            assert error["type"] == kind, (command, name)
            assert f"{name}.tflite" in " ".join([error["message"], *error["notes"]]), (command, name)


def test_values_of_flags_are_wrong_usage(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is a file, a file that cannot be written, an unknown kind of file: refused before the work."""
    monkeypatch.chdir(tmp_path)
    file = Path("file.txt")
    file.touch()
    for command in (
        *(f"run {path} -o {file}", f"bisect {path} -o {file}", f"sample {file}", f"cache --cache {file}"),
        *(f"compile {path} --cache {file}", f"inspect {path} --delegate --dump-passes {file}"),
        *(f"bench {path} -o x.txt", f"report {path} -o x.txt", "verify -o x.txt", f"diff {path} {path} -o x.txt"),
        f"quantize {path} --quantize int8 -o q.tflite --quantize-report none/x.json",
    ):
        assert _error(capsys, *command.split())["type"] == "UsageError", command


def test_a_folder_has_no_name_of_a_file(path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Unless there is one of that name: ``bisect -o bisect.html`` wrote the model to a folder bisect.html."""
    for command, said in (
        (f"bisect {path} -o {tmp_path}/bisect.html", f"a page: --page {tmp_path}/bisect.html"),
        (f"run {path} -o {tmp_path}/out.npy", "out.npy is the name of a file, expected a folder"),
        (f"sample {tmp_path}/model.tflite", "model.tflite is the name of a file, expected a folder"),
        (f"run {path} -o -", "expected a folder, got '-'; './-' is one"),  # elsewhere it is stdout
        ("sample -", "expected a folder, got '-'"),
        (f"run {path} --output=", "expected a folder, got ''"),  # a shell's variable that is not set
    ):
        assert said in _error(capsys, *command.split())["message"]
    (tmp_path / "out.npy").mkdir()
    assert data(capsys, "run", path, "--cpu", "-o", tmp_path / "out.npy")["outputs"]


@pytest.mark.parametrize("command", ["convert", "quantize --quantize int8"])
@pytest.mark.parametrize("name", ["q.h5", "q.KERAS", "q.onnx"])
def test_a_written_model_has_no_name_of_another_format(
    name: str, command: str, path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    error = _error(capsys, *command.split(), path, "-o", tmp_path / name)
    assert error["type"] == "UsageError" and f"{name} is the name of another kind of model" in error["message"]
    assert not (tmp_path / name).exists()


def test_wrong_usage_is_told_in_a_few_lines(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser.main(["run", str(path), "--threads", "0"])
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "usage: litecl run [OPTIONS] MODEL",
        "litecl run: error: argument --threads: expected at least 1, got 0",
    ]


def test_a_device_to_verify_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    error = _error(capsys, "verify", "--quick", "--device", "no such device")
    assert error["type"] == "DeviceNotFound" and error["message"].startswith("there is no device 'no such device'")


@pytest.mark.parametrize("flag", ["--input", "--calibrate"])
@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 cut"])
def test_a_file_that_numpy_cannot_read(
    content: bytes, flag: str, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.npz"
    file.write_bytes(content)
    command = ["run"] if flag == "--input" else ["quantize", "--quantize", "int8", "-o", tmp_path / "q.tflite"]
    told = failure(capsys, *command, path, flag, file)
    assert f"{file}: not a" in told and "pickle" not in told


def test_a_damaged_archive_is_told_with_its_name(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "x.npz", main_in0=np.ones((2, 4), np.float32))
    content = bytearray((tmp_path / "x.npz").read_bytes())
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        content[archive.getinfo("main_in0.npy").header_offset + 180] ^= 1
    (tmp_path / "x.npz").write_bytes(content)
    assert "x.npz: not a .npz file" in failure(capsys, "run", path, "--input", tmp_path / "x.npz")


def test_a_missing_image_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not a reason to install Pillow."""
    sample.write(tmp_path)
    told = failure(capsys, "run", tmp_path / "model.tflite", "--input", tmp_path / "none.jpg")
    assert "none.jpg: No such file" in told
    assert "--rows" in failure(
        capsys, "run", tmp_path / "model.tflite", "--inputs", tmp_path / "images.npz", "-o", tmp_path / "out"
    )
    flags = "--inputs", tmp_path / "images.npz", "--rows", "-o", tmp_path / "out"
    told = failure(capsys, "run", tmp_path / "model.tflite", *flags)
    assert "got an archive of ['image']; np.save('rows.npy', np.load('images.npz')['image'])" in told


def test_a_source_to_convert_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused before TensorFlow is loaded, which takes seconds."""
    monkeypatch.setattr("litecl.cli.commands.convert.load_tensorflow", lambda: pytest.fail("loaded"))
    to = "-o", tmp_path / "q.tflite"
    assert "expected a SavedModel" in failure(capsys, "convert", tmp_path, *to)
    assert "none.py: No such file" in failure(capsys, "convert", tmp_path / "none.py:f", *to)


def test_a_module_that_raises_is_an_error_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("litecl.cli.commands.convert.load_tensorflow", lambda: None)
    (tmp_path / "own.py").write_text("x = 1\nint('x')\n")
    told = failure(capsys, "convert", tmp_path / "own.py:f", "-o", tmp_path / "q.tflite")
    assert "ConversionError" in told and "ValueError" in told and "own.py, line 2" in told


def test_text_wraps_between_words_at_40_columns(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pipe, without COLUMNS, a line stays one."""
    command = "run", path, "--device", "no such device at all"
    monkeypatch.delenv("COLUMNS", raising=False)
    (line,) = failure(capsys, *command).splitlines()
    assert len(line) > 80
    monkeypatch.setenv("COLUMNS", "40")
    lines = failure(capsys, *command).splitlines()
    assert " ".join(lines) == line
    assert all(len(each) <= 40 for each in lines)
    written = text(capsys, "trace", path, "--runs", 1, "-o", tmp_path / "trace.json").splitlines()
    assert all(len(each) <= 40 or " " not in each for each in written)
    assert any(str(tmp_path / "trace.json") in each for each in written)


@pytest.mark.parametrize("shown", [[], ["--json"]])
def test_errors_are_short_and_with_json_are_json(
    shown: list[str], path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long, blob = "x" * 100_000, tmp_path / "blob.tflite"
    blob.write_bytes(np.random.default_rng(0).bytes(150_000))
    asked = (
        (["run", long], 1, "ModelFileError"),
        (["run", path, "-o", long], 1, "OSError"),
        (["run", path, "--device", long], 1, "DeviceNotFound"),
        (["compare", blob, blob], 1, "ModelError"),
        (["inspect", blob], 1, "ModelError"),
        (["run", path, "--shape", long], 2, "UsageError"),
        (["bench", path, "--runs", "0"], 2, "UsageError"),
        (["run"], 2, "UsageError"),
        (["rum", path], 2, "UsageError"),
    )
    for words, code, kind in asked:
        given = [*map(str, words), *shown]
        if code == 1:
            assert parser.main(given) == 1
        else:
            with pytest.raises(SystemExit) as exited:
                parser.main(given)
            assert exited.value.code == 2
        captured = capsys.readouterr()
        assert len(captured.err) < 6000 and "Traceback" not in captured.err
        assert kind in captured.err if code == 1 else ": error: " in captured.err
        if not shown:
            assert captured.out == ""
            continue
        told = json.loads(captured.out)
        assert (told["kind"], told["schema"], told["litecl"]) == ("litecl error", 1, litecl.__version__)
        assert (told["error"]["type"], told["error"]["exit_code"]) == (kind, code)
        assert told["error"]["message"] and len(captured.out) < 7000


def test_notes_of_an_error_are_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.tflite"
    broken.write_bytes(b"\x1c\x00\x00\x00XXXX" + bytes(64))
    assert parser.main(["run", str(broken), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["error"]
    assert any(str(broken) in note for note in told["notes"])


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("run {model} --random -1", "--random: expected at least 0, got -1"),
        ("run {model} --hop-ms -1", "--hop-ms: expected milliseconds above 0, got '-1'"),
        ("run {model} --mean nan", "--mean: expected a finite number, got 'nan'"),
        ("run {model} --least nan", "--least: expected a finite number, got 'nan'"),
        ("bisect {model} --relative nan", "--relative: expected a number of 0 or more, got 'nan'"),
        ("bisect {model} --steps -1", "--steps: expected at least 0, got -1"),
        ("diff {model} {model} --relative -1", "--relative: expected a number of 0 or more, got '-1'"),
    ],
)
def test_numbers_that_mean_nothing(command: str, said: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in _error(capsys, *command.format(model=path).split())["message"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.npz", lambda file: np.savez(file), "expected arrays for ['main_in0'], got none"),
        ("objects.npy", lambda file: np.save(file, np.array([{}]), allow_pickle=True), "an array of Python objects"),
    ],
)
def test_files_without_a_value(
    name: str, content: Any, said: str, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content(tmp_path / name)  # writes it
    assert said in _error(capsys, "run", str(path), "--input", str(tmp_path / name))["message"]


@pytest.mark.parametrize("command", ["chat {}", "generate {} --prompt -"])
def test_a_closed_stdin_is_an_empty_text(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tokenizers")
    sample.write(tmp_path)
    monkeypatch.setattr("sys.stdin", None)
    error = _error(capsys, *command.format(tmp_path / "language_model.litertlm").split())
    assert "got an empty one" in error["message"]


def test_an_empty_folder_of_inputs_leaves_nothing(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    error = _error(capsys, "run", path, "--inputs", tmp_path / "empty", "-o", tmp_path / "out")
    assert "expected files in this folder, found none" in error["message"] and not (tmp_path / "out").exists()
