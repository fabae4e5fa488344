"""MurmurHash64A, by Austin Appleby (public domain): TensorFlow's oldest hash of texts."""

_FACTOR, _SEED, _MASK = 0xC6A4A7935BD1E995, 0xDECAFCAFFE, (1 << 64) - 1


def murmur64(data: bytes, seed: int = _SEED) -> int:
    """Return a 64-bit hash of all bytes."""
    result = seed ^ (len(data) * _FACTOR & _MASK)
    whole = len(data) - len(data) % 8
    for offset in range(0, whole, 8):
        word = int.from_bytes(data[offset : offset + 8], "little") * _FACTOR & _MASK
        word = (word ^ word >> 47) * _FACTOR & _MASK
        result = (result ^ word) * _FACTOR & _MASK
    if whole < len(data):
        result = (result ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    result = (result ^ result >> 47) * _FACTOR & _MASK
    return result ^ result >> 47
