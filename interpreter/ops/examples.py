"""ParseExample, one of litecl's own operators: reads features from records of TensorFlow's ``Example``.

Protocol buffers: https://protobuf.dev/programming-guides/encoding.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit.own import Result, operator, sparse, texts
from litecl.interpreter.schema import TensorType

_INT64 = TensorType.INT64
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_KINDS = {1: "O", 2: "f", 3: "i"}  # BytesList, FloatList, Int64List

_Features = Mapping[bytes, tuple[str, list[Any]]]


@dataclass(frozen=True)
class ExampleOptions:
    """dense_ranks, dense_dims: each dense feature's rank, and all their dimensions one after the other; -1 is open.

    sparse_types, ragged_value_types, ragged_split_types: tensor types as numbers.
    """

    sparse_types: tuple[int, ...] = ()
    ragged_value_types: tuple[int, ...] = ()
    ragged_split_types: tuple[int, ...] = ()
    dense_ranks: tuple[int, ...] = ()
    dense_dims: tuple[int, ...] = ()

    def shapes(self) -> Iterator[tuple[int, ...]]:
        """Yield the shape of each dense feature."""
        start = 0
        for rank in self.dense_ranks:
            yield self.dense_dims[start : start + rank]
            start += rank


def _varint(data: memoryview, offset: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[offset]
        value |= (byte & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 0x80:
            return value, offset


def _fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a message by number, as bytes or an integer."""
    offset = 0
    while offset < len(data):
        tag, offset = _varint(data, offset)
        kind = tag & 7
        if kind == _VARINT:
            value, offset = _varint(data, offset)
            yield tag >> 3, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind)
        if kind == _BYTES:
            size, offset = _varint(data, offset)
        if size is None or offset + size > len(data):
            raise ValueError("a field ends beyond its message")
        yield tag >> 3, data[offset : offset + size]
        offset += size


def _values(number: int, data: memoryview) -> Iterator[Any]:
    """Yield the elements of a list of bytes, floats or integers, packed or not."""
    for _, value in _fields(data):
        if number == 1:
            yield bytes(value)
        elif number == 2:
            yield from struct.unpack(f"<{len(value) // 4}f", value)
        elif isinstance(value, int):
            yield _signed(value)
        else:
            offset = 0
            while offset < len(value):
                element, offset = _varint(value, offset)
                yield _signed(element)


def _signed(value: int) -> int:
    return ((value & (1 << 64) - 1) ^ 1 << 63) - (1 << 63)


def _features(data: bytes) -> _Features:
    """Return the features of an Example by name, each with its kind and its elements."""
    by_name: dict[bytes, tuple[str, list[Any]]] = {}
    try:
        for _, features in _fields(memoryview(data)):
            for _, entry in _fields(features):
                parts = dict(_fields(entry))
                for number, elements in _fields(parts.get(2, memoryview(b""))):
                    by_name[bytes(parts.get(1, b""))] = (_KINDS[number], list(_values(number, elements)))
    except (ValueError, IndexError, KeyError, TypeError, struct.error) as error:
        raise ModelError(f"expected an Example, got other bytes: {error}") from error
    return by_name


def _of(features: _Features, key: bytes, type_: TensorType) -> list[Any] | None:
    """Return a feature's elements, None if there are none. Raises ModelError if they have another type."""
    kind, elements = features.get(key, ("", []))
    if elements and kind != type_.dtype.kind:
        raise ModelError(
            f"feature {key.decode('utf-8', 'replace')}: expected {type_.name}, got elements of another type"
        )
    return elements or None


def _array(elements: Sequence[Any], type_: TensorType) -> Array:
    return texts(elements) if type_ == TensorType.STRING else np.array(elements, type_.dtype)


def _sparse(rows: Sequence[_Features], key: bytes, type_: TensorType) -> tuple[Array, Array, Array]:
    lists = [_of(row, key, type_) or [] for row in rows]
    indices, elements, shape = sparse(lists)
    return indices, _array(elements, type_), shape


def _dense(rows: Sequence[_Features], key: bytes, default: Array, shape: tuple[int, ...]) -> Array:
    """Return a feature [rows, *shape]; an open first dimension takes the longest one's size, others are padded."""
    type_ = TensorType.of(default.dtype)
    lists = [_of(row, key, type_) for row in rows]
    inner = int(np.prod(shape[1:])) if shape else 1
    if shape[:1] == (-1,):
        longest = max((len(elements) for elements in lists if elements), default=0) // max(inner, 1)
        pad, shape = default.reshape(-1)[0], (longest, *shape[1:])
        filled = [[*(e or []), *[pad] * (longest * inner - len(e or []))] for e in lists]
    else:
        filled = [default.reshape(-1).tolist() if elements is None else elements for elements in lists]
    size = int(np.prod(shape))
    for elements in filled:
        if len(elements) != size:
            name = key.decode("utf-8", "replace")
            raise ModelError(f"feature {name}: expected {size} elements, as {list(shape)} has, got {len(elements)}")
    return _array([element for elements in filled for element in elements], type_).reshape(len(rows), *shape)


def _run(options: ExampleOptions, *operands: Array) -> list[Array]:
    """Return ParseExampleV2's results: sparse indices, values and shapes, dense values, ragged values and splits."""
    records, _, sparse_keys, dense_keys, ragged_keys, *defaults = operands
    rows = [_features(record) for record in records.reshape(-1)]
    alone = records.ndim == 0
    sparse = [
        _sparse(rows, key, TensorType(type_)) for key, type_ in zip(sparse_keys, options.sparse_types, strict=True)
    ]
    dense = [_dense(rows, *given) for given in zip(dense_keys, defaults, options.shapes(), strict=True)]
    ragged, splits = [], []
    kinds = zip(ragged_keys, options.ragged_value_types, options.ragged_split_types, strict=True)
    for key, type_, split in kinds:
        lists = [_of(row, key, TensorType(type_)) or [] for row in rows]
        ragged.append(_array([element for elements in lists for element in elements], TensorType(type_)))
        ends = np.cumsum([0, *map(len, lists)]).astype(TensorType(split).dtype)
        splits.append(ends[:0] if alone else ends)
    cut = slice(1, None) if alone else slice(None)
    indices, shapes = [s[0][:, cut] for s in sparse], [s[2][cut] for s in sparse]
    dense = [x[0] if alone else x for x in dense]
    return [*indices, *(s[1] for s in sparse), *shapes, *(np.asarray(x) for x in dense), *ragged, *splits]


def _results(options: ExampleOptions, inputs: list[TensorSpec]) -> list[Result]:
    count = len(options.sparse_types)
    batch, alone = inputs[0].static_shape, not inputs[0].static_shape
    dense = [(None if -1 in shape else (*batch, *shape)) for shape in options.shapes()]
    return [
        *((_INT64, None) for _ in range(count)),
        *((TensorType(type_), None) for type_ in options.sparse_types),
        *((_INT64, (1 if alone else 2,)) for _ in range(count)),
        *((spec.type, shape) for spec, shape in zip(inputs[5:], dense, strict=True)),
        *((TensorType(type_), None) for type_ in options.ragged_value_types),
        *((TensorType(type_), None) for type_ in options.ragged_split_types),
    ]


PARSE_EXAMPLE = operator("litecl.ParseExample", ExampleOptions, _run, _results)
