"""Images and sounds become values of inputs as a file's metadata says, where flags do not say otherwise."""

import struct
import wave
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from litecl import Predictor
from litecl.interpreter.file.reader import read
from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Array, Model, Quantization, Signature
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.schema import TensorType
from litecl.jobs.metadata import normalization, sample_rate
from support import shared
from support.build import Graph, model, randn
from support.command import data, failure, text
from support.described import Said, described, metadata

_IMAGE = np.random.default_rng(8).integers(0, 256, (4, 5, 3)).astype(np.uint8)


def _images(count: int = 1, type_: TensorType = TensorType.FLOAT32, scale: float = 0.0, zero: int = 0) -> Model:
    """Return its images, after one another."""
    g = Graph()
    given = [g.input((1, *_IMAGE.shape), type_) for _ in range(count)]
    joined = g.op(CONCATENATION, given, ConcatenationOptions(0))
    if scale:
        quantization = Quantization(np.float32([scale]), np.array([zero]))
        g.tensors = [replace(tensor, quantization=quantization) for tensor in g.tensors]
    return model(g.build(joined))


def _file(folder: Path, content: bytes) -> Path:
    file = folder / "model.tflite"
    file.write_bytes(content)
    Image.fromarray(_IMAGE).save(folder / "image.png")
    return file


def _run(capsys: pytest.CaptureFixture[str], file: Path, *flags: object) -> tuple[Array, list[dict[str, Any]]]:
    """Return the output of a model of an image, and how that was read."""
    out = file.parent / "out"
    told = data(capsys, "run", file, "--cpu", "--input", file.parent / "image.png", "-o", out, *flags)
    return np.load(told["files"][0]), told["inputs"]


@pytest.mark.parametrize(
    ("said", "flags", "mean", "std", "by"),
    [
        (Said([0], [1]), [], [0, 0, 0], [1, 1, 1], "metadata"),
        (Said([123.7, 116.3, 103.5], [58.4, 57.1, 57.4]), [], [123.7, 116.3, 103.5], [58.4, 57.1, 57.4], "metadata"),
        (Said([1, 2, 3], [255]), [], [1, 2, 3], [255, 255, 255], "metadata"),
        (Said([0], [1]), ["--mean", 10, "--std", 20], [10] * 3, [20] * 3, "flags"),
        (Said([0], [2]), ["--mean", 10], [10] * 3, [2] * 3, "flags and metadata"),
        (Said([3], [0]), ["--mean", 10, "--std", 20], [10] * 3, [20] * 3, "flags"),
        (Said(), [], [127.5] * 3, [127.5] * 3, "default"),
        (Said(), ["--std", 255], [127.5] * 3, [255] * 3, "flags and default"),
    ],
)
def test_pixels_are_normalized_as_said(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    said: Said,
    flags: Sequence[object],
    mean: list[float],
    std: list[float],
    by: str,
) -> None:
    file = _file(tmp_path, described(_images(), said))
    got, (told,) = _run(capsys, file, *flags)
    np.testing.assert_allclose(got[0], (_IMAGE - np.array(mean)) / np.array(std), rtol=1e-6, atol=1e-6)
    assert told["pixels"] == by and [told["mean"], told["std"]] == [pytest.approx(mean), pytest.approx(std)]
    assert f", by {by}" in text(capsys, "run", file, "--cpu", "--input", tmp_path / "image.png", *flags).replace(
        "\n", " "
    )


def test_without_metadata_nothing_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    got, (told,) = _run(capsys, _file(tmp_path, write(_images())))
    np.testing.assert_allclose(got[0], _IMAGE / 127.5 - 1, rtol=1e-6, atol=1e-6)
    assert told["pixels"] == "default"


