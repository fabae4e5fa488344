"""FlatBuffers, decoded by the tables of ``tables``; ``encoding`` writes them.

Decoding trusts nothing: it checks every offset and length before it follows one, so that a malformed file ends in
ModelError and never in a crash or a huge allocation. Vectors of scalars are views of the file, not copies.
Layout: https://flatbuffers.dev/internals
"""

import struct
from typing import Any

import numpy as np

from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.tables import SCALARS, TFLITE, Field, Schema

# Parts of a file may be shared, so a small one can spell an enormous tree. Without sharing a tree stays below the
# file's size; each table counts with the least size of one.
_MAX_SHARING = 16
_TABLE_BYTES = 4

_STRUCTS = {type_: struct.Struct("<" + letter) for type_, letter in SCALARS.items()}
DTYPES = {
    type_: np.dtype(letter if letter == "?" else "<" + np.dtype(letter).str[1:]) for type_, letter in SCALARS.items()
}


class Record:
    """A table: its name in the schema, and its fields, which are attributes too.

    Scalars are numbers, strings are ``str``, vectors of scalars are arrays and other vectors lists; an absent field is
    its default or None. A union is the record that it holds.
    """

    __slots__ = ("__dict__", "table")

    def __init__(self, table: str, **fields: Any) -> None:
        self.table = table
        self.fields.update(fields)

    @property
    def fields(self) -> dict[str, Any]:
        """The values by name."""
        return self.__dict__

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.table} has no field {name!r}")


class _Malformed(Exception):
    """A fault in a file; ``path`` collects its position, innermost first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path: list[str] = []


def decode(data: memoryview, table: str, identifier: bytes | None, schema: Schema = TFLITE) -> Record:
    """Return the root table of a file. Raises ModelError, naming the field, if the file is malformed.

    identifier: the four bytes that mark the kind of file; None if it has none.
    """
    if len(data) < 8:
        raise ModelError(f"a file of {len(data)} bytes is not a FlatBuffer")
    if identifier is not None and bytes(data[4:8]) != identifier:
        raise ModelError(f"not a .tflite file: file identifier: expected {identifier!r}, got {bytes(data[4:8])!r}")
    decoder = _Decoder(data, schema)
    try:
        return decoder.table(table, decoder.offset(0))
    except _Malformed as error:
        where = ".".join(reversed(error.path)) or "root"
        raise ModelError(f"{where}: {error}") from None


class _Decoder:
    def __init__(self, data: memoryview, schema: Schema) -> None:
        self._data = data
        self._schema = schema
        self._size = len(data)
        self._vtables: dict[int, tuple[int, ...]] = {}
        self._left = _MAX_SHARING * len(data)

    def scalar(self, position: int, type_: str) -> Any:
        layout = _STRUCTS[type_]
        if position < 0 or position + layout.size > self._size:
            self._check(position, layout.size, type_)
        return layout.unpack_from(self._data, position)[0]

    def offset(self, position: int) -> int:
        """Return the position that an offset stored at ``position`` points to."""
        return position + int(self.scalar(position, "uint"))

    def table(self, name: str, position: int) -> Record:
        self._spend(_TABLE_BYTES)
        vtable = self._vtable(position)
        record = Record(name)
        fields = record.fields
        for field in self._schema.tables[name]:
            offset = vtable[field.slot] if field.slot < len(vtable) else 0
            if not offset:
                fields[field.name] = field.default
                continue
            try:
                fields[field.name] = self._field(field, vtable, position)
            except _Malformed as error:
                error.path.append(field.name)
                raise
        return record

    def _check(self, position: int, size: int, name: str) -> None:
        if position < 0 or position + size > self._size:
            raise _Malformed(
                f"{name} of {size} bytes at {position} is outside the file of {self._size} bytes; is it cut off?"
            )

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise _Malformed("tables or vectors overlap so that they add up to many times the size of the file")

    def _vtable(self, position: int) -> tuple[int, ...]:
        """Return the offsets of a table's fields from its start, by slot; 0 for an absent one."""
        start = position - int(self.scalar(position, "int"))
        offsets = self._vtables.get(start)
        if offsets is not None:
            return offsets
        size = int(self.scalar(start, "ushort"))
        if size < 4 or size % 2:
            raise _Malformed(f"vtable of {size} bytes")
        self._check(start, size, "vtable")
        offsets = struct.unpack_from(f"<{size // 2}H", self._data, start)[2:]
        self._vtables[start] = offsets
        return offsets

    def _field(self, field: Field, vtable: tuple[int, ...], table: int) -> Any:
        position = table + vtable[field.slot]
        if field.vector:
            return self._vector(field, self.offset(position))
        if field.type in SCALARS:
            return self.scalar(position, field.type)
        if field.type == "string":
            return self._string(self.offset(position))
        if field.type in self._schema.unions:
            kind = int(self.scalar(table + vtable[field.slot - 1], "ubyte")) if vtable[field.slot - 1] else 0
            return self._union(field.type, kind, self.offset(position))
        return self.table(field.type, self.offset(position))

    def _union(self, union: str, kind: int, position: int) -> Record | None:
        members = self._schema.unions[union]
        if kind >= len(members):
            raise _Malformed(f"{union} {kind} is not one of {len(members)} known ones")
        return self.table(members[kind], position) if kind else None

    def _vector(self, field: Field, position: int) -> Any:
        count = int(self.scalar(position, "uint"))
        start = position + 4
        if field.type in SCALARS:
            dtype = DTYPES[field.type]
            self._check(start, count * dtype.itemsize, f"vector of {count} elements")
            self._spend(count)
            return np.frombuffer(self._data, dtype, count, start) if count else np.zeros(0, dtype)
        self._check(start, count * 4, f"vector of {count} offsets")
        items = []
        for i in range(count):
            try:
                target = self.offset(start + 4 * i)
                items.append(self._string(target) if field.type == "string" else self.table(field.type, target))
            except _Malformed as error:
                error.path.append(str(i))
                raise
        return items

    def _string(self, position: int) -> str:
        length = int(self.scalar(position, "uint"))
        self._check(position + 4, length, "string")
        self._spend(length)
        return str(self._data[position + 4 : position + 4 + length], "utf-8", "replace")
