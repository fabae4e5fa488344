"""Tensors of the Open Inference Protocol (version 2, REST) as arrays, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array

_DTYPES: Mapping[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    **{f"UINT{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"INT{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "BYTES": np.dtype(np.object_),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


@dataclass(frozen=True)
class Tensor:
    """A tensor as JSON has it. data: its elements in rows (C order), flat or nested."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]


@dataclass(frozen=True)
class Wanted:
    """An output that a request asks for."""

    name: str


@dataclass(frozen=True)
class Request:
    """A batch. id: returned with its answer. outputs: those to return; all, if there are none."""

    inputs: list[Tensor]
    id: str | None = None
    outputs: list[Wanted] | None = None


def name_of(dtype: np.dtype[Any]) -> str:
    """Return the protocol's name of a type; that of what stands for it in JSON, where it has none."""
    return _NAMES.get(dtype, "BYTES" if dtype.kind in "OSU" else "FP32")


def decoded(tensors: Sequence[Tensor]) -> dict[str, Array]:
    """Return arrays by name. Raises ModelError and ShapeError for data that is not of its type or shape."""
    if len({tensor.name for tensor in tensors}) != len(tensors):
        raise ModelError(f"inputs: expected each name once, got {[tensor.name for tensor in tensors]}")
    return {tensor.name: _array(tensor) for tensor in tensors}


def encoded(name: str, value: Any) -> dict[str, Any]:
    """Return an output as JSON has it, flat. Numbers that are not finite become null, as JSON has none."""
    array = np.asarray(value)
    kind = name_of(array.dtype)
    if kind == "BYTES":
        data: list[Any] = [x.decode("utf-8", "replace") if isinstance(x, bytes) else str(x) for x in array.reshape(-1)]
    elif array.dtype.kind in "biu":
        data = array.reshape(-1).tolist()
    else:
        real = array.reshape(-1).astype(np.float64)
        data = real.tolist() if np.isfinite(real).all() else [x if np.isfinite(x) else None for x in real.tolist()]
    return {"name": name, "shape": list(array.shape), "datatype": kind, "data": data}


def _array(tensor: Tensor) -> Array:
    dtype = _DTYPES.get(tensor.datatype)
    if dtype is None:
        raise ModelError(f"input {tensor.name!r}: expected a datatype of {[*_DTYPES]}, got {tensor.datatype!r}")
    try:
        given = np.asarray(tensor.data, np.object_ if dtype.kind == "O" else None)
    except (ValueError, OverflowError) as error:
        raise ShapeError(f"input {tensor.name!r}: expected rows of equal length ({error})") from error
    if any(n < 0 for n in tensor.shape) or given.size != np.prod([int(n) for n in tensor.shape], dtype=object):
        raise ShapeError(f"input {tensor.name!r}: expected {tensor.shape}, got {given.size} elements")
    return _of_type(given, dtype, tensor.name).reshape(tensor.shape)


def _of_type(given: Array, dtype: np.dtype[Any], name: str) -> Array:
    """Return elements as a type. Raises ModelError where that would change them."""
    fits = {"b": "b", "i": "iu", "u": "iu", "f": "fiu", "O": "O"}[dtype.kind]
    if given.size and given.dtype.kind not in fits:
        raise ModelError(f"input {name!r}: expected {name_of(dtype)}, got {given.dtype}")
    if given.size and dtype.kind in "iu":
        info = np.iinfo(dtype)
        if given.min() < info.min or given.max() > info.max:
            raise ModelError(f"input {name!r}: expected {info.min} to {info.max}, got {given.min()} to {given.max()}")
    return given.astype(dtype)
