"""Models with TFLite Metadata and associated files, as MediaPipe's metadata writers make them."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import flatbuffers
import numpy as np

from litecl.interpreter.file.writer import write
from litecl.interpreter.graph import Model

_NORMALIZATION, _AUDIO = 1, 4  # of ProcessUnitOptions, of ContentProperties


@dataclass(frozen=True)
class Said:
    """What a file says of an input. None: it does not say it."""

    mean: Sequence[float] | None = None
    std: Sequence[float] | None = None
    rate: int | None = None


def metadata(*inputs: Said) -> bytes:
    """Return the buffer of a model's first subgraph. Slots are those of metadata_schema.fbs."""
    b = flatbuffers.Builder(256)
    tensors = _tables(b, [_tensor(b, each) for each in inputs])
    graph = _table(b, {2: tensors})
    b.Finish(_table(b, {3: _tables(b, [graph])}), b"M001")
    return bytes(b.Output())


def described(model: Model, *inputs: Said, files: Mapping[str, str] | None = None) -> bytes:
    """Return a file of a model with metadata, and with files appended."""
    content = write(replace(model, metadata={"TFLITE_METADATA": metadata(*inputs)}))
    return appended(content, files) if files else content


def appended(content: bytes, files: Mapping[str, str]) -> bytes:
    """Return a file with others behind it."""
    file = io.BytesIO(content)
    with zipfile.ZipFile(file, "a") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return file.getvalue()


def _tensor(b: flatbuffers.Builder, said: Said) -> int:
    slots: dict[int, int] = {}
    if said.rate is not None:
        slots[3] = _union(b, _AUDIO, _scalar(b, said.rate))
    if said.mean is not None or said.std is not None:
        given = {slot: _floats(b, each) for slot, each in enumerate((said.mean, said.std)) if each is not None}
        slots[4] = _tables(b, [_union(b, _NORMALIZATION, _table(b, given))])
    return _table(b, slots)


def _scalar(b: flatbuffers.Builder, value: int) -> int:
    b.StartObject(2)
    b.PrependUint32Slot(0, value, 0)
    return int(b.EndObject())


def _union(b: flatbuffers.Builder, kind: int, of: int) -> int:
    b.StartObject(2)
    b.PrependUint8Slot(0, kind, 0)
    b.PrependUOffsetTRelativeSlot(1, of, 0)
    return int(b.EndObject())


def _floats(b: flatbuffers.Builder, values: Sequence[float]) -> int:
    return int(b.CreateNumpyVector(np.float32(values)))


def _tables(b: flatbuffers.Builder, tables: Sequence[int]) -> int:
    b.StartVector(4, len(tables), 4)
    for each in reversed(tables):
        b.PrependUOffsetTRelative(each)
    return int(b.EndVector())


def _table(b: flatbuffers.Builder, slots: Mapping[int, int]) -> int:
    b.StartObject(max(slots, default=-1) + 1)
    for slot, of in slots.items():
        b.PrependUOffsetTRelativeSlot(slot, of, 0)
    return int(b.EndObject())
