"""Changes in the bytes of a file: anywhere, and at the places that hold its structure together."""

import struct
from typing import Any

import numpy as np

from tools.mutation.layout import Layout, layout

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
    return _written(content, [(word, 4, value)])


def changed_layout(content: bytes, rng: np.random.Generator) -> bytes:
    """Change offsets, lengths, vtables, unions and numbers where they lie.

    An offset then mostly points to something else of the file: a table of another kind, a text, a number.
    """
    found = layout(content)
    return _written(content, [_change(content, found, rng) for _ in range(int(rng.integers(1, 4)))])


def _change(content: bytes, found: Layout, rng: np.random.Generator) -> tuple[int, int, int]:
    """Return a position, a size, and a value to write there."""
    kind = int(rng.integers(5))
    if kind == 0:
        position = _one(found.offsets, rng)
        return position, 4, int(_one(found.targets, rng)) + int(rng.integers(-1, 2)) - position
    if kind == 1 and found.lengths:
        position = _one(found.lengths, rng)
        (length,) = struct.unpack_from("<I", content, position)
        return position, 4, int(rng.choice([*EXTREMES, length + 1, length - 1, 2 * length, len(content) - position]))
    if kind == 2:
        return _one(found.vtables, rng), 2, int(rng.choice([*range(0, 40, 2), *EXTREMES]))
    if kind == 3 and found.kinds:
        return _one(found.kinds, rng), 1, int(rng.integers(0, 256))
    if not found.numbers:
        return 0, 4, int(rng.choice(EXTREMES))
    position, size = _one(found.numbers, rng)
    return position, size, int(rng.choice([*EXTREMES, int(rng.integers(0, 256))]))


def _one(places: list[Any], rng: np.random.Generator) -> Any:
    return places[int(rng.integers(len(places)))]


def _written(content: bytes, changes: list[tuple[int, int, int]]) -> bytes:
    """Return the content with values, modulo their sizes, at positions."""
    data = bytearray(content)
    for position, size, value in changes:
        if position + size <= len(data):
            struct.pack_into(f"<{_LETTERS[size]}", data, position, value % (1 << 8 * size))
    return bytes(data)
