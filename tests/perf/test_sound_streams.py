"""`litecl run --stream`: a sound that is longer than the input, in chunks; models with states over time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType
from rich.console import Console

from litecl.cli.streams import Chart
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.writer import write_file
from litecl.interpreter.graph import Signature
from litecl.interpreter.ops.reduce import REDUCE_MAX, ReducerOptions
from litecl.jobs.audio import Features, read_sound
from litecl.jobs.chunks import chunks_of
from litecl.jobs.given import Media
from support.build import Graph, model
from support.command import data, failure, text
from support.shared import model_file
from support.sounds import detail, sine, wav

FRONT = "tensorflow-tflite-micro/audio_preprocessor_int8.tflite"
SPEECH = "esphome-micro-wake-word-models/vad.tflite"


def loudest(folder: Path, size: int, signature: int | None = None) -> Path:
    """Write a model that returns the largest of some samples."""
    g = Graph()
    x = g.input((1, size), signature=(1, signature or size))
    y = g.op(REDUCE_MAX, [x, g.const(np.int32([1]))], ReducerOptions(False))
    file = folder / "loudest.tflite"
    write_file(model(g.build(y), signatures=[Signature("serving_default", {"x": x}, {"y": y})]), file)
    return file


@pytest.mark.parametrize(
    ("every_ms", "wanted"),
    [(None, [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 0, 0]]), (2.0, [[n, n + 1, n + 2, n + 3] for n in (1, 3, 5, 7)])],
)
def test_chunks_reach_to_the_end_of_a_sound(every_ms: float | None, wanted: list[Any], tmp_path: Path) -> None:
    file = wav(tmp_path / "a.wav", np.arange(1, 11) / 32767, 1000)
    chunks = chunks_of([str(file)], [detail([1, 4], np.int16)], Media(rate=1000), every_ms)
    assert [chunks.at(n)[0].tolist() for n in range(chunks.count)] == wanted
    assert (chunks.size_s, chunks.every_s) == (0.004, (every_ms or 4) / 1000)


@pytest.mark.parametrize("samples", [0, 3, 4])
def test_a_short_sound_is_one_chunk(samples: int, tmp_path: Path) -> None:
    file = wav(tmp_path / "a.wav", np.ones(samples), 1000)
    chunks = chunks_of([str(file)], [detail([1, 4])], Media(rate=1000), None)
    assert chunks.count == 1
    np.testing.assert_allclose(chunks.at(0), [[1.0] * samples + [0.0] * (4 - samples)], atol=1e-4)


def test_chunks_that_cannot_be_are_refused(tmp_path: Path) -> None:
    file = str(wav(tmp_path / "a.wav", np.ones(9), 1000))
    media, given = Media(rate=1000), [detail([1, 4])]
    with pytest.raises(ModelError, match="at most the 4 ms of a chunk, and more than 0, got 5"):
        chunks_of([file], given, media, 5.0)
    with pytest.raises(ModelError, match="got 0"):
        chunks_of([file], given, media, 0.1)
    with pytest.raises(ModelError, match="with one sound, got 0"):
        chunks_of(["a.npy"], given, media, None)
    with pytest.raises(ModelError, match="a sound of any length; expected --every-ms"):
        chunks_of([file], [detail([1, 1], signature=[1, -1])], media, None)
    assert chunks_of([file], [detail([1, 1], signature=[1, -1])], media, 3.0).at(2).shape == (1, 3)
    front = str(model_file(FRONT))
    with pytest.raises(ModelError, match="a multiple of --hop-ms, 10, got 25"):
        chunks_of([file], [detail([1, 3, 40], np.int8)], Media(features=front, hop_ms=10.0), 25.0)


@pytest.mark.parametrize("signature", [None, -1])
def test_the_loudest_chunk_is_told_with_its_time(
    signature: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = np.concatenate([sine(100, 16000, 0.3) / 4, sine(100, 16000, 0.1), sine(100, 16000, 0.05) / 2])
    given = *("run", loudest(tmp_path, 1600, signature), "--input", wav(tmp_path / "a.wav", sound, 16000)), "--stream"
    given += ("--every-ms", 100) if signature else ()
    told = data(capsys, *given, "-o", tmp_path / "out", "--cpu")
    wanted = np.pad(sound, (0, 800)).reshape(5, 1600).max(1)
    (output,) = told["stream"]["outputs"]
    np.testing.assert_allclose(output["scores"], wanted, atol=1e-4)
    assert (told["stream"]["chunks"], output["highest_at_s"]) == (5, pytest.approx(0.3))
    assert np.load(told["files"][0]).reshape(-1).tolist() == output["scores"]
    assert "at most 0.5, from 0.30 to 0.40 s" in text(capsys, *given)


def test_a_streaming_model_keeps_its_states_as_litert_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    front, speech = model_file(FRONT), model_file(SPEECH)
    at_s = np.arange(12000) / 16000
    voice = sum(np.sin(2 * np.pi * 140 * k * at_s) / k for k in range(1, 20)) * (at_s > 0.2)
    file = wav(tmp_path / "a.wav", 0.1 * voice * (1 + np.sin(8 * np.pi * at_s)), 16000)
    given = "run", speech, "--input", file, "--features", front, "--hop-ms", 10, "--stream"
    told = data(capsys, *given, "-o", tmp_path / "out")
    features = Features(str(front), 16000, 10.0).windows(read_sound(file, 16000), 3 * 25)
    litert = LiteRT(str(speech), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    litert.allocate_tensors()
    wanted = []
    for chunk in features.reshape(25, 1, 3, 40)[: told["stream"]["chunks"]]:
        litert.set_tensor(litert.get_input_details()[0]["index"], chunk)
        litert.invoke()
        wanted.append(litert.get_tensor(litert.get_output_details()[0]["index"]))
    assert len({int(value[0, 0]) for value in wanted}) > 3
    np.testing.assert_array_equal(np.load(told["files"][0]), wanted)
    assert "expected 30" in failure(capsys, *given, "--every-ms", 10)


def test_likeliest_classes_over_time_are_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    yamnet = model_file("tensorflow-tflite-support/yamnet_audio_classifier_with_metadata.tflite")
    sound = np.concatenate([np.zeros(31200), sine(1000, 16000, 1.95)])
    given = "run", yamnet, "--input", wav(tmp_path / "a.wav", sound, 16000), "--stream"
    (output,) = data(capsys, *given, "--top", 3)["stream"]["outputs"]
    assert [len(rows) for rows in output["top"]] == [3] * 4
    assert [rows[0]["label"] for rows in output["top"]][:2] == ["Silence"] * 2
    printed = [line.split() for line in text(capsys, *given).splitlines()]
    assert ["0.00", "1.95", "Silence"] in [words[:3] for words in printed]


def test_flags_that_do_not_go_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, wanted = loudest(tmp_path, 4), {"--stream": ("--draw", tmp_path / "a.png"), "--every-ms": ("--cpu",)}
    assert "--draw has no effect" in failure(capsys, "run", file, "--stream", *wanted["--stream"])
    assert "expected --stream" in failure(capsys, "run", file, "--every-ms", 5)
    assert "--stream have no effect" in failure(capsys, "run", file, "--inputs", "a.wav", "--stream", "-o", tmp_path)
    assert "expected --input with one sound" in failure(capsys, "run", file, "--stream")


@pytest.mark.parametrize(
    ("values", "wanted"), [([0.0, 0.5, 1.0], "▄█"), ([-4.0, 0.0, 4.0], " ▄█"), ([0.0, 0.0], ""), ([3.0] * 2, "")]
)
def test_a_chart_is_as_wide_as_a_terminal(values: list[float], wanted: str) -> None:
    console = Console(width=40, file=None)
    with console.capture() as captured:
        console.print(Chart(np.float64(values), 2.0))
    assert captured.get().splitlines()[0].strip() == wanted.strip()
    with console.capture() as captured:
        console.print(Chart(np.linspace(0, 1, 500), 10.0))
    line, times = captured.get().splitlines()
    assert (len(line), line[-1], len(times), times.split()) == (40, "█", 40, ["0", "s", "10.00", "s"])
