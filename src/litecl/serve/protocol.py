"""Requests and answers of the Open Inference Protocol (version 2, REST), with its extension for binary tensors.

https://github.com/kserve/open-inference-protocol, and Triton's extension_binary_data.md: the header
``Inference-Header-Content-Length`` gives the length of the JSON. After it come the tensors that have
``binary_data_size`` instead of data, little-endian, row-major; a string is its length in 4 bytes, then its bytes.
"""

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, Shape
from litecl.serve.json_arrays import parse, pieces

LENGTH_HEADER = "Inference-Header-Content-Length"
_NAMED = {"name": {"type": "string"}, "parameters": {"type": "object"}}
_TENSOR = _NAMED | {
    "shape": {"type": "array", "items": {"type": "integer"}},
    "datatype": {"type": "string"},
    "data": {"type": "array"},
}
REQUEST_SCHEMA = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "id": {"type": "string"},
        "parameters": {"type": "object"},
        "inputs": {
            "type": "array",
            "items": {"type": "object", "required": ["name", "shape", "datatype"], "properties": _TENSOR},
        },
        "outputs": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": _NAMED}},
    },
}
"""The JSON schema of a request, for the OpenAPI description."""

_DTYPES: Mapping[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    **{f"UINT{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"INT{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "BYTES": np.dtype(np.object_),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_MOST_DIMENSION = 2**31 - 1  # TFLite's limit
_MOST_RANK = 32
_MOST_ID = 1024
_LEAST_BODY = 1 << 20
_NUMBER_BYTES = 32  # upper bound for a number in JSON with its separators
_SHOWN = 60  # characters of client input quoted in an error


@dataclass(frozen=True)
class Wanted:
    """An output to return. binary: as bytes instead of JSON."""

    name: str
    binary: bool


@dataclass(frozen=True)
class Request:
    """A request. batch: by input name. id: returned with the answer."""

    batch: Mapping[str, Array]
    outputs: Sequence[Wanted]
    id: str | None


@dataclass(frozen=True)
class Interface:
    """The names of the model's inputs and outputs. most_values: see ``json_arrays.parse``."""

    inputs: Sequence[str]
    outputs: Sequence[str]
    most_values: int = 1 << 20


def name_of(dtype: np.dtype[Any]) -> str:
    """Return the protocol's name of a type. bfloat16 becomes FP32, as the protocol's JSON lacks it. Raises ModelError
    for other types that the protocol lacks.
    """
    name = "BYTES" if dtype.kind in "OSU" else "FP32" if dtype.name == "bfloat16" else _NAMES.get(dtype)
    if name is None:
        raise ModelError(f"the Open Inference Protocol has no type for {dtype}")
    return name


def body_limit(inputs: Mapping[str, tuple[Shape, np.dtype[Any]]], rows: int) -> int:
    """Return an upper bound for a request's body in bytes. inputs: as in ``Predictor.inputs``.

    16 MiB if an input's row size is open. Otherwise room for ``rows`` rows, capped at 64 MiB or one row if larger.
    """
    if any(-1 in shape[1:] or dtype.kind in "OSU" for shape, dtype in inputs.values()):
        return 16 << 20
    row = sum(_NUMBER_BYTES * abs(math.prod(shape)) for shape, _ in inputs.values())
    return _LEAST_BODY + max(row, min(rows * row, 64 << 20))


def request_of(body: bytes | bytearray, length: str | None, interface: Interface) -> Request:
    """Parse a request's body. length: of its JSON, if binary tensors follow (``LENGTH_HEADER``).

    Raises ModelError and ShapeError for a request that doesn't fit the protocol or the model; their messages quote
    little of it.
    """
    end = len(body) if length is None else _length(length, len(body))
    try:
        text = str(memoryview(body)[:end], "utf-8")
    except UnicodeDecodeError:
        hint = f"; binary tensors need the header {LENGTH_HEADER}" if length is None else ""
        raise ModelError(f"expected JSON in UTF-8{hint}") from None
    document = parse(text, interface.most_values)
    del text
    if not isinstance(document, dict):
        raise ModelError("expected a JSON object with inputs")
    identity = document.get("id")
    if identity is not None and not (isinstance(identity, str) and len(identity) <= _MOST_ID):
        raise ModelError(f"id: expected a string of at most {_MOST_ID} characters")
    binary = _parameters(document, "the request").get("binary_data_output", False) is True
    outputs = _outputs(document.get("outputs"), interface.outputs, binary)
    return Request(_inputs(document.get("inputs"), interface.inputs, memoryview(body)[end:]), outputs, identity)


def answer_of(model: str, request: Request, results: Mapping[str, Any]) -> tuple[bytes, dict[str, str]]:
    """Return the body and headers of an answer. Raises ModelError for a string that is not UTF-8, which JSON needs."""
    parts, tensors = list[str](), list[bytes]()
    for wanted in request.outputs:
        array = np.asarray(results[wanted.name])
        kind = name_of(array.dtype)
        described: dict[str, Any] = {"name": wanted.name, "datatype": kind, "shape": list(array.shape)}
        if wanted.binary:
            tensors.append(_bytes_of(array, kind))
            described["parameters"] = {"binary_data_size": len(tensors[-1])}
            parts.append(json.dumps(described))
        else:
            data = _texts(array, wanted.name) if kind == "BYTES" else array
            parts.append(f'{json.dumps(described)[:-1]}, "data": [{", ".join(pieces(data))}]}}')
    head = {"model_name": model} | ({} if request.id is None else {"id": request.id})
    text = f'{json.dumps(head)[:-1]}, "outputs": [{", ".join(parts)}]}}'.encode()
    if not tensors:
        return text, {"Content-Type": "application/json"}
    return b"".join([text, *tensors]), {"Content-Type": "application/octet-stream", LENGTH_HEADER: str(len(text))}


def _length(text: str, most: int) -> int:
    if not (text.isdecimal() and len(text) <= 20 and int(text) <= most):
        raise ModelError(f"{LENGTH_HEADER}: expected at most the body's {most} bytes, got {_shown(text)}")
    return int(text)


def _parameters(owner: Mapping[str, Any], whose: str) -> Mapping[str, Any]:
    parameters = owner.get("parameters")
    if parameters is not None and not isinstance(parameters, dict):
        raise ModelError(f"parameters of {whose}: expected an object")
    return parameters or {}


def _named(given: Any, known: Sequence[str], kind: str) -> dict[str, dict[str, Any]]:
    """Return descriptions of tensors by name. Raises ModelError for an unknown or repeated name."""
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        if not (isinstance(given, np.ndarray) and not given.size):
            raise ModelError(f"{kind}: expected an array of objects with names")
        given = []
    by_name: dict[str, dict[str, Any]] = {}
    for each in given:
        name = each.get("name")
        if not isinstance(name, str) or name not in known:
            raise ModelError(f"{kind}: expected names of {[*known]}, got {_shown(name)}")
        if name in by_name:
            raise ModelError(f"{kind}: expected each name once, got {name!r} again")
        by_name[name] = each
    return by_name


def _outputs(given: Any, known: Sequence[str], binary: bool) -> list[Wanted]:
    by_name = {} if given is None else _named(given, known, "outputs")
    for name, each in by_name.items():
        if other := {*_parameters(each, f"output {name!r}")} - {"binary_data"}:
            raise ModelError(f"output {name!r}: expected no parameter but binary_data, got {_shown(min(other))}")
    return [
        Wanted(name, _parameters(each, name).get("binary_data", binary) is True)
        for name, each in (by_name or {name: {} for name in known}).items()
    ]


def _inputs(given: Any, known: Sequence[str], tensors: memoryview) -> dict[str, Array]:
    by_name, arrays = _named(given, known, "inputs"), dict[str, Array]()
    if missing := [name for name in known if name not in by_name]:
        raise ModelError(f"inputs: expected a batch of {[*known]}, got none for {missing}")
    for name, each in by_name.items():
        shape, dtype = _shape(each.get("shape"), name), _dtype(each.get("datatype"), name)
        size = _parameters(each, f"input {name!r}").get("binary_data_size")
        if size is None:
            value = _of_type(_flat(each.get("data"), name), dtype, name)
        elif type(size) is not int or not 0 <= size <= len(tensors) or "data" in each:
            raise ModelError(f"input {name!r}: expected a binary_data_size up to the {len(tensors)} bytes that follow")
        else:
            value, tensors = _of_bytes(tensors[:size], dtype, math.prod(shape), name), tensors[size:]
        if value.size != math.prod(shape):
            raise ShapeError(f"input {name!r}: expected {shape}, got {value.size} elements")
        arrays[name] = value.reshape(shape)
    if len(tensors):
        raise ModelError(f"expected no bytes after the inputs, got {len(tensors)}")
    return arrays


def _shape(given: Any, name: str) -> list[int]:
    shape = given.tolist() if isinstance(given, np.ndarray) and given.ndim == 1 else None
    if shape is None or len(shape) > _MOST_RANK or (shape and given.dtype != np.int64):
        raise ModelError(f"input {name!r}: expected a shape of at most {_MOST_RANK} whole numbers")
    # The nonzero dimensions of an empty tensor cost the client nothing, and may size an output.
    if any(not 0 <= n <= _MOST_DIMENSION for n in shape) or math.prod(n for n in shape if n) > _MOST_DIMENSION:
        raise ShapeError(f"input {name!r}: expected dimensions of 0 to {_MOST_DIMENSION} together, got {shape}")
    return [int(n) for n in shape]


def _dtype(given: Any, name: str) -> np.dtype[Any]:
    dtype = _DTYPES.get(given) if isinstance(given, str) else None
    if dtype is None:
        raise ModelError(f"input {name!r}: expected a datatype of {[*_DTYPES]}, got {_shown(given)}")
    return dtype


def _flat(data: Any, name: str) -> Array:
    """Flatten elements in row-major order. Strings arrive as lists, numbers as arrays."""
    if isinstance(data, np.ndarray):
        return data.reshape(-1)
    if not isinstance(data, list):
        raise ModelError(f"input {name!r}: expected data or a binary_data_size")
    try:
        return np.array(data, np.object_).reshape(-1)
    except ValueError:
        raise ShapeError(f"input {name!r}: expected rows of equal length") from None


def _of_type(given: Array, dtype: np.dtype[Any], name: str) -> Array:
    """Convert elements to a type, rounding for floats. Raises ModelError for values that it can't hold."""
    kinds = {type(value) for value in given} if given.dtype.kind == "O" else {_KINDS[given.dtype.kind]}
    if given.size and not kinds <= _TYPES[dtype.kind]:
        wrong = ", ".join(sorted(each.__name__ for each in kinds - _TYPES[dtype.kind]))
        raise ModelError(f"input {name!r}: expected {name_of(dtype)}, got {wrong}")
    if not given.size or dtype.kind in "Ob":
        return given.astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if given.min() < info.min or given.max() > info.max:
            raise ModelError(f"input {name!r}: {name_of(dtype)} holds {info.min} to {info.max}")
        return given.astype(dtype)
    try:
        with np.errstate(over="ignore"):
            value = given.astype(dtype)
    except OverflowError:
        value = np.full(1, np.inf, dtype)
    if not np.isfinite(value).all():
        raise ModelError(f"input {name!r}: {name_of(dtype)} holds at most {np.finfo(dtype).max:g}")
    return value


_KINDS: Mapping[str, type] = {"b": bool, "i": int, "f": float}
_TYPES: Mapping[str, set[type]] = {"b": {bool}, "i": {int}, "u": {int}, "f": {int, float}, "O": {str}}


def _of_bytes(data: memoryview, dtype: np.dtype[Any], count: int, name: str) -> Array:
    """Return the elements of a binary tensor. Floats may be NaN or infinite."""
    if dtype.kind == "O":
        return _strings(data, count, name)
    if len(data) != count * dtype.itemsize:
        size = count * dtype.itemsize
        raise ShapeError(f"input {name!r}: expected {size} bytes for {count} of {name_of(dtype)}, got {len(data)}")
    if dtype.kind == "b" and np.frombuffer(data, np.uint8).max(initial=0) > 1:
        raise ModelError(f"input {name!r}: expected bytes 0 and 1 for BOOL")
    return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype)


def _strings(data: memoryview, count: int, name: str) -> Array:
    strings, at = list[bytes](), 0
    while at + 4 <= len(data) and len(strings) < count:
        (size,) = struct.unpack_from("<I", data, at)
        at += 4 + size
        strings.append(bytes(data[at - size : at]))
    if at != len(data) or len(strings) != count:
        raise ShapeError(f"input {name!r}: expected {count} strings, each after its length in 4 bytes")
    return np.array(strings, np.object_)


def _bytes_of(array: Array, kind: str) -> bytes:
    if kind == "BYTES":
        flat = [text.encode() if isinstance(text, str) else bytes(text) for text in array.reshape(-1)]
        return b"".join(part for text in flat for part in (struct.pack("<I", len(text)), text))
    dtype = _DTYPES[kind]
    return array.astype(dtype.newbyteorder("<"), copy=False).tobytes()


def _texts(array: Array, name: str) -> Array:
    try:
        texts = [text.decode() if isinstance(text, bytes) else str(text) for text in array.reshape(-1)]
    except UnicodeDecodeError:
        raise ModelError(f"output {name!r} is not UTF-8, which JSON needs: ask for it as binary_data") from None
    return np.array(texts, np.object_)


def _shown(given: Any) -> str:
    """Return client input for an error message, cut short."""
    text = ascii(given[:_SHOWN] if isinstance(given, str) else given) if isinstance(given, str | int) else "no string"
    return text if len(text) <= _SHOWN + 2 else f"{text[:_SHOWN]}..."
