"""`litecl run` for people: likeliest classes by name, boxes of detectors, a timeline of the run."""

import json
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
from litecl.perf.feeds import run_on
from support.command import data, failure, small_model, text
from support.pattern_models import detector
from support.shared import model_file

RNG = np.random.default_rng(5)


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


def test_attached_labels_that_are_damaged_are_none(tmp_path: Path) -> None:
    """Their compression, or a mark that they are encrypted."""
    model = small_model(tmp_path)
    with zipfile.ZipFile(model, "a", zipfile.ZIP_DEFLATED) as attached:
        attached.writestr("labelmap.txt", "person\ncar\n" * 50)
        start = attached.getinfo("labelmap.txt").header_offset
    content = model.read_bytes()
    compressed, entry = content.index(b"labelmap.txt", start) + len("labelmap.txt"), content.rindex(b"PK\x01\x02")
    for place, value in ((compressed, 0xFF), (entry + 8, 1)):
        changed = bytearray(content)
        changed[place] = value
        model.write_bytes(changed)
        assert labels_of(model, None) is None


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
    for name, reason in (("boxes.tflite", "ends in"), ("boxes.png", "an image that Pillow reads")):
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
    np.save(tmp_path / "photo.npy", picture[None])
    words = "run", model, "--input", tmp_path / "photo.npy", "--draw", tmp_path / "out.png"
    assert "--draw: expected --input with one image" in failure(capsys, *words)
    peer = LiteRT(str(model), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    run_on(peer, [picture[None]])
    _, classes, scores, _ = (peer.get_tensor(each["index"])[0] for each in peer.get_output_details())
    with zipfile.ZipFile(model) as attached:
        names = attached.read("labelmap.txt").decode().splitlines()
    wanted = [names[int(c)] for c, s in zip(classes, scores, strict=True) if s >= 0.2]
    assert [one["label"] for one in told["detections"]] == wanted and wanted


def test_boxes_are_of_detectors_alone(tmp_path: Path) -> None:
    interpreter = Interpreter(small_model(tmp_path))
    interpreter.allocate_tensors()
    assert detections(interpreter, None, 0.0) is None


# The timeline


def test_a_run_writes_its_timeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = small_model(tmp_path)
    plain = data(capsys, "run", model)
    told = data(capsys, "run", model, "--profile-to", tmp_path / "trace.json")
    assert told["outputs"] == plain["outputs"]
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    launches = sum(len(row["nodes"]) > 0 for row in told["delegation"]["partitions"])
    assert launches and [event for event in events if event["ph"] == "X" and event["dur"] > 0]
