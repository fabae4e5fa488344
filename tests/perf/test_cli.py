"""The command ``litecl``, run in this process: exit codes, JSON, tables and error messages."""

import json
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace

import numpy as np
import pytest

from litecl.cli import commands, keras_models, main
from litecl.cli.commands import devices as listing
from litecl.converter import ConversionReport, Converter
from litecl.converter.quantization.data import signatures_of
from litecl.converter.report import FusionRecord
from litecl.delegate import CLDelegate
from litecl.interpreter import Interpreter
from litecl.perf import devices as measured
from support.build import randn
from support.command import RNG, data, failure, small_model, text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return small_model(tmp_path)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("rum model.tflite", "run"), ("run --threds 2 model.tflite", "--threads"), ("quantise x", "quantize")],
)
def test_misspelt_words(capsys: pytest.CaptureFixture[str], given: str, meant: str) -> None:
    """The nearest command or option is suggested, and none for a word that is like no other."""
    with pytest.raises(SystemExit):
        main(given.split())
    assert f"; did you mean {meant}?\n" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", "--zzz"])
    assert "did you mean" not in capsys.readouterr().err


def test_devices(capsys: pytest.CaptureFixture[str]) -> None:
    rows = data(capsys, "devices")["devices"]
    assert [row["index"] for row in rows] == list(range(len(rows)))
    assert sorted(name for row in rows for name in row["default_for"]) == ["large models", "small models"]
    assert all(row["compute_units"] >= 1 and row["memory_bytes"] > 0 for row in rows)
    assert rows[0]["type"] in text(capsys, "devices")


