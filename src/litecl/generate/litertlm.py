"""Reads, changes and writes ``.litertlm`` bundles: a header, a FlatBuffer that lists sections, and the sections.

Checks every offset and length before following it, as for ``.tflite`` files.
Layout: https://github.com/google-ai-edge/LiteRT-LM/blob/main/schema/core/litertlm_header_schema.fbs
"""

import struct
import zlib
from collections.abc import Mapping, Sequence

from flatbuffers.table import Table

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.encoding import encode
from litecl.interpreter.file.flatbuffer import Record, decode
from litecl.interpreter.file.tables import schema

MAGIC = b"LITERTLM"

_VERSION = 1  # major version: others have another layout
_FIXED = struct.Struct("<8sIIIIQ")  # magic, version, padding, end of the section list
_BLOCK = 16 << 10  # where sections begin, so that runtimes can map them
_TYPE = "tf_lite_"  # how types of models begin
_MOST_UNPACKED = 1 << 28  # bytes of a tokenizer
_SCHEMA = schema(
    """
    LiteRTLMMetaData: system_metadata:SystemMetadata section_metadata:SectionMetadata
    SystemMetadata: entries:[KeyValuePair]
    SectionMetadata: objects:[SectionObject]
    SectionObject: items:[KeyValuePair] begin_offset:ulong end_offset:ulong data_type:ubyte
    KeyValuePair: key:string value:VData
    UInt8: value:ubyte
    Int8: value:byte
    UInt16: value:ushort
    Int16: value:short
    UInt32: value:uint
    Int32: value:int
    Float32: value:float
    Bool: value:bool
    StringValue: value:string
    UInt64: value:ulong
    Int64: value:long
    Double: value:double
    """,
    "VData: NONE UInt8 Int8 UInt16 Int16 UInt32 Int32 Float32 Bool StringValue UInt64 Int64 Double",
)
_KINDS = (
    *("none", "binary data", "deprecated", "model", "SentencePiece tokenizer", "metadata", "JSON tokenizer", "weights"),
    *("embedding metadata", "executor metadata"),
)


@dataclass(frozen=True)
class Section:
    """A part of a bundle. kind: one of ``_KINDS``. type: of the model that it is or belongs to, such as "embedder"."""

    kind: str
    type: str
    content: memoryview


def sections(content: memoryview) -> list[Section]:
    """Return a bundle's sections. Raises ModelError if it is damaged or of another version."""
    if len(content) < _FIXED.size:
        raise ModelError(f"a bundle of {len(content)} bytes: expected a header of {_FIXED.size}")
    magic, major, minor, patch, _, end = _FIXED.unpack_from(content)
    if magic != MAGIC:
        raise ModelError(f"expected a bundle that begins with {MAGIC!r}, got {magic!r}")
    if major != _VERSION:
        raise ModelError(f"a bundle of version {major}.{minor}.{patch}: expected {_VERSION}.x, which litecl reads")
    if not _FIXED.size <= end <= len(content):
        raise _outside("the list of sections ends at", end, content)
    root = decode(content[_FIXED.size : end], "LiteRTLMMetaData", None, _SCHEMA)
    listed = root.section_metadata
    records: Sequence[Record] = [] if listed is None else listed.objects or []
    return [_section(index, record, content, end) for index, record in enumerate(records)]


def replaced(content: memoryview, contents: Mapping[int, bytes]) -> bytes:
    """Return a bundle with other contents for some of its sections. contents: by the sections' numbers.

    Everything else stays as it is, in the same order: the list of sections and what it says of each, but for their
    places. Raises ModelError as ``sections`` does.
    """
    kept = [contents.get(index, section.content) for index, section in enumerate(sections(content))]
    (end,) = struct.unpack_from("<Q", content, _FIXED.size - 8)
    bundle = bytearray(content[:end])
    offsets = [_offsets(bundle, index) for index in range(len(kept))]
    order = sorted(range(len(kept)), key=lambda index: struct.unpack_from("<Q", content, offsets[index][0]))
    for index in order:
        bundle += bytes(-len(bundle) % _BLOCK)
        for at, value in zip(offsets[index], (len(bundle), len(bundle) + len(kept[index])), strict=True):
            struct.pack_into("<Q", bundle, at, value)
        bundle += kept[index]
    return bytes(bundle)


