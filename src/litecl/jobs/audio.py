"""Sounds as model inputs: samples at the model's rate, or features that another model computes from them."""

import math
import wave
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from litecl.delegate.progress import logger
from litecl.interpreter import Interpreter
from litecl.interpreter.errors import MissingExtra, ModelError
from litecl.interpreter.graph import Array

_EDGE_S = 0.05  # silence around a sound: resampling is periodic, and its two ends must not meet
_INT16 = 32768
_WIDEST = 4  # bytes of an integer sample
_BLOCK = 1 << 16  # frames read at once
_RATES = range(1000, 1_000_001)  # accepted sample rates of files, in Hz


def read_sound(path: Path, rate: int) -> Array:
    """Return a file's sound as float32 samples of -1 to 1 at the given rate, channels averaged.

    Python reads integer .wav files (PCM, 8 to 32 bits); soundfile, if installed, reads float .wav, FLAC, MP3, Ogg, Opus
    and AIFF. Raises MissingExtra for a file that needs it, and ModelError for a file that is not such a sound.
    """
    try:
        frames, own_rate = _pcm(path) if path.suffix.lower() == ".wav" else _by_soundfile(path)
    except (wave.Error, EOFError, RuntimeError) as error:  # RuntimeError: a chunk longer than the file
        head = path.read_bytes()[:12]
        if (head[:4], head[8:]) != (b"RIFF", b"WAVE"):
            raise ModelError(f"{path}: expected a .wav file: {error}") from error
        frames, own_rate = _by_soundfile(path)
    if own_rate not in _RATES:
        raise ModelError(f"{path}: expected {_RATES[0]} to {_RATES[-1]} samples a second, got {own_rate}")
    return resampled(frames.mean(1), own_rate, rate).astype(np.float32)


def _pcm(path: Path) -> tuple[Array, int]:
    """Return the samples [frames, channels] of an integer .wav file, and its rate."""
    with wave.open(str(path), "rb") as file:
        width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
        if width > _WIDEST:
            raise wave.Error(f"expected samples of 8 to {8 * _WIDEST} bits, got {8 * width}")
        content = file.readframes(file.getnframes())
    whole = len(content) - len(content) % (width * channels)
    return _integers(content[:whole], width).reshape(-1, channels), rate


def _by_soundfile(path: Path) -> tuple[Array, int]:
    """Return the samples [frames, channels] of a file that soundfile reads, and its rate."""
    try:
        import soundfile
    except (ModuleNotFoundError, OSError) as error:  # OSError: libsndfile is missing on this machine
        remedy = f"pip install 'litecl[audio]', or make a .wav file: `ffmpeg -i {path} -c:a pcm_s16le out.wav`"
        raise MissingExtra(f"{path}: such sounds need soundfile: {remedy}") from error
    try:
        with soundfile.SoundFile(path) as file:
            blocks = [np.zeros((0, file.channels), np.float32)]
            while True:  # block by block: the file's stated length may be wrong
                blocks.append(file.read(_BLOCK, np.float32, always_2d=True))
                if not len(blocks[-1]):
                    return np.concatenate(blocks), file.samplerate
    except soundfile.LibsndfileError as error:
        raise ModelError(f"{path}: expected a {path.suffix} file: {error.error_string}") from error


def _integers(content: bytes, width: int) -> Array:
    """Convert integer samples to float64 of -1 to 1. width: in bytes; 1 is unsigned, others little-endian signed."""
    raw = np.frombuffer(content, np.uint8).reshape(-1, width)
    if width == 1:
        return (raw[:, 0].astype(np.float64) - 128) / 128
    wide = np.zeros((len(raw), 4), np.uint8)
    wide[:, 4 - width :] = raw
    return wide.view("<i4")[:, 0] / 2.0**31


