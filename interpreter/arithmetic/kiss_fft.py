"""The fixed-point Fourier transform of KISS FFT (https://github.com/mborgerding/kissfft), bit for bit.

Numbers have ``bits - 1`` fractional bits. Every stage first divides by its radix, so that nothing overflows and the
result is the transform divided by its length.
"""

from functools import cache

import numpy as np

from litecl.interpreter.graph import Array

Complex = tuple[Array, Array]
"""Real and imaginary parts, int64."""


def real_fft(x: Array, bits: int) -> Complex:
    """Return the first half of the spectrum, and its middle, of real numbers; their count is twice a power of two."""
    half = len(x) // 2
    real, imaginary = _fft((x[::2].astype(np.int64), x[1::2].astype(np.int64)), bits, -1)
    first = _divided((real[:1], imaginary[:1]), 2, bits)
    k = np.arange(1, half // 2 + 1)
    a = _divided((real[k], imaginary[k]), 2, bits)
    b = _divided((real[half - k], -imaginary[half - k]), 2, bits)
    total, rest = (a[0] + b[0], a[1] + b[1]), (a[0] - b[0], a[1] - b[1])
    turned = _product(rest, _roots(-np.pi * (k / half + 0.5), bits), bits)
    result = np.zeros((2, half + 1), np.int64)
    result[0, 0], result[0, half] = (first[0] + first[1])[0], (first[0] - first[1])[0]
    result[:, k] = (total[0] + turned[0]) >> 1, (total[1] + turned[1]) >> 1
    result[:, half - k] = (total[0] - turned[0]) >> 1, (turned[1] - total[1]) >> 1
    return result[0], result[1]


def inverse_real_fft(x: Complex, bits: int) -> Array:
    """Return the real numbers of a spectrum, given its first half and its middle."""
    half = len(x[0]) - 1
    ends = _wrapped(np.stack([x[0][:1] + x[0][half:], x[0][:1] - x[0][half:]]), bits)
    k = np.arange(1, half // 2 + 1)
    a = _divided((x[0][k], x[1][k]), 2, bits)
    b = _divided((x[0][half - k], -x[1][half - k]), 2, bits)
    total, rest = (a[0] + b[0], a[1] + b[1]), (a[0] - b[0], a[1] - b[1])
    turned = _product(rest, _roots(np.pi * (k / half + 0.5), bits), bits)
    packed = np.zeros((2, half), np.int64)
    packed[:, :1] = _divided((ends[0], ends[1]), 2, bits)
    packed[:, k] = total[0] + turned[0], total[1] + turned[1]
    packed[:, half - k] = total[0] - turned[0], turned[1] - total[1]
    packed = _wrapped(packed, bits)
    return _wrapped(np.stack(_fft((packed[0], packed[1]), bits, 1), axis=-1).reshape(-1), bits)


def _wrapped(x: Array, bits: int) -> Array:
    """Wrap to two's complement of ``bits`` bits, in which the library stores numbers."""
    top = 1 << (bits - 1)
    return np.asarray(((x + top) & ((1 << bits) - 1)) - top)


def _fft(x: Complex, bits: int, sign: int) -> Complex:
    """Transform by radix 4 while it divides the length, then 2: the recursion of kf_work, on whole arrays.

    sign: -1 forward, 1 back.
    """
    count = len(x[0])
    if count == 1:
        return x
    radix = 4 if count % 4 == 0 else 2
    parts = [_fft((x[0][i::radix], x[1][i::radix]), bits, sign) for i in range(radix)]
    parts = [_divided(part, radix, bits) for part in parts]
    twiddles = _twiddles(count, bits, sign)
    size = count // radix
    turned = [
        part if i == 0 else _product(part, (twiddles[0][: i * size : i], twiddles[1][: i * size : i]), bits)
        for i, part in enumerate(parts)
    ]
    return _butterfly4(turned, sign) if radix == 4 else _butterfly2(turned)


def _butterfly2(parts: list[Complex]) -> Complex:
    (ar, ai), (br, bi) = parts
    return np.concatenate([ar + br, ar - br]), np.concatenate([ai + bi, ai - bi])


def _butterfly4(parts: list[Complex], sign: int) -> Complex:
    (ar, ai), (br, bi), (cr, ci), (dr, di) = parts
    even, odd = (ar + cr, ai + ci), (ar - cr, ai - ci)
    total, rest = (br + dr, bi + di), (br - dr, bi - di)
    turned = (-sign * rest[1], sign * rest[0])
    real = [even[0] + total[0], odd[0] + turned[0], even[0] - total[0], odd[0] - turned[0]]
    imaginary = [even[1] + total[1], odd[1] + turned[1], even[1] - total[1], odd[1] - turned[1]]
    return np.concatenate(real), np.concatenate(imaginary)


@cache
def _twiddles(count: int, bits: int, sign: int) -> Complex:
    return _roots(sign * 2 * np.pi * np.arange(count) / count, bits)


def _roots(phases: Array, bits: int) -> Complex:
    largest = (1 << (bits - 1)) - 1
    real, imaginary = (np.floor(0.5 + largest * wave(phases)).astype(np.int64) for wave in (np.cos, np.sin))
    return real, imaginary


def _rounded(x: Array, bits: int) -> Array:
    return np.asarray((x + (1 << (bits - 2))) >> (bits - 1))


def _divided(x: Complex, divisor: int, bits: int) -> Complex:
    factor = ((1 << (bits - 1)) - 1) // divisor
    return _rounded(x[0] * factor, bits), _rounded(x[1] * factor, bits)


def _product(a: Complex, b: Complex, bits: int) -> Complex:
    return _rounded(a[0] * b[0] - a[1] * b[1], bits), _rounded(a[0] * b[1] + a[1] * b[0], bits)