@pytest.mark.parametrize(
    ("type_", "scale", "zero", "said", "wanted"),
    [
        (TensorType.UINT8, 1 / 128, 128, Said([127.5], [127.5]), _IMAGE),
        (TensorType.UINT8, 0.0187, 114, Said([123.7, 116.3, 103.5], [58.4, 57.1, 57.4]), _IMAGE),
        (TensorType.INT8, 1 / 128, 0, Said([127.5], [127.5]), _IMAGE.astype(int) - 128),
        (TensorType.INT8, 1.0, -128, Said([0], [1]), _IMAGE.astype(int) - 128),
        (TensorType.INT8, 1 / 255, -128, Said([0], [255]), _IMAGE.astype(int) - 128),
        (TensorType.INT8, 0.0, 0, Said([100], [10]), _IMAGE.astype(int) - 128),
        (
            TensorType.INT8,
            0.0187,
            -14,
            Said([123.7, 116.3, 103.5], [58.4, 57.1, 57.4]),
            np.round((_IMAGE - np.array([123.7, 116.3, 103.5])) / [58.4, 57.1, 57.4] / 0.0187) - 14,
        ),
    ],
)
def test_integers_get_pixels_or_what_stands_for_the_real_value(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    type_: TensorType,
    scale: float,
    zero: int,
    said: Said,
    wanted: Array,
) -> None:
    got, (told,) = _run(capsys, _file(tmp_path, described(_images(1, type_, scale, zero), said)))
    np.testing.assert_array_equal(got[0], np.clip(wanted, -128, 255 if type_ == TensorType.UINT8 else 127))
    by = {TensorType.UINT8: "as they are"}.get(type_, "metadata" if scale == 0.0187 else "less 128")
    assert told["pixels"] == by


def test_each_input_has_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Under a signature too, which lists its names in another order."""
    made = _images(2)
    first, second = made.subgraphs[0].inputs
    made = replace(made, signatures=(Signature("s", {"b": first, "a": second}, {"y": made.subgraphs[0].outputs[0]}),))
    file = _file(tmp_path, described(made, Said([0], [1]), Said([0], [2])))
    image = tmp_path / "image.png"
    for flags in (
        ["--input", f"0={image}", "--input", f"1={image}"],
        ["--signature", "s", "--input", f"b={image}", "--input", f"a={image}"],
    ):
        told = data(capsys, "run", file, "--cpu", "-o", tmp_path / "out", *flags)
        np.testing.assert_allclose(np.load(told["files"][0]), [_IMAGE, _IMAGE / 2], rtol=1e-6)


@pytest.mark.parametrize(
    "content",
    [
        metadata(Said([1, 2], [1])),
        metadata(Said([0], [0])),
        metadata(Said([0], [float("nan")])),
        metadata(Said([0], None)),
        metadata(Said([0], [1]), Said([0], [1])),
        metadata(Said([0], [1]))[:40],
        b"M001M001",
        b"{}",
    ],
)
def test_metadata_that_cannot_be_used_is_an_error_only_where_it_is_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    file = _file(tmp_path, write(replace(_images(), metadata={"TFLITE_METADATA": content})))
    image = tmp_path / "image.png"
    said = failure(capsys, "run", file, "--cpu", "--input", image)
    assert "TFLITE_METADATA" in said and "--mean" in said
    got, _ = _run(capsys, file, "--mean", 0, "--std", 1)
    np.testing.assert_array_equal(got[0], _IMAGE)
    np.save(tmp_path / "x.npy", np.float32(_IMAGE)[None])
    data(capsys, "run", file, "--cpu", "--input", tmp_path / "x.npy")


def test_arrays_are_taken_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From files and from programs: an array is normalized already."""
    file = _file(tmp_path, described(_images(), Said([10], [20])))
    values = np.float32(_IMAGE)[None]
    np.save(tmp_path / "x.npy", values)
    told = data(capsys, "run", file, "--cpu", "--input", tmp_path / "x.npy", "-o", tmp_path / "out")
    assert told["inputs"] == []
    np.testing.assert_array_equal(np.load(told["files"][0]), values)
    with Predictor(file, cpu=True) as predictor:
        np.testing.assert_array_equal(next(iter(predictor(values).values())), values)


def test_batches_of_images_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _file(tmp_path, described(_images(), Said([1, 2, 3], [4])))
    flags = ["--cpu", "--inputs", tmp_path / "image.png", "-o", tmp_path / "out"]
    (told,) = data(capsys, "run", file, *flags)["read"]
    assert (told["pixels"], told["mean"], told["std"]) == ("metadata", [1, 2, 3], [4, 4, 4])
    with np.load(tmp_path / "out" / "part-000000.npz") as part:
        (got,) = (part[name] for name in part.files if name != "item")
    np.testing.assert_allclose(got[0], (_IMAGE - np.float32([1, 2, 3])) / 4, rtol=1e-6)
    assert "media differ" in failure(capsys, "run", file, *flags, "--mean", 0)