def test_which_gpu_comes_first(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The table distinguishes the two, and explains the order."""
    row = measured.device_rows()[0]
    shown_short = {"platform": "a driver", "processor": None, "float_speed": 0.0}
    gpus = [replace(row, type="GPU", own_memory=own, **shown_short) for own in (True, False)]
    monkeypatch.setattr(listing, "device_rows", lambda: (*gpus, row))
    shown = text(capsys, "devices")
    assert "memory of its own" in shown and "memory of the host" in shown
    assert "prefers a GPU, discrete over integrated" in shown
    monkeypatch.setattr(listing, "device_rows", lambda: (row,))
    assert "memory of" not in text(capsys, "devices")


def test_inspect(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, "inspect", path)
    assert found["operators"] == {"ADD": 1, "MUL": 1, "SOFTMAX": 1}
    assert found["signatures"] == [{"key": "serving_default", "subgraph": 0, "inputs": ["x"], "outputs": ["y"]}]
    assert found["subgraphs"][0]["inputs"] == [{"name": "main_in0", "type": "FLOAT32", "shape": [-1, 4]}]
    assert "nodes" not in found
    shown = text(capsys, "inspect", path)
    assert "small.tflite: 1 subgraph, 3 nodes, 32 B of constants" in shown
    assert "signature serving_default (subgraph 0): x -> y" in shown


def test_inspect_nodes_and_delegation(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, "inspect", path, "--nodes", "--delegate")
    assert [node["op"] for node in found["nodes"]] == ["MUL", "ADD", "SOFTMAX"]
    assert [node["op"] for node in found["delegation"]["nodes"]] == ["MUL", "ADD", "SOFTMAX"]
    shown = text(capsys, "inspect", path, "--nodes", "--delegate")
    assert "SOFTMAX v1" in shown
    assert "of 3 nodes in" in shown


def test_inspect_tells_of_no_invoke_that_never_was(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(path), "--delegate"]) == 0
    assert "last invoke" not in capsys.readouterr().out
    interpreter = Interpreter(path, delegates=[CLDelegate()])
    interpreter.allocate_tensors()
    assert "last invoke" not in str(interpreter.delegation_report()) + interpreter.delegation_report()._repr_html_()
    interpreter.invoke()
    assert "last invoke: 1 launch" in str(interpreter.delegation_report())
    assert "last invoke: 1 launch" in interpreter.delegation_report()._repr_html_()


def test_compare_takes_results_and_no_models(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.with_suffix(".large").write_bytes(b"\x80" * 200_000)
    path.with_suffix(".deep").write_bytes(b"[" * 100_000)
    for given in (path, path.with_suffix(".large"), path.with_suffix(".deep")):
        assert main(["compare", str(given), str(given)]) != 0
        said = capsys.readouterr().err
        assert "expected results of `litecl bench --json`" in said
        assert len(said) < 600


def test_inspect_writes_regions_after_passes(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--dump-passes`` asks for the delegate too."""
    found = data(capsys, "inspect", path, "--dump-passes", tmp_path / "passes")
    assert found["delegation"]["partitions"]
    files = sorted((tmp_path / "passes" / "region0").iterdir())
    assert [file.name for file in files] == ["000_subgraph0_claimed.txt", "001_subgraph0_chains.txt"]
    assert "MUL" in files[0].read_text()
    assert "chain(%0)" in files[1].read_text()


def test_run_is_repeatable_and_the_same_on_both_sides(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on_device = data(capsys, "run", path, "--random", 3)
    on_cpu = data(capsys, "run", path, "--random", 3, "--cpu")
    other = data(capsys, "run", path, "--random", 4, "--cpu")
    assert on_device["outputs"][0]["shape"] == [1, 4]
    assert on_device["outputs"][0]["first"] == pytest.approx(on_cpu["outputs"][0]["first"], rel=1e-5)
    assert on_cpu["outputs"][0]["first"] != pytest.approx(other["outputs"][0]["first"], rel=1e-3)
    assert on_cpu["delegation"] is None
    assert len(on_device["delegation"]["nodes"]) == 3


def test_run_with_an_input_of_another_batch_writes_its_outputs(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", randn(RNG, 3, 4))
    out = tmp_path / "out"
    found = data(capsys, "run", path, "--input", f"main_in0={tmp_path / 'x.npy'}", "--output", out)
    (file,) = found["files"]
    value = np.load(file)
    assert value.shape == (3, 4)
    np.testing.assert_allclose(value.sum(axis=1), 1.0, rtol=1e-5)


def test_run_shows_values_and_report(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = text(capsys, "run", path)
    assert "SOFTMAX" in shown
    assert "last invoke:" in shown


def test_bench_alone(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = data(capsys, "bench", path, "--runs", 3, "--warmup", 0, "--cpu")
    (subject,) = found["subjects"]
    assert subject["runs"] == 3
    assert 0 < subject["min_ms"] <= subject["p10_ms"] <= subject["median_ms"] <= subject["p90_ms"]
    assert found["delegation"] is found["profile"] is found["device"] is None
    assert found["comparisons"] == []
    assert len(subject["times_ms"]) == 3
    assert (found["schema"], found["kind"]) == (1, "litecl bench")
    assert found["machine"]["litecl"] and found["date"] and found["sha256"]


def test_bench_against_litert_with_profile(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "bench", path, "--runs", 3, "--threads", 1, "--against", "litert", "--profile"
    found = data(capsys, *arguments)
    assert [s["name"] for s in found["subjects"]] == ["litecl", "litert"]
    assert [s["num_threads"] for s in found["subjects"]] == [1, 1]
    (comparison,) = found["comparisons"]
    assert comparison["difference"] < 1e-5
    assert found["profile"]["host"]
    shown = text(capsys, *arguments)
    assert f"litert {version('ai-edge-litert')} (1 thread) / litecl: median x" in shown
    assert "by operator (per invoke)" in shown


def test_a_missing_file_and_a_broken_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "ModelFileNotFound" in failure(capsys, "inspect", tmp_path / "none.tflite")
    broken = tmp_path / "broken.tflite"
    broken.write_bytes(b"\x1c\x00\x00\x00XXXX" + bytes(64))
    assert "ModelError: not a .tflite file: file identifier: expected" in failure(capsys, "run", broken)
    for command in ("run", "inspect", "bench", "compile"):
        assert f"in {broken}" in failure(capsys, command, broken)


def test_errors_tell_where(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", randn(RNG, 1, 5))
    given = "--cpu", "--input", f"main_in0={tmp_path / 'x.npy'}"
    assert "input 'main_in0': expected shape [-1, 4], got [1, 5]" in failure(capsys, "run", path, *given)
    said = failure(capsys, "run", path, *given, "--shape", "main_in0=1,5")
    assert said.startswith("ShapeError:")
    assert "while preparing MUL (subgraph 0, node 0)" in said


def test_unknown_names(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no input 'y'; the model has ['main_in0']" in failure(capsys, "run", path, "--input", "y=y.npy")
    assert "there is no device 'no such device'" in failure(capsys, "run", path, "--device", "no such device")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect"], "the following arguments are required: MODEL"),
        (["bench", "m.tflite", "--runs", "0"], "expected at least 1, got 0"),
        (["bench", "m.tflite", "--warmup", "x"], "expected a whole number, got 'x'"),
        (["bench", "m.tflite", "--seconds", "x"], "expected a number of seconds, got 'x'"),
        (["bench", "m.tflite", "--seconds", "0"], "expected a number of seconds above 0, got '0'"),
        (["chat", "m.tflite", "--top-k", "0"], "argument --top-k: expected at least 1, got 0"),
        (["chat", "m.tflite", "--temperature", "nan"], "argument --temperature: expected 0 or more, got 'nan'"),
        (["generate", "m.tflite", "--prompt", "a", "--top-p", "0"], "argument --top-p: expected more than 0, and at m"),
        (["trace", "m.tflite", "-o", "none/t.json"], "none/t.json: there is not a folder none"),
        (["report", "m.tflite", "-o", "none/r.html"], "none/r.html: there is not a folder none"),
        (["convert", "m.keras", "-o", "."], ". is a folder, expected a file to write"),
        (["run", "m.tflite", "--cpu", "--device", "0"], "not allowed with argument"),
        (["convert", "m.keras", "-o", "m.tflite", "--input-shape", "x=1,a"], "expected NAME=D,D,..."),
    ],
)
def test_wrong_arguments_exit_with_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_no_arguments_ask_for_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 0
    assert "commands:" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["quantize", "--quantize", "int8"], ["convert"], ["trace"], ["compile"]])
def test_a_model_is_not_written_over(arguments: list[str], path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, link = path.read_bytes(), path.with_name("link.tflite")
    link.symlink_to(path)
    for output in (path, link):
        with pytest.raises(SystemExit) as caught:
            main([*arguments, str(path), "-o", str(output)])
        assert caught.value.code == 2 and "is the file of" in capsys.readouterr().err
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "words",
    [
        "inspect {model} --node-data {model}",
        "run {model} --profile-to {link}",
        "bisect {model} --page {html}",
        "quantize {model} --quantize int8 -o {new} --frontier {model}",
        "quantize {model} --quantize int8 -o {new} --save-recipe {new}",
        "quantize {model} --quantize int8 --calibrate {data} -o {data}",
        "trace {model} --input x={data} -o {data}",
        "diff {model} {data} -o {json}",
        "report {model} -o {html} -o {json}",
        "report {data} --before {html} -o {html}",
    ],
)
def test_what_a_command_reads_is_not_written_over(
    words: str, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"model": path, "new": tmp_path / "new.tflite", "data": tmp_path / "data.npz"}
    files |= {name: tmp_path / f"link.{name}" for name in ("link", "json", "html")}
    files["data"].write_bytes(b"data")
    for name in ("link", "json", "html"):
        files[name].symlink_to(path)
    content = path.read_bytes()
    with pytest.raises(SystemExit) as caught:
        main(words.format(**files).split())
    assert caught.value.code == 2 and " too" in capsys.readouterr().err
    assert (path.read_bytes(), files["data"].read_bytes()) == (content, b"data") and not files["new"].exists()


def test_an_output_may_go_where_nothing_is_lost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    assert main(["quantize", str(path), "--quantize", "int8", "-o", "int8"]) == 0
    assert Path("int8").is_file()


@pytest.mark.parametrize("command", [info.name for info in iter_modules(commands.__path__)])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    assert "--json" in capsys.readouterr().out


def test_convert_hands_its_arguments_on_and_writes_the_file(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[object] = []

    def converter(*arguments: object, **keywords: object) -> SimpleNamespace:
        handed.extend((*arguments, keywords["input_shapes"], keywords["lstm"], keywords["quantize"]))
        report = ConversionReport(fusions=[FusionRecord("mine", "place", "no reason")])
        return SimpleNamespace(convert=lambda observe, progress: path.read_bytes(), report=report)

    monkeypatch.setattr(Converter, "from_saved_model", converter)
    monkeypatch.setattr(Converter, "from_keras_model", converter)
    monkeypatch.setattr(keras_models, "load", lambda file: f"loaded {file.name}")
    out, folder, file = tmp_path / "out.tflite", tmp_path / "saved", tmp_path / "model.keras"
    folder.mkdir()
    (folder / "saved_model.pb").touch()
    file.touch()
    shapes = "--input-shape", "a=1,2", "--input-shape", "b=-1,4", "--input-shape", "scalar="
    found = data(capsys, "convert", folder, "-o", out, *shapes, "--signature", "first")
    assert out.read_bytes() == path.read_bytes()
    assert (found["output"], found["size_bytes"]) == (str(out), path.stat().st_size)
    said = text(capsys, "convert", file, "-o", out, "--lstm", "while", "--quantize", "int8")
    assert "3 nodes" in said
    assert "not fused mine 'place': no reason" in said
    assert found["conversion"]["fusions"] == [{"name": "mine", "place": "place", "reason": "no reason"}]
    assert handed == [
        folder,
        ["first"],
        {"a": (1, 2), "b": (-1, 4), "scalar": ()},
        "fused",
        None,
        "loaded model.keras",
        {},
        "while",
        "int8",
    ]


def test_convert_quantizes_a_ready_model(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, samples, written = tmp_path / "out.tflite", tmp_path / "samples.npz", tmp_path / "report.json"
    interpreter = Interpreter(str(path))
    (signature,) = signatures_of(interpreter.model)
    shapes = {name: interpreter.model.subgraphs[0].tensors[t].shape for name, t in signature.inputs.items()}
    random = np.random.default_rng(0)
    np.savez(samples, **{name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()})
    calibrated = "--quantize", "int8", "--calibrate", samples
    found = data(capsys, "convert", path, "-o", out, *calibrated, "--input-type", "int8", "--quantize-report", written)
    layers = json.loads(written.read_text())["layers"]
    assert found["conversion"]["quantization"]["layers"] == layers
    assert any(layer["type"] == "INT8" and layer["sqnr_db"] > 20 for layer in layers)
    assert Interpreter(str(out)).get_input_details()[0]["dtype"] == np.int8
    corrected = (*calibrated, "--equalize", "--bias-correction", "--per-tensor", "--calibration", "percentile")
    data(capsys, "convert", path, "-o", out, *corrected, "--percentile", "99.9", "--samples", "1", "--strict")
    data(capsys, "convert", path, "-o", out, "--quantize", "int4", "--block", "32")
    for arguments, message in (
        (("--quantize", "int16"), "need --calibrate"),
        (("--quantize", "int8", "--equalize", "--calibration", "mse"), "--calibration, --equalize: no effect without"),
        (("--quantize", "int8", "--block", "32"), 'block needs weights="int4"'),
        (("--quantize", "float16", "--calibrate", samples), "expected --quantize int8 or int16"),
        (("--quantize", "int8", "--skip", "ADD"), "--skip: no effect without --calibrate"),
        (("--quantize", "int8", "--calibrate", tmp_path / "none.npz"), "cannot be read"),
        (("--signature", "x"), "no effect on a .tflite file"),
    ):
        assert message in " ".join(failure(capsys, "convert", path, "-o", out, *arguments).split())


def test_convert_of_what_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.tflite"
    assert "none.keras: No such file" in failure(capsys, "convert", tmp_path / "none.keras", "-o", out)
    (tmp_path / "model.txt").write_text("")
    said = failure(capsys, "convert", tmp_path / "model.txt", "-o", out)
    assert "expected a .keras, .h5, .pb, .pt2, .onnx or .tflite file, a SavedModel folder, or FILE.py:NAME" in " ".join(
        said.split()
    )
    assert not out.exists()


def test_convert_without_tensorflow_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.keras").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "keras", None)
    said = failure(capsys, "convert", tmp_path / "model.keras", "-o", tmp_path / "out.tflite")
    assert "pip install 'litecl[convert]'" in said


def test_a_device_that_is_required(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    assert data(capsys, "run", path, "--require-device")["delegation"]
    assert "there is no device 'nothing'" in failure(capsys, "run", path, "--device", "nothing")
    assert "there is no device 'nothing'" in failure(capsys, "bench", path, "--device", "nothing")
    assert "--require-device: the CPU was selected" in failure(capsys, "run", path, "--cpu", "--require-device")
