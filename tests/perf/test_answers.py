"""`litecl run` for people: likeliest classes by name, boxes of detectors, sounds, a timeline of the run."""

import json
import wave
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType
from PIL import Image

from litecl.cli import main
from litecl.cli.boxes import Detection, detections, draw
from litecl.cli.classes import Labels, labels_of, top
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.jobs.audio import Features, as_input, read_wav, resampled
from support.command import data, failure, small_model, text
from support.pattern_models import detector
from support.shared import model_file

RNG = np.random.default_rng(5)


def detail(shape: list[int], dtype: Any = np.float32, signature: list[int] | None = None) -> dict[str, Any]:
    return {"name": "sound", "shape": shape, "shape_signature": signature or shape, "dtype": dtype}


def wav(path: Path, samples: np.ndarray, rate: int, width: int = 2, channels: int = 1) -> Path:
    """Write samples of -1 to 1, of several channels in turns, as a .wav file of a width in bytes."""
    whole = np.rint(samples * (2 ** (8 * width - 1) - 1)).astype(np.int64) + (128 if width == 1 else 0)
    raw = whole.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(raw.tobytes())
    return path


def sine(hertz: float, rate: int, seconds: float) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)


# Classes


def test_the_likeliest_classes_have_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = small_model(tmp_path)
    (tmp_path / "labels.txt").write_text("ant\nbee\ncat\ndog\n")
    told = data(capsys, "run", model, "--cpu", "--labels", tmp_path / "labels.txt", "--top", 3, "-o", tmp_path / "out")
    (scores,) = np.load(told["files"][0])
    order = np.argsort(-scores)[:3]
    (row,) = told["outputs"][0]["top"]
    assert [one["label"] for one in row] == [["ant", "bee", "cat", "dog"][i] for i in order]
    assert [one["score"] for one in row] == pytest.approx(scores[order].tolist())
    printed = text(capsys, "run", model, "--cpu", "--labels", tmp_path / "labels.txt")
    assert "likeliest classes" in printed and "dog" in printed
    assert "top" not in data(capsys, "run", model, "--cpu")["outputs"][0]
    assert [one["label"] for one in data(capsys, "run", model, "--cpu", "--top", 1)["outputs"][0]["top"][0]] == [
        str(order[0])
    ]


def test_labels_for_another_number_of_classes_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "labels.txt").write_text("a\n" * 9)
    (tmp_path / "empty.txt").write_text("\n")
    model = small_model(tmp_path)
    assert "has 9 names" in failure(capsys, "run", model, "--cpu", "--labels", tmp_path / "labels.txt")
    assert "got none" in failure(capsys, "run", model, "--cpu", "--labels", tmp_path / "empty.txt")
    assert "No such file" in failure(capsys, "run", model, "--cpu", "--labels", tmp_path / "missing.txt")


def test_a_background_comes_first_on_either_side() -> None:
    plain = {"quantization": (0.0, 0)}
    names = Labels({0: "background", 1: "ant", 2: "bee"}, "file")
    (row,) = top(np.float32([[0.2, 0.8]]), plain, names, 2) or []
    assert [one["label"] for one in row] == ["bee", "ant"]
    (row,) = top(np.float32([[0.1, 0.2, 0.7, 0.0]]), plain, names, 4) or []
    assert [one["label"] for one in row] == ["ant", "background", "background", "bee"]
    assert top(np.float32([[1, 2, 3, 4, 5]]), plain, names, 2) is None


def test_integers_are_scored_as_real_numbers() -> None:
    (row,) = top(np.uint8([[10, 250]]), {"quantization": (1 / 256, 2)}, None, 1) or []
    assert row == [{"index": 1, "label": "1", "score": 248 / 256}]


def test_labels_come_from_the_models_file_and_from_numbered_lines(tmp_path: Path) -> None:
    model = small_model(tmp_path)
    assert labels_of(model, None) is None
    with zipfile.ZipFile(model, "a") as attached:
        attached.writestr("vocab.txt", "no\n")
        attached.writestr("labelmap.txt", "???\nperson\n")
    found = labels_of(model, None)
    assert found is not None and (found.names, found.source) == ({0: "???", 1: "person"}, "small.tflite:labelmap.txt")
    (tmp_path / "coral.txt").write_text("0  person\n2  car\n")
    coral = labels_of(model, tmp_path / "coral.txt")
    assert coral is not None and (coral.name(2), coral.name(1), coral.count) == ("car", "1", 3)


# Boxes