def written(parts: Sequence[Section]) -> bytes:
    """Return a bundle of a few sections."""
    bundle, objects = bytearray(_BLOCK), list[Record]()  # which begins with the header
    for part in parts:
        bundle += bytes(-len(bundle) % _BLOCK)
        type_ = Record("StringValue", value=f"{_TYPE}{part.type}")
        items = [Record("KeyValuePair", key="model_type", value=type_)] if part.type else []
        place = {"begin_offset": len(bundle), "end_offset": len(bundle) + len(part.content)}
        objects.append(Record("SectionObject", items=items, data_type=_KINDS.index(part.kind), **place))
        bundle += part.content
    root = Record("LiteRTLMMetaData", section_metadata=Record("SectionMetadata", objects=objects))
    listed = encode(root, None, schema=_SCHEMA)
    end = _FIXED.size + len(listed)
    bundle[:end] = _FIXED.pack(MAGIC, _VERSION, 0, 0, 0, end) + listed
    return bytes(bundle)


def _offsets(content: bytearray, index: int) -> tuple[int, int]:
    """Return where a section's record has its first and its last offset, in a list of sections that has been read."""
    header = bytearray(content[_FIXED.size :])
    root = Table(header, struct.unpack_from("<I", header)[0])
    listed = Table(header, root.Indirect(root.Pos + root.Offset(6)))
    record = Table(header, listed.Indirect(listed.Vector(listed.Offset(4)) + 4 * index))
    begin, end = (record.Offset(slot) for slot in (6, 8))
    if not begin or not end:  # a default of 0, which only an empty list of sections could have
        raise ModelError(f"section {index}: expected offsets in its record, got none")
    return _FIXED.size + record.Pos + begin, _FIXED.size + record.Pos + end


def unpacked(content: memoryview) -> bytes:
    """Unpack a JSON tokenizer: its size in 8 bytes, then zlib data. Raises ModelError if it is damaged."""
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > _MOST_UNPACKED:
        raise ModelError(f"the tokenizer has {size} bytes unpacked: expected at most {_MOST_UNPACKED}")
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(content[8:], size + 1)
    except zlib.error as error:
        raise ModelError(f"the tokenizer cannot be unpacked: {error}") from error
    if len(text) != size or not unpacking.eof:
        got = "more" if len(text) > size else f"{len(text)}, cut short"
        raise ModelError(f"the tokenizer: expected {size} bytes unpacked, got {got}")
    return text


def packed(tokenizer: bytes) -> bytes:
    """Pack a JSON tokenizer; see ``unpacked``."""
    return len(tokenizer).to_bytes(8, "little") + zlib.compress(tokenizer)


def _section(index: int, record: Record, content: memoryview, header_end: int) -> Section:
    begin, end = record.begin_offset, record.end_offset
    items = {pair.key: pair.value for pair in record.items or [] if pair.key is not None}
    value = items.get("model_type")
    type_ = value.value or "" if value is not None and value.table == "StringValue" else ""
    kind = _KINDS[record.data_type] if record.data_type < len(_KINDS) else f"kind {record.data_type}"
    type_ = type_.lower().removeprefix(_TYPE)
    if not header_end <= begin <= end <= len(content):
        named = f"{kind} {type_!r}" if type_ else kind
        raise _outside(f"section {index} ({named}): bytes {begin} to", end, content)
    return Section(kind, type_, content[begin:end])


def _outside(where: str, end: int, content: memoryview) -> ModelError:
    why = ": it is cut short, as by a download that broke off, or damaged" if end > len(content) else ""
    return ModelError(f"{where} {end}, in a bundle of {len(content)} bytes{why}")
