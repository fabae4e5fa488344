"""Decodes the protocol buffers wire format, as far as bundle metadata needs it.

https://protobuf.dev/programming-guides/encoding. Checks every length before following it.
"""

import struct
from collections.abc import Iterator
from typing import TypeVar

from litecl.interpreter.errors import ModelError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_VARINT = 10  # bytes

Value = int | bytes
_Kind = TypeVar("_Kind", int, bytes)


class Message:
    """A message's undecoded fields by number. Raises ModelError for invalid bytes."""

    def __init__(self, content: bytes) -> None:
        self._fields: dict[int, list[Value]] = {}
        for number, value in _fields(content):
            self._fields.setdefault(number, []).append(value)

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def messages(self, number: int) -> "list[Message]":
        """Return the messages in a field."""
        return [Message(value) for value in self._of(number, bytes)]

    def message(self, number: int) -> "Message":
        """Return the last message in a field, an empty one if there is none."""
        return (self.messages(number) or [Message(b"")])[-1]

    def text(self, number: int) -> str:
        """Return the text in a field, empty if there is none."""
        values = self._of(number, bytes)
        return values[-1].decode("utf-8", "replace") if values else ""

    def integer(self, number: int) -> int:
        """Return the int32 in a field, 0 if there is none."""
        values = self._of(number, int)
        return _signed(values[-1]) if values else 0

    def integers(self, number: int) -> tuple[int, ...]:
        """Return the int32s in a repeated field, packed or not."""
        values: list[int] = []
        for value in self._fields.get(number, []):
            values += [value] if isinstance(value, int) else _packed(value)
        return tuple(map(_signed, values))

    def number(self, number: int) -> float:
        """Return the float in a field, 0 if there is none."""
        values = self._of(number, bytes)
        if values and len(values[-1]) != 4:
            raise ModelError(f"field {number}: expected a float, got {len(values[-1])} bytes")
        return float(struct.unpack("<f", values[-1])[0]) if values else 0.0

    def _of(self, number: int, kind: type[_Kind]) -> list[_Kind]:
        """Return a field's values. Raises ModelError for a value of another kind."""
        values = self._fields.get(number, [])
        kept = [value for value in values if isinstance(value, kind)]
        if len(kept) != len(values):
            raise ModelError(f"field {number}: expected {kind.__name__}, got another kind of value")
        return kept


def _fields(content: bytes) -> Iterator[tuple[int, Value]]:
    position = 0
    while position < len(content):
        key, position = _varint(content, position)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, position = _varint(content, position)
            yield number, value
            continue
        if kind == _BYTES:
            size, position = _varint(content, position)
        elif kind in (_FIXED32, _FIXED64):
            size = 4 if kind == _FIXED32 else 8
        else:
            raise ModelError(f"field {number}: wire type {kind} is not known")
        if position + size > len(content):
            raise ModelError(f"field {number}: {size} bytes at {position} reach past the end of {len(content)} bytes")
        yield number, content[position : position + size]
        position += size


def _varint(content: bytes, position: int) -> tuple[int, int]:
    value = 0
    for i in range(_MOST_VARINT):
        if position + i >= len(content):
            break
        byte = content[position + i]
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, position + i + 1
    raise ModelError(f"a number at {position} does not end")


def _packed(content: bytes) -> list[int]:
    values, position = [], 0
    while position < len(content):
        value, position = _varint(content, position)
        values.append(value)
    return values


def _signed(value: int) -> int:
    return (value & 0xFFFFFFFF) - ((value & 0x80000000) << 1)
