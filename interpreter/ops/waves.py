"""Sounds as 16-bit WAV files: litecl's own operators."""

import io
import wave

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array
from litecl.interpreter.kit import require
from litecl.interpreter.kit.own import operator, texts
from litecl.interpreter.op import NoOptions
from litecl.interpreter.schema import TensorType

_LARGEST = 1 << 15


@dataclass(frozen=True)
class WaveOptions:
    """desired_channels, desired_samples: the result's size, filled up with the last channel or zeros; -1 for all."""

    desired_channels: int = -1
    desired_samples: int = -1


def _decode(options: WaveOptions, content: Array) -> list[Array]:
    """Return samples [n, channels] from -1 to 1, and the rate."""
    try:
        with wave.open(io.BytesIO(content.item())) as file:
            rate, channels, width = file.getframerate(), file.getnchannels(), file.getsampwidth()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError, RuntimeError) as error:  # RuntimeError: a chunk longer than the file
        raise ModelError(f"expected a WAV file: {error}") from error
    if width != 2:
        raise ModelError(f"expected a WAV file of 16 bits, got one of {8 * width}")
    samples = np.frombuffer(data[: len(data) // (2 * channels) * 2 * channels], "<i2").reshape(-1, channels)
    samples = samples.astype(np.float32) / np.float32(_LARGEST)
    wanted = options.desired_channels
    require.elements((max(options.desired_samples, len(samples), 0), max(wanted, channels)))
    if wanted > channels:
        samples = np.concatenate([samples, np.repeat(samples[:, -1:], wanted - channels, 1)], 1)
    samples = samples[:, :wanted] if wanted > 0 else samples
    length = options.desired_samples
    if length > 0:
        samples = np.concatenate([samples, np.zeros((max(length - len(samples), 0), samples.shape[1]), np.float32)])
    return [np.ascontiguousarray(samples[:length] if length > 0 else samples), np.array(rate, np.int32)]


def _encode(options: NoOptions, audio: Array, rate: Array) -> Array:
    scaled = audio.astype(np.float64) * _LARGEST
    samples = np.clip(np.trunc(scaled + np.copysign(0.5, scaled)), -_LARGEST, _LARGEST - 1).astype("<i2")
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setnchannels(audio.shape[1])
        file.setsampwidth(2)
        file.setframerate(int(rate))
        file.writeframes(samples.tobytes())
    return texts([stream.getvalue()], ())


DECODE_WAV = operator(
    "litecl.DecodeWav", WaveOptions, _decode, lambda o, i: [(TensorType.FLOAT32, None), (TensorType.INT32, ())]
)
ENCODE_WAV = operator("litecl.EncodeWav", NoOptions, _encode, lambda o, i: [(TensorType.STRING, ())])
