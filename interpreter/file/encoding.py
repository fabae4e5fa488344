"""FlatBuffers, encoded by a schema through ``flatbuffers.Builder``."""

from typing import Any

import flatbuffers
import numpy as np
from flatbuffers import number_types

from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.flatbuffer import DTYPES, Record
from litecl.interpreter.file.tables import SCALARS, TFLITE, Field, Schema
from litecl.interpreter.graph import Array

_FLAGS = {
    "bool": number_types.BoolFlags,
    "byte": number_types.Int8Flags,
    "ubyte": number_types.Uint8Flags,
    "short": number_types.Int16Flags,
    "ushort": number_types.Uint16Flags,
    "int": number_types.Int32Flags,
    "uint": number_types.Uint32Flags,
    "long": number_types.Int64Flags,
    "ulong": number_types.Uint64Flags,
    "float": number_types.Float32Flags,
    "double": number_types.Float64Flags,
}


def encode(root: Record, identifier: bytes | None, size_hint_bytes: int = 1024, schema: Schema = TFLITE) -> memoryview:
    """Return the bytes of a file. Fields that a record omits keep their defaults. identifier: see ``decode``.

    Raises ModelError if the file would exceed the 2 GiB that a FlatBuffer can hold.
    """
    try:
        builder = _Builder(min(size_hint_bytes, flatbuffers.Builder.MAX_BUFFER_SIZE), schema)
        builder.Finish(_encode_table(builder, root), identifier)
    except flatbuffers.builder.BuilderSizeError:
        raise ModelError("the model exceeds the 2 GiB of a FlatBuffer") from None
    return memoryview(builder.Bytes)[builder.Head() :]


class _Builder(flatbuffers.Builder):  # type: ignore[misc]
    """A builder that writes vectors of the same bytes only once.

    LiteRT wants a zero point for every scale: mostly zeros, and as many as other layers have.
    """

    def __init__(self, size_bytes: int, schema: Schema) -> None:
        super().__init__(size_bytes)
        self.schema = schema
        self.written: dict[tuple[str, bytes], int] = {}


def _encode_table(builder: Any, record: Record) -> int:
    fields, unions = builder.schema.tables[record.table], builder.schema.unions
    given = [(field, record.fields[field.name]) for field in fields if record.fields.get(field.name) is not None]
    # A FlatBuffer is written back to front: the targets of a table's offsets come before the table.
    offsets = {field.slot: _encode_target(builder, field, value) for field, value in given if not _inline(field)}
    builder.StartObject(1 + max((field.slot for field in fields), default=-1))
    for field, value in given:
        if _inline(field):
            builder.PrependSlot(_FLAGS[field.type], field.slot, value, field.default)
        else:
            builder.PrependUOffsetTRelativeSlot(field.slot, offsets[field.slot], 0)
        if field.type in unions:
            builder.PrependUint8Slot(field.slot - 1, unions[field.type].index(value.table), 0)
    return int(builder.EndObject())


def _inline(field: Field) -> bool:
    return field.type in SCALARS and not field.vector


def _encode_target(builder: Any, field: Field, value: Any) -> int:
    if field.vector and field.type in SCALARS:
        return _encode_scalars(builder, np.asarray(value, DTYPES[field.type]), field.alignment)
    if field.vector:
        return _encode_offsets(builder, field, value)
    if field.type == "string":
        return int(builder.CreateString(value))
    return _encode_table(builder, value)


def _encode_scalars(builder: Any, values: Array, alignment: int) -> int:
    flat = np.ascontiguousarray(values).reshape(-1)
    key = (flat.dtype.str, b"" if alignment else flat.tobytes())
    if not alignment and key in builder.written:
        return int(builder.written[key])
    builder.StartVector(flat.itemsize, flat.size, max(flat.itemsize, alignment))
    head = builder.head - flat.nbytes
    builder.Bytes[head : builder.head] = flat.view(np.uint8).data
    builder.head = head
    offset = int(builder.EndVector())
    if not alignment:
        builder.written[key] = offset
    return offset


def _encode_offsets(builder: Any, field: Field, values: list[Any]) -> int:
    text = field.type == "string"
    targets = [builder.CreateString(v) if text else _encode_table(builder, v) for v in values]
    builder.StartVector(4, len(targets), 4)
    for target in reversed(targets):
        builder.PrependUOffsetTRelative(target)
    return int(builder.EndVector())