def resampled(samples: Array, old: int, new: int) -> Array:
    """Resample by Fourier series, dropping frequencies above half of the lower rate."""
    if old == new or not samples.size:
        return samples
    unit = old // math.gcd(old, new)  # shortest span that is a whole number of samples at both rates
    edge = unit * math.ceil(_EDGE_S * old / unit)
    padded = np.pad(samples, (edge, edge + -(len(samples) + 2 * edge) % old))  # whole seconds, so both sizes are whole
    count = len(padded) // old * new
    spectrum = np.fft.rfft(padded)[: count // 2 + 1]
    spectrum = np.pad(spectrum, (0, count // 2 + 1 - len(spectrum)))
    start = edge * new // old
    length = -(-len(samples) * new // old)
    return np.asarray(np.fft.irfft(spectrum, count) * (new / old))[start : start + length]


def as_input(sound: Array, detail: Mapping[str, Any], rate: int, source: str) -> Array:
    """Return samples in an input's shape and type: floats of -1 to 1, or int16.

    Cuts a longer sound, with a warning, and pads a shorter one with silence. Raises ModelError for other inputs.
    """
    shape, dtype, axis = open_shape(detail), np.dtype(detail["dtype"]), axis_of(detail, source)
    if shape[axis] > 0:
        sound = _fitted(sound, shape[axis], rate, source)
    values = sound if dtype.kind == "f" else np.clip(np.rint(sound * _INT16), -_INT16, _INT16 - 1)
    return values.astype(dtype).reshape([len(sound) if at == axis else 1 for at in range(len(shape))])


def axis_of(detail: Mapping[str, Any], source: str) -> int:
    """Return the dimension along which an input takes samples. Raises ModelError for other inputs."""
    shape, dtype = open_shape(detail), np.dtype(detail["dtype"])
    long = [axis for axis, size in enumerate(shape) if size not in (0, 1)]
    if len(long) != 1 or not (dtype.kind == "f" or dtype == np.int16):
        raise ModelError(
            f"{source}: expected an input of samples, floats or int16 along one dimension, got {detail['name']!r} "
            f"of {dtype}{[*shape]}; if it takes features of a sound, give --features a model that makes them, or "
            "--input a .npy file. TensorFlow Lite Micro's audio_preprocessor_int8.tflite makes the 40 int8 of "
            "microWakeWord's models (--hop-ms 10 or 20, as their makers say, and --stream) and of micro_speech (20)"
        )
    return long[0]


def _fitted(sound: Array, size: int, rate: int, source: str) -> Array:
    if len(sound) > size:
        taken = source, size / rate, len(sound) / rate
        logger().warning("%s: the model takes the first %.2f of %.2f s (litecl run --stream gives it all)", *taken)
    return np.pad(sound[:size], (0, max(0, size - len(sound))))


def open_shape(detail: Mapping[str, Any]) -> list[int]:
    """Return an input's shape, with -1 for dimensions that the model leaves open."""
    signature = [int(n) for n in detail.get("shape_signature", ())]
    return signature or [int(n) for n in detail["shape"]]


class Features:
    """A model that computes features of a window of samples, like TensorFlow Lite Micro's audio front end.

    Runs on windows hop_ms apart, from the start of the sound. Its states carry over from window to window; each object
    has its own.
    """

    def __init__(self, model: str, rate: int, hop_ms: float) -> None:
        self._interpreter = Interpreter(model)
        self._interpreter.allocate_tensors()
        (self._input,), (self._output,) = self._interpreter.get_input_details(), self._interpreter.get_output_details()
        self._rate, self._hop, self._width = rate, round(hop_ms * rate / 1000), int(np.prod(self._input["shape"]))
        if self._hop < 1:
            raise ModelError(f"--hop-ms: expected at least one sample of {rate} a second, got {hop_ms} ms")

    def of(self, sound: Array, detail: Mapping[str, Any], source: str) -> Array:
        """Return a sound's features in an input's shape. Cuts a longer sound, with a warning, and pads a shorter one
        with silence. Raises ModelError as ``count``.
        """
        count = self.count(detail)
        fitted = _fitted(sound, (count - 1) * self._hop + self._width, self._rate, source)
        return self.windows(fitted, count).reshape(detail["shape"])

    def count(self, detail: Mapping[str, Any]) -> int:
        """Return how many windows fill an input. Raises ModelError if no number does, or if their type differs."""
        shape, size = [int(n) for n in detail["shape"]], int(np.prod(self._output["shape"]))
        total = int(np.prod(shape))
        if self._output["dtype"] != detail["dtype"] or total % size:
            raise ModelError(
                f"--features: expected features of which some windows fill {detail['name']!r} of "
                f"{np.dtype(detail['dtype'])}{shape}, got {np.dtype(self._output['dtype'])}[{size}] a window"
            )
        return total // size

    def within(self, sound: Array) -> int:
        """Return how many windows end within a sound."""
        return max(0, 1 + (len(sound) - self._width) // self._hop)

    def windows(self, sound: Array, count: int) -> Array:
        """Return the features [count, features] of a sound's first windows, with silence past its end."""
        starts = range(0, count * self._hop, self._hop)
        return np.stack([self._window(sound[at : at + self._width]) for at in starts])

    def _window(self, sound: Array) -> Array:
        self._interpreter.set_tensor(self._input["index"], as_input(sound, self._input, self._rate, "--features"))
        self._interpreter.invoke()
        return self._interpreter.get_tensor(self._output["index"]).reshape(-1)
