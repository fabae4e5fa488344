"""AudioSpectrogram and Mfcc: spectra of sound, and coefficients of their mel-scaled logarithms.

Formulas: kernels/internal/spectrogram.cc, mfcc_mel_filterbank.cc and mfcc_dct.cc.
"""

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.schema import TensorType

_QUIETEST = 1e-12
_LARGEST_WINDOW = 1 << 24


@dataclass(frozen=True)
class AudioSpectrogramOptions:
    window_size: int = 0
    stride: int = 0
    magnitude_squared: bool = False


@dataclass(frozen=True)
class MfccOptions:
    upper_frequency_limit: int = 0
    lower_frequency_limit: int = 0
    filterbank_channel_count: int = 0
    dct_coefficient_count: int = 0


def _fft_length(window: int) -> int:
    return 1 << (window - 1).bit_length()


def _infer_spectrogram(options: AudioSpectrogramOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.types(x, types.FLOAT)
    require.rank(x, exactly=2)
    if not 2 <= options.window_size <= _LARGEST_WINDOW or options.stride < 1:
        raise ShapeError(f"window of {options.window_size} and stride of {options.stride} samples")
    samples, channels = x.static_shape
    frames = max(0, 1 + (samples - options.window_size) // options.stride)
    return [TensorSpec(x.type, (channels, frames, 1 + _fft_length(options.window_size) // 2))]


def _run_spectrogram(options: AudioSpectrogramOptions, inputs: Inputs) -> list[Array]:
    """Return the power, or magnitude, of every frame under a periodic Hann window: [channels, frames, frequencies]."""
    (x,) = require.arrays(inputs, 1)
    size, length = options.window_size, _fft_length(options.window_size)
    if len(x) < size:
        return [np.zeros((x.shape[1], 0, 1 + length // 2), np.float32)]
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(size) / size)
    frames = np.lib.stride_tricks.sliding_window_view(x.T, size, axis=1)[:, :: options.stride]
    spectrum = np.fft.rfft(frames.astype(np.float64) * window, length)
    power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32)
    return [power if options.magnitude_squared else np.sqrt(power)]


def _infer_mfcc(options: MfccOptions, inputs: Specs) -> list[TensorSpec]:
    x, rate = require.present(inputs, 2)
    require.types(x, types.FLOAT)
    require.types(rate, (TensorType.INT32,))
    require.rank(x, exactly=3)
    if rate.size != 1 or x.static_shape[2] < 2:
        raise ShapeError(f"expected spectra and one rate, got {list(x.static_shape)} and {rate.size} rates")
    if not 1 <= options.dct_coefficient_count <= options.filterbank_channel_count <= _LARGEST_WINDOW:
        raise ShapeError(f"{options.dct_coefficient_count} coefficients of {options.filterbank_channel_count} channels")
    if not 0 <= options.lower_frequency_limit < options.upper_frequency_limit:
        raise ShapeError(f"limits {options.lower_frequency_limit} and {options.upper_frequency_limit} Hz")
    return [TensorSpec(x.type, (*x.static_shape[:2], options.dct_coefficient_count))]


def _mel(frequency: Array | float) -> Array:
    return np.asarray(1127.0 * np.log1p(np.asarray(frequency, np.float64) / 700.0))


def filterbank(options: MfccOptions, bins: int, rate: int) -> Array:
    """Return mel-scale triangles: weights [bins, channels] of magnitudes. Raises ModelError for a rate of 0 or less."""
    if rate <= 0:
        raise ModelError(f"expected a positive sample rate, got {rate}")
    channels = options.filterbank_channel_count
    low, high = _mel(options.lower_frequency_limit), _mel(options.upper_frequency_limit)
    centres = low + (high - low) / (channels + 1) * (np.arange(channels + 1) + 1)
    step = 0.5 * rate / (bins - 1)
    first, last = int(1.5 + options.lower_frequency_limit / step), int(options.upper_frequency_limit / step)
    if last >= bins:
        raise ModelError(f"{options.upper_frequency_limit} Hz are beyond the end of the spectrum, {rate / 2} Hz")
    covered = np.arange(first, last + 1)
    mels = _mel(covered * step)
    band = np.minimum(np.searchsorted(centres[:channels], mels, side="left"), channels) - 1
    left = np.where(band >= 0, centres[np.maximum(band, 0)], low)
    weight = (centres[band + 1] - mels) / (centres[band + 1] - left)
    limits.temporary("a filter bank", (bins, channels + 2), 8)
    result = np.zeros((bins, channels + 2))
    np.add.at(result, (covered, band + 1), weight)
    np.add.at(result, (covered, band + 2), 1.0 - weight)
    return result[:, 1 : channels + 1]


def _run_mfcc(options: MfccOptions, inputs: Inputs) -> list[Array]:
    x, rate = require.arrays(inputs, 2)
    channels, count = options.filterbank_channel_count, options.dct_coefficient_count
    bands = np.sqrt(x.astype(np.float64)) @ filterbank(options, x.shape[2], int(rate.item()))
    limits.temporary("a cosine transform", (count, channels), 24)
    angles = np.arange(count)[:, None] * (np.pi / channels) * (np.arange(channels) + 0.5)
    cosines = np.sqrt(2.0 / channels) * np.cos(angles)
    return [(np.log(np.maximum(bands, _QUIETEST)) @ cosines.T).astype(np.float32)]


AUDIO_SPECTROGRAM = Op(
    "AudioSpectrogram", options=AudioSpectrogramOptions, infer=_infer_spectrogram, run=_run_spectrogram, custom=True
)
MFCC = Op("Mfcc", options=MfccOptions, infer=_infer_mfcc, run=_run_mfcc, custom=True)
