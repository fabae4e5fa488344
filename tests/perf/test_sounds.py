"""Sounds as inputs of `litecl run`: files of every kind, other rates, and features that another model makes of them."""

import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from litecl.interpreter import Interpreter
from litecl.interpreter.errors import MissingExtra, ModelError
from litecl.interpreter.kit.own import texts
from litecl.interpreter.ops.waves import DECODE_WAV, WaveOptions
from litecl.jobs.audio import Features, as_input, read_sound, resampled
from litecl.jobs.given import Media, load_all
from support.command import data, failure
from support.shared import model_file
from support.sounds import detail, sine, wav

RNG = np.random.default_rng(5)
_FORMAT_SIZE, _BITS = 16, 34  # positions in a .wav file: of the size of the chunk `fmt `, and bits of a sample


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_samples_of_every_width(width: int, tmp_path: Path) -> None:
    wanted = sine(440, 16000, 0.1)
    got = read_sound(wav(tmp_path / "a.wav", wanted, 16000, width), 16000)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, atol=1.1 / 2 ** (8 * width - 1))


def test_channels_are_averaged(tmp_path: Path) -> None:
    left, right = sine(440, 8000, 0.1), sine(660, 8000, 0.1)
    both = np.stack([left, right], 1).reshape(-1)
    got = read_sound(wav(tmp_path / "a.wav", both, 8000, channels=2), 8000)
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


@pytest.mark.parametrize(
    ("suffix", "subtype", "tolerance"),
    [("flac", "PCM_24", 1e-6), ("mp3", None, 0.02), ("ogg", "VORBIS", 0.02), ("wav", "FLOAT", 1e-6)],
)
def test_what_soundfile_reads_sounds_the_same(
    suffix: str, subtype: str | None, tolerance: float, tmp_path: Path
) -> None:
    soundfile = pytest.importorskip("soundfile", reason="litecl[audio] is not installed")
    wanted = sine(440, 16000, 0.5)
    file = tmp_path / f"a.{suffix}"
    soundfile.write(file, np.stack([wanted, wanted / 2], 1), 16000, subtype=subtype)
    got = read_sound(file, 16000)
    assert got.dtype == np.float32
    inner = slice(2000, -2000)
    np.testing.assert_allclose(got[: len(wanted)][inner], 0.75 * wanted[inner], atol=tolerance)


def test_a_sound_says_what_its_kind_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    (tmp_path / "a.mp3").write_bytes(b"ID3")
    with pytest.raises(MissingExtra, match=r"a\.mp3: such sounds need soundfile: pip install 'litecl\[audio\]'"):
        read_sound(tmp_path / "a.mp3", 16000)


@pytest.mark.parametrize("suffix", ["flac", "mp3", "ogg"])
def test_a_damaged_sound_is_refused_or_cut(suffix: str, tmp_path: Path) -> None:
    """Never with a crash, nor with the memory that a false length asks for."""
    soundfile = pytest.importorskip("soundfile", reason="litecl[audio] is not installed")
    file = tmp_path / f"a.{suffix}"
    soundfile.write(file, sine(440, 16000, 0.2), 16000)
    whole = np.frombuffer(file.read_bytes(), np.uint8)
    for _ in range(40):
        damaged = whole[: RNG.integers(len(whole))].copy()
        damaged[RNG.integers(len(whole), size=4) % max(1, len(damaged))] = (
            RNG.integers(256, size=4) if len(damaged) else 0
        )
        file.write_bytes(damaged.tobytes())
        with suppress(ModelError):
            assert np.isfinite(read_sound(file, 16000)).all()
    (tmp_path / f"b.{suffix}").write_bytes(b"no sound at all, but text")
    with pytest.raises(ModelError, match=rf"expected a \.{suffix} file"):
        read_sound(tmp_path / f"b.{suffix}", 16000)


def test_a_wake_word_model_says_what_it_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its file does not say how its features are made."""
    model = model_file("esphome-micro-wake-word-models/okay_nabu.tflite")
    file = wav(tmp_path / "a.wav", sine(440, 16000, 0.2), 16000)
    told = failure(capsys, "run", model, "--input", file)
    assert "--features" in told and "audio_preprocessor_int8.tflite" in told and "--hop-ms" in told


@pytest.mark.parametrize("content", [b"", b"RIFF", b"no sound at all, but text"])
def test_a_file_that_is_no_sound_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(ModelError, match=r"a\.wav: expected a \.wav file"):
        read_sound(tmp_path / "a.wav", 16000)


def test_samples_that_are_wider_than_32_bits_need_soundfile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = wav(tmp_path / "a.wav", sine(440, 16000, 0.1), 16000, 4)
    content = bytearray(file.read_bytes())
    content[_BITS] = 64
    file.write_bytes(content)
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(MissingExtra, match="such sounds need soundfile"):
        read_sound(file, 16000)


def test_a_chunk_that_is_longer_than_its_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator that decodes such bytes refuses them too."""
    file = wav(tmp_path / "a.wav", sine(440, 16000, 0.1), 16000)
    content = bytearray(file.read_bytes())
    content[_FORMAT_SIZE + 3] = 1
    file.write_bytes(content)
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(MissingExtra, match="such sounds need soundfile"):
        read_sound(file, 16000)
    with pytest.raises(ModelError, match="expected a WAV file"):
        DECODE_WAV.run(WaveOptions(), [texts([file.read_bytes()], ())])


@pytest.mark.parametrize("rate", [1, 2_000_000])
def test_a_rate_that_no_sound_has_is_refused(rate: int, tmp_path: Path) -> None:
    """Some seconds of it would not fit into memory, or be no sample at all."""
    with pytest.raises(ModelError, match="1000 to 1000000 samples a second"):
        read_sound(wav(tmp_path / "a.wav", np.zeros(4), rate), 16000)


def test_a_published_classifier_hears_a_tone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = model_file("tensorflow-tflite-support/yamnet_audio_classifier_with_metadata.tflite")
    file = wav(tmp_path / "tone.wav", sine(1000, 44100, 1.0), 44100)
    told = data(capsys, "run", model, "--input", file, "--top", 10)
    assert {"Sine wave", "Beep, bleep"} & {one["label"] for one in told["outputs"][0]["top"][0]}


def test_features_of_a_keyword_model_come_from_another_model(tmp_path: Path) -> None:
    """Window by window; the front end's estimate of noise carries over from one to the next."""
    front = model_file("tensorflow-tflite-micro/audio_preprocessor_int8.tflite")
    sound = read_sound(wav(tmp_path / "a.wav", RNG.standard_normal(16000) * 0.1, 16000), 16000)
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


def test_one_sound_leaves_nothing_behind_in_the_features_of_another(tmp_path: Path) -> None:
    """In either order: a front end carries its estimate of noise over within a sound only."""
    media = Media(features=str(model_file("tensorflow-tflite-micro/audio_preprocessor_int8.tflite")))
    files = [wav(tmp_path / f"{loud}.wav", RNG.standard_normal(16000) * loud, 16000) for loud in (0.01, 0.2)]
    first, second = (
        [load_all(file, [detail([1, 1960], np.int8)], media) for file in order] for order in (files, files[::-1])
    )
    for one, other in zip(first, second[::-1], strict=True):
        np.testing.assert_array_equal(one["sound"], other["sound"])
    assert (first[0]["sound"] != first[1]["sound"]).any()
