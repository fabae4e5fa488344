"""Changes of a file's offsets, lengths, vtables and numbers, where a valid file has them."""

import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from litecl.interpreter.file.tables import SCALARS, TFLITE, Field
from support.damage import EXTREMES, written

_KEPT = 1024  # files, more than tools.fuzz starts from


@dataclass
class Layout:
    """Positions in a file. offsets: of 32-bit offsets; targets: what these point to. lengths: of vectors and texts.

    vtables: of their 16-bit entries. numbers: of scalars in tables, with their sizes. kinds: of the bytes that name a
    union's table.
    """

    offsets: list[int] = field(default_factory=lambda: [0])
    targets: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    vtables: list[int] = field(default_factory=list)
    numbers: list[tuple[int, int]] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)


@lru_cache(_KEPT)
def layout(content: bytes) -> Layout:
    """Return the positions in a model that can be read."""
    found = Layout()
    _table(content, "Model", _target(content, 0, found), found)
    return found


def _target(content: bytes, position: int, found: Layout) -> int:
    target = position + int(struct.unpack_from("<I", content, position)[0])
    found.targets.append(target)
    return target


def _table(content: bytes, name: str, position: int, found: Layout) -> None:
    vtable = position - int(struct.unpack_from("<i", content, position)[0])
    (size,) = struct.unpack_from("<H", content, vtable)
    found.offsets.append(position)
    found.vtables += range(vtable, vtable + size, 2)
    slots = struct.unpack_from(f"<{size // 2}H", content, vtable)[2:]
    for each in TFLITE.tables[name]:
        place = slots[each.slot] if each.slot < len(slots) else 0
        if place:
            _field(content, each, position + place, position + slots[each.slot - 1], found)


def _field(content: bytes, each: Field, position: int, kind: int, found: Layout) -> None:
    """kind: the position of the byte that names a union's table."""
    if each.type in SCALARS and not each.vector:
        found.numbers.append((position, struct.calcsize(SCALARS[each.type])))
        return
    found.offsets.append(position)
    target = _target(content, position, found)
    if each.vector:
        _vector(content, each, target, found)
    elif each.type == "string":
        found.lengths.append(target)
    elif each.type in TFLITE.unions:
        found.kinds.append(kind)
        if content[kind]:
            _table(content, TFLITE.unions[each.type][content[kind]], target, found)
    else:
        _table(content, each.type, target, found)


def _vector(content: bytes, each: Field, position: int, found: Layout) -> None:
    found.lengths.append(position)
    if each.type in SCALARS:
        return
    (count,) = struct.unpack_from("<I", content, position)
    for place in range(position + 4, position + 4 + 4 * count, 4):
        found.offsets.append(place)
        target = _target(content, place, found)
        if each.type == "string":
            found.lengths.append(target)
        else:
            _table(content, each.type, target, found)


def changed_layout(content: bytes, rng: np.random.Generator) -> bytes:
    """Change offsets, lengths, vtables, unions and numbers where they lie.

    An offset then mostly points to something else of the file: a table of another kind, a text, a number.
    """
    found = layout(content)
    return written(content, [_change(content, found, rng) for _ in range(int(rng.integers(1, 4)))])


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