def _sound(folder: Path, rate: int) -> Path:
    with wave.open(str(folder / "sound.wav"), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(struct.pack("<8h", *range(0, 8000, 1000)))
    return folder / "sound.wav"


@pytest.mark.parametrize(
    ("said", "flags", "rate"),
    [(Said(rate=8000), [], 8000), (Said(), [], 16000), (Said(rate=8000), ["--rate", 4000], 4000)],
)
def test_a_sound_has_the_rate_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], said: Said, flags: Sequence[object], rate: int
) -> None:
    g = Graph()
    made = model(g.build(g.op(RESHAPE, [g.input((8,)), g.const(np.int32([8]))], ReshapeOptions())))
    file = tmp_path / "model.tflite"
    file.write_bytes(described(made, said))
    sound = _sound(tmp_path, rate)
    told = data(capsys, "run", file, "--cpu", "--input", sound, "-o", tmp_path / "out", *flags)
    assert [each["rate"] for each in told["inputs"]] == [rate]
    np.testing.assert_allclose(np.load(told["files"][0]), np.arange(0, 8000, 1000) / 32768, atol=1e-4)


@shared.needs_shared
@pytest.mark.parametrize(
    ("name", "mean", "std", "rate"),
    [
        ("google-coral-test_data/mobilenet_v1_0.25_128_quant.tflite", 127.5, 127.5, None),
        ("hugocornellier-face_detection_tflite/selfie_segmenter.tflite", 0, 255, None),
        ("tensorflow-tflite-support/dilated_conv.tflite", 0, 1, None),
        ("tensorflow-tflite-support/yamnet_audio_classifier_with_metadata.tflite", None, None, 16000),
    ],
)
def test_published_metadata_are_read(name: str, mean: float | None, std: float | None, rate: int | None) -> None:
    made = read(shared.model_file(name))
    tensor = made.subgraphs[0].inputs[0]
    said = normalization(made, 0, tensor, 3)
    assert (said and (said.mean, said.std)) == (None if mean is None else ((mean,) * 3, (std,) * 3))
    assert sample_rate(made, 0, tensor) == rate


@pytest.mark.parametrize(
    "words",
    [
        ["quantize", "--quantize", "float16"],
        ["quantize", "--recipe", "dynamic_wi8_afp32"],
        ["quantize", "--quantize", "int8", "--calibrate"],
        ["convert", "--fp16-safe", "--calibrate"],
        ["convert"],
    ],
    ids=" ".join,
)
def test_a_rewritten_file_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    g = Graph()
    flat = g.op(RESHAPE, [g.input((1, *_IMAGE.shape)), g.const(np.int32([1, -1]))], ReshapeOptions())
    weights = g.const(randn(np.random.default_rng(1), 4, _IMAGE.size, scale=0.01))
    made = model(g.build(g.op(FULLY_CONNECTED, [flat, weights, None], FullyConnectedOptions())))
    file = _file(tmp_path, described(made, Said([0], [255]), files={"labels.txt": "ant\nbee\ncat\ndog\n"}))
    np.savez(tmp_path / "samples.npz", main_in0=np.float32(_IMAGE)[None] / 255)
    samples = [tmp_path / "samples.npz"] if words[-1] == "--calibrate" else []
    before = data(capsys, "run", file, "--cpu", "--input", tmp_path / "image.png")
    data(capsys, words[0], file, *words[1:], *samples, "-o", tmp_path / "new.tflite")
    after = data(capsys, "run", tmp_path / "new.tflite", "--cpu", "--input", tmp_path / "image.png")
    assert after["inputs"] == before["inputs"] and after["inputs"][0]["pixels"] == "metadata"
    (first, second) = (told["outputs"][0]["top"][0] for told in (before, after))
    assert [each["label"] for each in second] == [each["label"] for each in first]
    assert [each["score"] for each in second] == pytest.approx([each["score"] for each in first], abs=0.05)
