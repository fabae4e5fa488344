"""Damaged files: bytes, blocks and words of them changed at random."""

import struct

import numpy as np

EXTREMES = (0, 1, 2, 3, 5, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, -1, -2, -128, -(2**31))
_LONGEST_BLOCK = 64
_LETTERS = {1: "B", 2: "H", 4: "I", 8: "Q"}


def changed_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Give some bytes another value; or leave out, repeat or overwrite a block of them."""
    data = np.frombuffer(content, np.uint8).copy()
    kind = rng.integers(6)
    if kind > 2:
        data[rng.integers(0, data.size, rng.integers(1, 5))] = rng.integers(0, 256)
        return data.tobytes()
    start, other = (int(rng.integers(data.size)) for _ in range(2))
    block = data[start : start + int(rng.integers(1, _LONGEST_BLOCK))]
    if kind == 0:
        return bytes(content[:start] + content[start + block.size :])
    if kind == 1:
        return bytes(content[:other] + block.tobytes() + content[other:])
    block = block[: data.size - other].copy()
    data[other : other + block.size] = block
    return data.tobytes()


def changed_words(content: bytes, rng: np.random.Generator) -> bytes:
    """Give a word, which may be an offset, an extreme value."""
    word = 4 * int(rng.integers(0, max(1, len(content) // 4 - 1)))
    value = int(rng.choice([*EXTREMES, len(content), len(content) // 2]))
    return written(content, [(word, 4, value)])


def written(content: bytes, changes: list[tuple[int, int, int]]) -> bytes:
    """Return the content with values, modulo their sizes, at positions."""
    data = bytearray(content)
    for position, size, value in changes:
        if position + size <= len(data):
            struct.pack_into(f"<{_LETTERS[size]}", data, position, value % (1 << 8 * size))
    return bytes(data)
