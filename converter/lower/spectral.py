"""Spectra of real signals, and parts of complex numbers."""

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.expression import Expression
from litecl.interpreter.ops import spectral
from litecl.interpreter.ops.audio import AUDIO_SPECTROGRAM, MFCC, AudioSpectrogramOptions, MfccOptions


def _rfft(b: Builder) -> Value:
    """Return the spectrum of every row, by RFFT2D on images of one row; the length is a power of two."""
    length = int(b.known(1, "length").reshape(()))
    image = Expression(b, b.node.input(0)).expand(-2)
    *batch, _ = b.shape(b.node.input(0))
    spectrum = b.op(spectral.RFFT2D, [image.value, b.const([1, length], np.int32)], shape=(*batch, 1, length // 2 + 1))
    target = (*batch, length // 2 + 1)
    if target.count(None) <= 1:
        return b.reshape(spectrum, [-1 if d is None else d for d in target], target)
    return b.squeeze(spectrum, len(target) - 1)


def _rfft_2d(b: Builder) -> Value:
    return b.op(spectral.RFFT2D, [b.node.input(0), b.int32(b.node.input(1))])


def _spectrogram(b: Builder) -> Value:
    attrs = b.node.attrs
    options = AudioSpectrogramOptions(attrs["window_size"], attrs["stride"], bool(attrs["magnitude_squared"]))
    return b.op(AUDIO_SPECTROGRAM, b.node.inputs, options)


def _mfcc(b: Builder) -> Value:
    """Lower to TFLite's operator, whose limits are integers."""
    limits = {name: b.node.attrs[name] for name in ("upper_frequency_limit", "lower_frequency_limit")}
    counts = {name: b.node.attrs[name] for name in ("filterbank_channel_count", "dct_coefficient_count")}
    if any(limit != int(limit) for limit in limits.values()):
        raise b.error(f"its frequency limits are {list(limits.values())}, and TFLite takes whole numbers of Hz")
    options = MfccOptions(**{name: int(n) for name, n in (limits | counts).items()})
    return b.op(MFCC, [b.node.input(0), b.int32(b.node.input(1))], options)


LOWERINGS: dict[str, Lowering] = {
    "RFFT": _rfft,
    "RFFT2D": _rfft_2d,
    "AudioSpectrogram": _spectrogram,
    "Mfcc": _mfcc,
    "Real": lambda b: b.op(spectral.REAL, b.node.inputs),
    "Imag": lambda b: b.op(spectral.IMAG, b.node.inputs),
    "ComplexAbs": lambda b: b.op(spectral.COMPLEX_ABS, b.node.inputs),
}
