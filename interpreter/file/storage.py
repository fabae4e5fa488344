"""Elements of a tensor as stored in a ``.tflite`` buffer: packed small integers, strings, plain numbers."""

import math
from weakref import ref

import numpy as np

from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, Shape
from litecl.interpreter.schema import TensorType

# The bytes that living unpacked arrays were loaded from, by the arrays' addresses.
_LOADED: dict[int, tuple[ref[Array], TensorType, int, Array]] = {}

_BITS = {TensorType.INT4: 4, TensorType.UINT4: 4, TensorType.INT2: 2}


def stored_bytes(type_: TensorType, count: int) -> int | None:
    """Return the bytes that ``count`` elements take, None if that depends on their values (strings)."""
    if type_ == TensorType.STRING:
        return None
    return -(-count * _BITS[type_] // 8) if type_ in _BITS else count * type_.dtype.itemsize


def stored_elements(type_: TensorType, size_bytes: int) -> int:
    """Return how many whole elements fit into ``size_bytes``."""
    return size_bytes * 8 // _BITS[type_] if type_ in _BITS else size_bytes // type_.dtype.itemsize


def load(raw: Array, type_: TensorType, shape: Shape) -> Array:
    """Return the elements of a buffer of bytes: a view of it, or a new array if they are packed or strings.

    Raises ModelError if the bytes do not hold exactly ``shape``.
    """
    count = math.prod(shape)
    if type_ == TensorType.STRING:
        return _strings(raw, count).reshape(shape)
    expected = stored_bytes(type_, count)
    if raw.nbytes != expected:
        raise ModelError(f"buffer: expected {expected} bytes for {type_.name}{list(shape)}, got {raw.nbytes}")
    if type_ in _BITS:
        return _remembered(_unpacked(raw, _BITS[type_], type_.dtype)[:count], type_, raw).reshape(shape)
    return raw.view(type_.dtype).reshape(shape)


def store(values: Array, type_: TensorType) -> Array:
    """Return the bytes that hold the elements: those they were loaded from, a view of ``values`` if they are stored
    unchanged, or new ones.
    """
    if type_ == TensorType.STRING:
        return _string_buffer(values)
    if type_ in _BITS:
        loaded = _LOADED.get(_address(values))
        is_whole = loaded is not None and values.flags.c_contiguous and loaded[1:3] == (type_, values.size)
        return loaded[3] if loaded is not None and is_whole else _packed(values, _BITS[type_])
    if values.dtype != type_.dtype:
        raise ModelError(f"constant: expected {type_.dtype} for {type_.name}, got {values.dtype}")
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def _remembered(values: Array, type_: TensorType, raw: Array) -> Array:
    """Make unpacked elements read-only, and remember the bytes that they were loaded from."""
    values.flags.writeable = False
    address, owner = _address(values), values if values.base is None else values.base
    _LOADED[address] = ref(owner, lambda dead: _LOADED.pop(address, None)), type_, values.size, raw
    return values


def _address(values: Array) -> int:
    return int(values.__array_interface__["data"][0])


def _unpacked(raw: Array, bits: int, dtype: np.dtype[np.generic]) -> Array:
    """Unpack elements into one byte each, the first from the lowest bits; signed types extend their sign."""
    high, every = 8 - bits, np.arange(256, dtype=np.uint8)
    columns = [(every << (high - shift)).view(dtype) >> high for shift in range(0, 8, bits)]
    by_byte = np.stack(columns, axis=-1).view(f"u{8 // bits}").reshape(-1)
    return np.take(by_byte, raw).view(dtype)


def _packed(values: Array, bits: int) -> Array:
    per_byte = 8 // bits
    flat = values.reshape(-1).astype(np.uint8) & (2**bits - 1)
    columns = np.pad(flat, (0, -flat.size % per_byte)).reshape(-1, per_byte)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return np.asarray(np.bitwise_or.reduce(columns << shifts, axis=1), np.uint8)


def _strings(raw: Array, count: int) -> Array:
    """Return strings as bytes objects, from a buffer of a count, count + 1 offsets from its start, and characters."""
    if raw.nbytes < 4:
        raise ModelError(f"string buffer of {raw.nbytes} bytes has no count")
    stored = int(raw[:4].view("<i4")[0])
    header = 4 * (stored + 2)
    if stored != count or raw.nbytes < header:
        raise ModelError(f"string buffer of {raw.nbytes} bytes: expected {count} strings, got {stored}")
    offsets = raw[4:header].view("<i4")
    if offsets[0] < header or offsets[-1] > raw.nbytes or np.any(np.diff(offsets) < 0):
        raise ModelError(f"string buffer of {raw.nbytes} bytes: offsets out of order or out of range")
    text = raw.tobytes()
    strings = np.empty(count, np.object_)
    strings[:] = [text[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
    return strings


def _string_buffer(values: Array) -> Array:
    strings = [s.encode() if isinstance(s, str) else bytes(s) for s in values.reshape(-1).tolist()]
    ends = np.cumsum([4 * (len(strings) + 2), *map(len, strings)])
    header = np.concatenate([[len(strings)], ends]).astype("<i4")
    return np.frombuffer(header.tobytes() + b"".join(strings), np.uint8)
