"""TensorFlow functions that compute with complex numbers: transforms, arithmetic, and what sound is taken through."""

from typing import Any

import numpy as np
import tensorflow as tf

from support.tf_functions import TfFunction

raw, signal = tf.raw_ops, tf.signal
_PAIR = ((None, 12), (None, 12))
_SOUND = ((2, 200),)
_VOLUMES = ((2, 3, 4, 6), (2, 3, 4, 6))


def _f(name: str, function: Any, shapes: Any = _PAIR, low: float = -2.0, high: float = 2.0) -> TfFunction:
    return TfFunction(name, function, shapes, low, high)


def _parts(z: Any) -> Any:
    return tf.math.real(z), tf.math.imag(z)


def _of(function: Any) -> Any:
    """Return a function of two real tensors, which are the parts of the complex one that ``function`` takes."""
    return lambda x, y: _parts(function(tf.complex(x, y)))


def _log_mel(x: Any) -> Any:
    spectra = tf.abs(signal.stft(x, 60, 30, 64))
    return tf.math.log(tf.tensordot(spectra, signal.linear_to_mel_weight_matrix(20, 33, 16000, 80.0, 7600.0), 1) + 1e-3)


def _cosine_transforms(x: Any) -> Any:
    return signal.dct(x, 3), signal.idct(x), signal.dct(x, 1), signal.idct(x, 4)


def _stepped(x: Any) -> Any:
    turned = tf.constant(0.5 + 1j, tf.complex64)
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * turned + 1), [0, tf.cast(x, tf.complex64)])[1]


SPECTRA = (
    _f("transform of complex numbers", _of(signal.fft)),
    _f("inverse transform of complex numbers", _of(signal.ifft)),
    _f("transform of real numbers", lambda x, y: _parts(signal.rfft(x))),
    _f("inverse transform to real numbers", lambda x, y: signal.irfft(tf.complex(x, y), [22])),
    _f("inverse transform to an odd number", lambda x, y: signal.irfft(tf.complex(x, y)[:, :8], [15])),
    _f("transform of a part", lambda x, y: _parts(raw.RFFT(input=x, fft_length=[5]))),
    _f("complex product", lambda x, y: _parts(tf.complex(x, y) * tf.math.conj(tf.complex(y, x + 1)))),
    _f("complex quotient", lambda x, y: _parts(tf.complex(x, y) / tf.complex(y, x + 9))),
    _f("complex sums", lambda x, y: _parts(tf.complex(x, y) - tf.complex(y, x) * 2 + tf.cast(x, tf.complex64))),
    _f("complex exponential", _of(tf.exp)),
    _f("complex logarithm", _of(tf.math.log)),
    _f("complex roots", lambda x, y: (*_parts(tf.sqrt(tf.complex(x, y))), *_parts(tf.sqrt(tf.cast(x, tf.complex64))))),
    _f("complex powers", lambda x, y: (*_parts(tf.complex(x, y) ** 3), *_parts(1 / tf.complex(x, y + 5)))),
    _f("angle", lambda x, y: (tf.math.angle(tf.complex(x, y)), tf.math.angle(tf.cast(x, tf.complex64)))),
    _f("magnitude", lambda x, y: (tf.abs(tf.complex(x, y)), tf.abs(tf.cast(x, tf.complex64)))),
    _f("complex comparison", lambda x, y: tf.equal(tf.complex(x, tf.abs(y)), tf.complex(x, y))),
    _f("complex choice", lambda x, y: _parts(tf.where(x > 0, tf.complex(x, y), tf.complex(y, x)))),
    _f("complex slices", lambda x, y: _parts(tf.concat([tf.complex(x, y), tf.complex(y, x)], 1)[:, ::-2])),
    _f("complex stack", lambda x, y: _parts(tf.stack([tf.complex(x, y), tf.cast(x, tf.complex64)], 1))),
    _f("complex transpose", _of(lambda z: tf.roll(tf.pad(tf.linalg.adjoint(z), [[1, 2], [0, 0]]), 2, 0))),
    _f("complex reduction", _of(lambda z: (tf.reduce_sum(z, 1), tf.reduce_mean(z, 1))[0])),
    _f("complex matrices", _of(lambda z: tf.matmul(z, z * 1j, adjoint_b=True)), ((4, 12), (4, 12))),
    _f("complex result", lambda x, y: (tf.complex(x, y) * tf.complex(y, x), signal.rfft(x[:, :8])), _PAIR),
    _f("complex loop", lambda x, y: _parts(_stepped(x))),
    _f("complex branch", lambda x, y: tf.cond(x[0, 0] > 0, lambda: tf.complex(x, y), lambda: tf.complex(y, x) * 1j)),
    _f("complex list", lambda x, y: _parts(_mapped(x)), ((3, 12), (3, 12))),
    _f(
        "transform of complex images", lambda x, y: _parts(signal.ifft2d(signal.fft2d(tf.complex(x, y)) * 2j)), _VOLUMES
    ),
    _f("transform of complex volumes", lambda x, y: _parts(signal.fft3d(tf.complex(x, y))), _VOLUMES),
    _f("transform of volumes", lambda x, y: signal.irfft3d(signal.rfft3d(x) * 1j, [3, 4, 6]), _VOLUMES),
    _f("transform of images of odd size", lambda x, y: signal.irfft2d(signal.rfft2d(x) * 2, [4, 6]), _VOLUMES),
    _f("transform of a length of factors", _of(signal.fft), ((1, 300), (1, 300))),
    _f(
        "real transforms of a length of factors",
        lambda x: signal.irfft(signal.rfft(x) * (1 + 1j), [1200]),
        ((2, 1200),),
    ),
    _f("transform of a length of two factors", _of(signal.ifft), ((None, None, 264), (None, None, 264))),
    _f("short-time spectra and back", lambda x: signal.inverse_stft(signal.stft(x, 20, 10, 30), 20, 10, 30), _SOUND),
    _f("cepstral coefficients", lambda x: signal.mfccs_from_log_mel_spectrograms(_log_mel(x))[..., :13], _SOUND),
    _f("cosine transforms", _cosine_transforms, _SOUND),
    _f("inverse short-time spectra of unknown length", lambda x: _resynthesised(x), ((1, None),)),
    _f("audio spectrogram", lambda x: raw.AudioSpectrogram(input=x, window_size=64, stride=32), ((256, 1),)),
    _f("mfcc", lambda x: raw.Mfcc(spectrogram=tf.abs(x), sample_rate=16000), ((1, 5, 129),)),
)


def _mapped(x: Any) -> Any:
    return tf.map_fn(lambda row: signal.fft(tf.cast(row, tf.complex64)), x, fn_output_signature=tf.complex64)


def _resynthesised(x: Any) -> Any:
    """Spectra of frames with new phases, as Griffin and Lim's algorithm makes them, of a sound that is long enough."""
    spectra = signal.stft(tf.tile(x, [1, 20]), 16, 8, 16)
    phases = tf.exp(tf.complex(np.float32(0), tf.math.angle(spectra)))
    return signal.inverse_stft(tf.cast(tf.abs(spectra), tf.complex64) * phases, 16, 8, 16)
