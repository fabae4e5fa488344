"""SipHash-2-4 (https://www.aumasson.jp/siphash/siphash.pdf), a hash of bytes with a 128-bit key."""

_MASK = (1 << 64) - 1


def siphash(key: tuple[int, int], data: bytes) -> int:
    """Return the hash, as an unsigned 64-bit integer."""
    state = [
        key[0] ^ 0x736F6D6570736575,
        key[1] ^ 0x646F72616E646F6D,
        key[0] ^ 0x6C7967656E657261,
        key[1] ^ 0x7465646279746573,
    ]
    last = data[len(data) // 8 * 8 :] + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for at in range(0, len(data) // 8 * 8 + 8, 8):
        word = int.from_bytes((data[: len(data) // 8 * 8] + last)[at : at + 8], "little")
        state[3] ^= word
        _rounds(state, 2)
        state[0] ^= word
    state[2] ^= 0xFF
    _rounds(state, 4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _rounds(state: list[int], count: int) -> None:
    a, b, c, d = state
    for _ in range(count):
        a, c = (a + b) & _MASK, (c + d) & _MASK
        b, d = _turn(b, 13) ^ a, _turn(d, 16) ^ c
        a, c = (_turn(a, 32) + d) & _MASK, (c + b) & _MASK
        b, d = _turn(b, 17) ^ c, _turn(d, 21) ^ a
        c = _turn(c, 32)
    state[:] = [a, b, c, d]


def _turn(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK
