"""Initial values of inputs, checks of values to set, and element types as callers see them."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, Model, Shape, Subgraph, TensorSpec, entries
from litecl.interpreter.schema import TensorType

# Looking them up takes a tenth of the time of ``get_tensor``.
_BFLOAT16, _STRING = TensorType.BFLOAT16, TensorType.STRING
OF_ML_DTYPES = {
    TensorType.BFLOAT16: "bfloat16",
    TensorType.FLOAT8_E4M3FN: "float8_e4m3fn",
    TensorType.FLOAT8_E5M2: "float8_e5m2",
}


def entry_shapes(model: Model) -> dict[int, tuple[Shape, ...]]:
    """Return the declared input shapes of every subgraph that a caller may run."""
    graphs = {index: model.subgraphs[index] for index in entries(model)}
    return {index: tuple(graph.tensors[t].static_shape for t in graph.inputs) for index, graph in graphs.items()}


def input_of(graph: Subgraph, given: int | str) -> int:
    """Return an input's index, given its index or name. Raises ModelError unless exactly one input has the name."""
    if not isinstance(given, str):
        return given
    names = [graph.tensors[t].name for t in graph.inputs]
    if names.count(given) != 1:
        raise ModelError(f"expected the name of one input, got {given!r}; inputs are {names}")
    return graph.inputs[names.index(given)]


def told_apart(names: Sequence[str]) -> list[str]:
    """Return unique names: duplicates get "#" and their position."""
    return [f"{name}#{i}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def blank(spec: TensorSpec) -> Array:
    """Return zeros, or empty strings, for an unset input. Raises ModelError if there is not enough memory."""
    try:
        if spec.type == TensorType.STRING:
            return np.full(spec.static_shape, b"", np.object_)
        return np.zeros(spec.static_shape, spec.dtype)
    except (MemoryError, ValueError) as error:
        raise ModelError(f"input {spec.name!r}: no memory for shape {list(spec.static_shape)}") from error


def seen_dtype(spec: TensorSpec) -> np.dtype[Any]:
    """Return the element type that callers see: for BFLOAT16 and FLOAT8 that of ml_dtypes, or bits without it."""
    return spec.dtype if spec.type < _BFLOAT16 else _seen(spec.type)


def seen(spec: TensorSpec, value: Array) -> Array:
    """Return a tensor's memory as callers see it."""
    return value if spec.type < _BFLOAT16 else value.view(_seen(spec.type))


@cache
def _seen(type_: TensorType) -> np.dtype[Any]:
    """Return the element type that callers see, of BFLOAT16 and the types that came after it."""
    if type_ in OF_ML_DTYPES:
        with suppress(ImportError):
            dtype: np.dtype[Any] = np.dtype(getattr(import_module("ml_dtypes"), OF_ML_DTYPES[type_]))
            return dtype
    return type_.dtype


def fits(shape: Sequence[int], declared: Sequence[int]) -> bool:
    """Return whether a shape matches a declared one, where -1 matches any number."""
    return len(shape) == len(declared) and all(m in (n, -1) for n, m in zip(shape, declared, strict=True))


def check_strict(spec: TensorSpec, shape: Shape) -> None:
    """Raise ShapeError for a shape that an input's signature does not allow."""
    signature = spec.static_shape if spec.shape_signature is None else spec.shape_signature
    if not fits(shape, signature):
        raise ShapeError(f"resize: {spec.name!r} has the signature {list(signature)}, got {list(shape)}")


def checked(index: int, spec: TensorSpec, value: npt.ArrayLike) -> Array:
    """Return a value as an array. Raises ShapeError unless its shape and type are the tensor's."""
    where = f"set_tensor: tensor {index} ({spec.name!r})"
    if spec.type is _STRING:
        array = texts(value, where)
    else:
        try:
            array = np.asarray(value)
        except (TypeError, ValueError) as error:  # a ragged list
            raise ShapeError(f"{where}: {error}") from error
    if array.dtype != seen_dtype(spec):
        raise ShapeError(f"{where}: expected {seen_dtype(spec)}, got {array.dtype}")
    if array.shape != spec.shape:
        raise ShapeError(f"{where}: expected shape {list(spec.static_shape)}, got {list(array.shape)}")
    return array if spec.type < _BFLOAT16 else array.view(spec.dtype)


def texts(value: npt.ArrayLike, where: str) -> Array:
    """Return strings as an object array of bytes: ``str`` in UTF-8, as LiteRT takes it.

    Raises ShapeError, prefixed with ``where``, for other types, text that UTF-8 cannot encode, and ragged lists.
    """
    try:
        array = np.array(value, np.object_)
        array.reshape(-1)[:] = [_encoded(text) for text in array.reshape(-1)]
    except (TypeError, ValueError) as error:
        raise ShapeError(f"{where}: {error}") from error
    return array


def _encoded(text: object) -> bytes:
    if isinstance(text, str):
        return text.encode()
    if not isinstance(text, bytes):
        raise TypeError(f"expected str or bytes, got {type(text).__name__}")
    return bytes(text)