def test_a_detectors_boxes_are_listed_the_best_first() -> None:
    interpreter = Interpreter(detector())
    interpreter.allocate_tensors()
    for given in interpreter.get_input_details():
        interpreter.set_tensor(given["index"], RNG.random(given["shape"]).astype(np.float32))
    interpreter.invoke()
    boxes, classes, scores, count = (
        interpreter.get_tensor(each["index"])[0] for each in interpreter.get_output_details()
    )
    found = detections(interpreter, Labels({0: "???", 1: "ant", 2: "bee"}, "file"), 0.0)
    assert found is not None and len(found) == int(count) > 1
    assert [one.score for one in found] == pytest.approx(sorted(scores[: len(found)].tolist(), reverse=True))
    best = int(scores.argmax())
    assert found[0].box == pytest.approx(boxes[best][[1, 0, 3, 2]].tolist())
    assert found[0].label == {0: "ant", 1: "bee"}.get(int(classes[best]), str(int(classes[best]) + 1))
    assert detections(interpreter, None, 2.0) == []


def test_boxes_are_drawn_where_they_are(tmp_path: Path) -> None:
    Image.new("RGB", (100, 50)).save(tmp_path / "photo.png")
    draw(tmp_path / "photo.png", [Detection("ant", 2, 0.9, (0.5, 0.5, 0.9, 0.9))], tmp_path / "boxes.png")
    pixels = np.asarray(Image.open(tmp_path / "boxes.png"))
    assert pixels.shape == (50, 100, 3)
    assert pixels[30, 50].any() and pixels[45, 70].any()  # edges
    assert not pixels[35, 70].any() and not pixels[:10].any() and not pixels[:, :45].any()
    for name, reason in (("boxes.tflite", "ends in"), ("boxes.png", "expected an image")):
        (tmp_path / "text.png").write_text("no image")
        source = tmp_path / ("photo.png" if reason == "ends in" else "text.png")
        with pytest.raises(ModelError, match=reason):
            draw(source, [], tmp_path / name)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--draw", "x.png"), "ends in TFLite_Detection_PostProcess"),
        (("--cpu", "--profile-to", "t.json"), "expected a device"),
        (("--inputs", "a.npy", "--top", "3", "-o", "out"), "--top have no effect"),
        (("--draw", "missing/x.png"), "there is not a folder"),
    ],
)
def test_what_has_no_answer_is_refused(
    arguments: tuple[str, ...], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    model = small_model(tmp_path)
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["run", str(model), *arguments])
    except SystemExit as error:
        code = int(str(error.code))
    assert code in (1, 2) and reason in capsys.readouterr().err


