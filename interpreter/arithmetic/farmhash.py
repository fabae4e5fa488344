"""Fingerprint64 of FarmHash (farmhashna::Hash64, https://github.com/google/farmhash), which LSH_PROJECTION uses.

Every step is arithmetic modulo 2**64.
"""

_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_MASK = (1 << 64) - 1

Pair = tuple[int, int]


def fingerprint64(data: bytes) -> int:
    """Return the hash of some bytes, as an unsigned integer."""
    length = len(data)
    if length <= 16:
        return _up_to_16(data)
    mul = (_K2 + 2 * length) & _MASK
    if length <= 32:
        return _of_32(data, mul)[0]
    if length <= 64:
        return _up_to_64(data, mul)
    return _longer(data)


def _word(data: bytes, at: int, size: int = 8) -> int:
    at = at if at >= 0 else len(data) + at
    return int.from_bytes(data[at : at + size], "little")


def _turn(value: int, bits: int) -> int:
    value &= _MASK
    return (value >> bits) | (value << (64 - bits)) & _MASK


def _fold(value: int) -> int:
    value &= _MASK
    return value ^ (value >> 47)


def _mix(u: int, v: int, mul: int) -> int:
    a = _fold((u ^ v) * mul)
    return _fold((v ^ a) * mul) * mul & _MASK


def _up_to_16(data: bytes) -> int:
    length = len(data)
    mul = (_K2 + 2 * length) & _MASK
    if length >= 8:
        a, b = (_word(data, 0) + _K2) & _MASK, _word(data, -8)
        return _mix((_turn(b, 37) * mul + a) & _MASK, (_turn(a, 25) + b) * mul & _MASK, mul)
    if length >= 4:
        return _mix(length + (_word(data, 0, 4) << 3), _word(data, -4, 4), mul)
    if length == 0:
        return _K2
    y = data[0] + (data[length >> 1] << 8)
    z = length + (data[-1] << 2)
    return _fold(y * _K2 ^ z * _K0) * _K2 & _MASK


def _of_32(data: bytes, mul: int) -> tuple[int, int, int]:
    """Return the hash of the first and the last 16 bytes, and two of its intermediate results."""
    first = _K1 if len(data) <= 32 else _K2
    a, b = _word(data, 0) * first & _MASK, _word(data, 8)
    c, d = _word(data, -8) * mul & _MASK, _word(data, -16) * _K2 & _MASK
    y = (_turn(a + b, 43) + _turn(c, 30) + d) & _MASK
    return _mix(y, (a + _turn(b + _K2, 18) + c) & _MASK, mul), y, a


def _up_to_64(data: bytes, mul: int) -> int:
    z, y, a = _of_32(data, mul)
    e, f = _word(data, 16) * mul & _MASK, _word(data, 24)
    g, h = (y + _word(data, -32)) * mul & _MASK, (z + _word(data, -24)) * mul & _MASK
    return _mix((_turn(e + f, 43) + _turn(g, 30) + h) & _MASK, (e + _turn(f + a, 18) + g) & _MASK, mul)


def _weak(data: bytes, at: int, a: int, b: int) -> Pair:
    w, x, y, z = (_word(data, at + 8 * i) for i in range(4))
    a = (a + w) & _MASK
    b = _turn(b + a + z, 21)
    c = a
    a = (a + x + y) & _MASK
    return (a + z) & _MASK, (b + _turn(a, 44) + c) & _MASK


def _longer(data: bytes) -> int:
    """Return the hash of more than 64 bytes, by 56 bytes of state and blocks of 64 bytes."""
    x, y = 81 * _K2 + _word(data, 0), 81 * _K1 + 113
    z = _fold(y * _K2 + 113) * _K2
    v: Pair = (0, 0)
    w: Pair = (0, 0)
    last = (len(data) - 1) // 64 * 64
    for at in range(0, last, 64):
        x, y, z, v, w = _block(data, at, (x, y, z), v, w, (_K1, 1))
    mul = _K1 + ((z & 0xFF) << 1)
    w = (w[0] + ((len(data) - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x, y, z, v, w = _block(data, len(data) - 64, (x, y, z), v, w, (mul, 9))
    mul &= _MASK
    low = _mix(v[0], w[0], mul) + _fold(y) * _K0 + z
    return _mix(low & _MASK, (_mix(v[1], w[1], mul) + x) & _MASK, mul)


def _block(
    data: bytes, at: int, state: tuple[int, int, int], v: Pair, w: Pair, factors: Pair
) -> tuple[int, int, int, Pair, Pair]:
    x, y, z = state
    mul, times = factors
    x = _turn(x + y + v[0] + _word(data, at + 8), 37) * mul & _MASK
    y = _turn(y + v[1] + _word(data, at + 48), 42) * mul & _MASK
    x ^= w[1] * times & _MASK
    y = (y + v[0] * times + _word(data, at + 40)) & _MASK
    z = _turn(z + w[0], 33) * mul & _MASK
    v = _weak(data, at, v[1] * mul, x + w[0])
    w = _weak(data, at + 32, z + w[1], y + _word(data, at + 16))
    return z, y, x, v, w
