"""Cases of AudioSpectrogram and Mfcc."""

import numpy as np

from litecl.cases import Case
from litecl.cases.values import Random, i32
from litecl.interpreter.ops.audio import AUDIO_SPECTROGRAM, MFCC, AudioSpectrogramOptions, MfccOptions

_random = Random(97)


def _spectrogram(name: str, samples: int, channels: int, *options: int) -> Case:
    how = AudioSpectrogramOptions(options[0], options[1], bool(options[2]))
    # LiteRT sums in another order.
    return Case(name, AUDIO_SPECTROGRAM, how, [_random.normal(samples, channels)], tolerance=1e-5)


def _mfcc(name: str, bins: int, rate: int, *options: int) -> Case:
    spectra = np.abs(_random.normal(2, 3, bins)).astype(np.float32)
    return Case(name, MFCC, MfccOptions(*options), [spectra, i32(rate)], frozenset({1}))


CASES = (
    _spectrogram("power of two", 64, 1, 16, 8, 1),
    _spectrogram("padded window", 50, 3, 13, 5, 1),
    _spectrogram("magnitude", 40, 2, 8, 3, 0),
    _spectrogram("too short", 5, 2, 8, 3, 0),
    _mfcc("usual", 257, 16000, 4000, 20, 40, 13),
    _mfcc("few bins", 65, 8000, 3500, 0, 20, 20),
    _mfcc("narrow", 129, 22050, 9000, 300, 12, 5),
)