def test_a_published_detector_finds_what_litert_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its file has the names of classes, from the first on."""
    model = model_file("tensorflow-tflite-support/coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite")
    picture = np.zeros((300, 300, 3), np.uint8)
    picture[60:240, 90:210] = 255
    Image.fromarray(picture).save(tmp_path / "photo.png")
    told = data(capsys, "run", model, "--input", tmp_path / "photo.png", "--least", 0.2, "--draw", tmp_path / "out.png")
    assert (np.asarray(Image.open(tmp_path / "out.png")) != picture).any()
    peer = LiteRT(str(model), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    peer.allocate_tensors()
    peer.set_tensor(peer.get_input_details()[0]["index"], picture[None])
    peer.invoke()
    _, classes, scores, _ = (peer.get_tensor(each["index"])[0] for each in peer.get_output_details())
    with zipfile.ZipFile(model) as attached:
        names = attached.read("labelmap.txt").decode().splitlines()
    wanted = [names[int(c)] for c, s in zip(classes, scores, strict=True) if s >= 0.2]
    assert [one["label"] for one in told["detections"]] == wanted and wanted


def test_boxes_are_of_detectors_alone(tmp_path: Path) -> None:
    interpreter = Interpreter(small_model(tmp_path))
    interpreter.allocate_tensors()
    assert detections(interpreter, None, 0.0) is None


# Sounds


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_samples_of_every_width(width: int, tmp_path: Path) -> None:
    wanted = sine(440, 16000, 0.1)
    got = read_wav(wav(tmp_path / "a.wav", wanted, 16000, width), 16000)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, atol=1.1 / 2 ** (8 * width - 1))


def test_channels_are_averaged(tmp_path: Path) -> None:
    left, right = sine(440, 8000, 0.1), sine(660, 8000, 0.1)
    both = np.stack([left, right], 1).reshape(-1)
    got = read_wav(wav(tmp_path / "a.wav", both, 8000, channels=2), 8000)
    np.testing.assert_allclose(got, (left + right) / 2, atol=1e-4)


@pytest.mark.parametrize(("old", "new"), [(44100, 16000), (8000, 16000), (48000, 16000), (22050, 44100)])
def test_a_tone_stays_the_same_tone_at_another_rate(old: int, new: int) -> None:
    got, wanted = resampled(sine(440, old, 0.5), old, new), sine(440, new, 0.5)
    assert len(got) == len(wanted)
    inner = slice(new // 20, -new // 20)
    np.testing.assert_allclose(got[inner], wanted[inner], atol=2e-3)


def test_what_the_lower_rate_cannot_hold_is_left_out() -> None:
    """A tone of 7 kHz at 8000 samples a second would sound as one of 1 kHz."""
    assert np.abs(resampled(sine(7000, 44100, 0.5), 44100, 8000)[400:-400]).max() < 5e-3


def test_a_sound_takes_the_shape_of_an_input(caplog: pytest.LogCaptureFixture) -> None:
    sound = np.float32([0.5, -0.5, 1.0])
    assert as_input(sound, detail([1, 5]), 16000, "a.wav").tolist() == [[0.5, -0.5, 1.0, 0, 0]]
    assert as_input(sound, detail([3], np.int16), 16000, "a.wav").tolist() == [16384, -16384, 32767]
    assert as_input(sound, detail([1, 1], signature=[1, -1]), 16000, "a.wav").shape == (1, 3)
    assert not caplog.records
    assert as_input(sound, detail([2]), 2, "a.wav").tolist() == [0.5, -0.5]
    assert "a.wav: the model takes the first 1.00 of 1.50 s" in caplog.text
    for wrong in (detail([1, 49, 10]), detail([1, 1960], np.int8)):
        with pytest.raises(ModelError, match="expected an input of samples"):
            as_input(sound, wrong, 16000, "a.wav")


@pytest.mark.parametrize("content", [b"", b"RIFF", b"no sound at all, but text"])
def test_a_file_that_is_no_sound_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(ModelError, match=r"a\.wav: expected a \.wav file"):
        read_wav(tmp_path / "a.wav", 16000)


@pytest.mark.parametrize("rate", [1, 2_000_000])
def test_a_rate_that_no_sound_has_is_refused(rate: int, tmp_path: Path) -> None:
    """Some seconds of it would not fit into memory, or be no sample at all."""
    with pytest.raises(ModelError, match="1000 to 1000000 samples a second"):
        read_wav(wav(tmp_path / "a.wav", np.zeros(4), rate), 16000)


def test_a_published_classifier_hears_a_tone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = model_file("tensorflow-tflite-support/yamnet_audio_classifier_with_metadata.tflite")
    file = wav(tmp_path / "tone.wav", sine(1000, 44100, 1.0), 44100)
    told = data(capsys, "run", model, "--input", file, "--top", 10)
    assert {"Sine wave", "Beep, bleep"} & {one["label"] for one in told["outputs"][0]["top"][0]}


def test_features_of_a_keyword_model_come_from_another_model(tmp_path: Path) -> None:
    """Window by window; the front end's estimate of noise goes on from one to the next."""
    front = model_file("tensorflow-tflite-micro/audio_preprocessor_int8.tflite")
    sound = read_wav(wav(tmp_path / "a.wav", RNG.standard_normal(16000) * 0.1, 16000), 16000)
    got = Features(str(front), 16000, 20.0).of(sound, detail([1, 1960], np.int8), "a.wav")
    interpreter = Interpreter(front)
    interpreter.allocate_tensors()
    whole = np.clip(np.rint(sound * 32768), -32768, 32767).astype(np.int16)
    for number, row in enumerate(got.reshape(49, 40)):
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], whole[None, number * 320 :][:, :480])
        interpreter.invoke()
        np.testing.assert_array_equal(row, interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    with pytest.raises(ModelError, match=r"got int8\[40\] a window"):
        Features(str(front), 16000, 20.0).of(sound, detail([1, 1961], np.int8), "a.wav")
    with pytest.raises(ModelError, match="at least one sample"):
        Features(str(front), 16000, 0.0)


# The timeline


def test_a_run_writes_its_timeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = small_model(tmp_path)
    plain = data(capsys, "run", model)
    told = data(capsys, "run", model, "--profile-to", tmp_path / "trace.json")
    assert told["outputs"] == plain["outputs"]
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    launches = sum(len(row["nodes"]) > 0 for row in told["delegation"]["partitions"])
    assert launches and [event for event in events if event["ph"] == "X" and event["dur"] > 0]
