"""Sounds as values of inputs: samples at a model's rate, or features that another model makes of them."""

import logging
import math
import wave
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from litecl.interpreter import Interpreter
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array

_LOG = logging.getLogger("litecl")
_EDGE_S = 0.05  # of silence around a sound, so that its two ends do not meet where it is resampled
_INT16 = 32768
_RATES = range(1000, 1_000_001)  # samples a second that files may have


def read_wav(path: Path, rate: int) -> Array:
    """Return a .wav file of integers (PCM, 8 to 32 bits) as float32 samples of -1 to 1, channels averaged, at a rate.

    Raises ModelError for another file.
    """
    try:
        with wave.open(str(path), "rb") as file:
            width, channels, own_rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            content = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        remedy = f"`ffmpeg -i {path} -c:a pcm_s16le out.wav` makes one"
        raise ModelError(f"{path}: expected a .wav file of integers (PCM): {error}; {remedy}") from error
    if own_rate not in _RATES:
        raise ModelError(f"{path}: expected {_RATES[0]} to {_RATES[-1]} samples a second, got {own_rate}")
    frames = _integers(content[: len(content) // (width * channels) * width * channels], width)
    return resampled(frames.reshape(-1, channels).mean(1), own_rate, rate).astype(np.float32)


def _integers(content: bytes, width: int) -> Array:
    """Return samples of a width in bytes as float64 of -1 to 1: unsigned ones of 8 bits, else little-endian signed."""
    raw = np.frombuffer(content, np.uint8).reshape(-1, width)
    if width == 1:
        return (raw[:, 0].astype(np.float64) - 128) / 128
    wide = np.zeros((len(raw), 4), np.uint8)
    wide[:, 4 - width :] = raw
    return wide.view("<i4")[:, 0] / 2.0**31


def resampled(samples: Array, old: int, new: int) -> Array:
    """Return samples at another rate, without what lies above half of the lower one (by their Fourier series)."""
    if old == new or not samples.size:
        return samples
    unit = old // math.gcd(old, new)  # samples in which there are whole ones of the other rate
    edge = unit * math.ceil(_EDGE_S * old / unit)
    padded = np.pad(samples, (edge, edge + -(len(samples) + 2 * edge) % old))  # whole seconds: both sizes are whole
    count = len(padded) // old * new
    spectrum = np.fft.rfft(padded)[: count // 2 + 1]
    spectrum = np.pad(spectrum, (0, count // 2 + 1 - len(spectrum)))
    start = edge * new // old
    length = -(-len(samples) * new // old)
    return np.asarray(np.fft.irfft(spectrum, count) * (new / old))[start : start + length]


def as_input(sound: Array, detail: Mapping[str, Any], rate: int, source: str) -> Array:
    """Return samples in the shape and type of an input: floats of -1 to 1, or int16.

    A longer sound is cut, with a warning; a shorter one ends in silence. Raises ModelError for another kind of input.
    """
    shape, dtype = _open_shape(detail), np.dtype(detail["dtype"])
    long = [axis for axis, size in enumerate(shape) if size not in (0, 1)]
    if len(long) != 1 or not (dtype.kind == "f" or dtype == np.int16):
        raise ModelError(
            f"{source}: expected an input of samples, floats or int16 along one dimension, got {detail['name']!r} "
            f"of {dtype}{[*shape]}; for features of a sound give --features, or a .npy file"
        )
    (axis,) = long
    if shape[axis] > 0:
        sound = _fitted(sound, shape[axis], rate, source)
    values = sound if dtype.kind == "f" else np.clip(np.rint(sound * _INT16), -_INT16, _INT16 - 1)
    return values.astype(dtype).reshape([len(sound) if at == axis else 1 for at in range(len(shape))])


def _fitted(sound: Array, size: int, rate: int, source: str) -> Array:
    if len(sound) > size:
        _LOG.warning("%s: the model takes the first %.2f of %.2f s", source, size / rate, len(sound) / rate)
    return np.pad(sound[:size], (0, max(0, size - len(sound))))


def _open_shape(detail: Mapping[str, Any]) -> list[int]:
    signature = [int(n) for n in detail.get("shape_signature", ())]
    return signature or [int(n) for n in detail["shape"]]


class Features:
    """A model that makes features of a window of samples, as the audio front end of TensorFlow Lite Micro does.

    It is run on windows from the start on, hop_ms apart. The last window ends within the sound.
    """

    def __init__(self, model: str, rate: int, hop_ms: float) -> None:
        self._interpreter = Interpreter(model)
        self._interpreter.allocate_tensors()
        self._rate, self._hop = rate, round(hop_ms * rate / 1000)
        if self._hop < 1:
            raise ModelError(f"--hop-ms: expected at least one sample of {rate} a second, got {hop_ms} ms")

    def of(self, sound: Array, detail: Mapping[str, Any], source: str) -> Array:
        """Return the features of a sound in the shape of an input. A longer sound is cut, with a warning; a shorter one
        ends in silence. Raises ModelError for features of another type, or that do not fill the input.
        """
        (given,), (made,) = self._interpreter.get_input_details(), self._interpreter.get_output_details()
        shape, width = [int(n) for n in detail["shape"]], int(np.prod(given["shape"]))
        size, total = int(np.prod(made["shape"])), int(np.prod(shape))
        if made["dtype"] != detail["dtype"] or total % size:
            raise ModelError(
                f"--features: expected features of which some windows fill {detail['name']!r} of "
                f"{np.dtype(detail['dtype'])}{shape}, got {np.dtype(made['dtype'])}[{size}] a window"
            )
        windows = total // size
        fitted = _fitted(sound, (windows - 1) * self._hop + width, self._rate, source)
        starts = range(0, windows * self._hop, self._hop)
        return np.concatenate([self._window(fitted[at : at + width], given, made) for at in starts]).reshape(shape)

    def _window(self, sound: Array, given: Mapping[str, Any], made: Mapping[str, Any]) -> Array:
        self._interpreter.set_tensor(given["index"], as_input(sound, given, self._rate, "--features"))
        self._interpreter.invoke()
        return self._interpreter.get_tensor(made["index"]).reshape(-1)
