"""Values for inputs: initial ones, and checks of those that are set; their types as callers see them."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, Model, Shape, Subgraph, TensorSpec, entries
from litecl.interpreter.schema import TensorType

# To look them up takes a tenth of the time of ``get_tensor``.
_BFLOAT16, _STRING = TensorType.BFLOAT16, TensorType.STRING


def entry_shapes(model: Model) -> dict[int, tuple[Shape, ...]]:
    """Return the declared shapes of the inputs of every subgraph that a caller may run."""
    graphs = {index: model.subgraphs[index] for index in entries(model)}
    return {index: tuple(graph.tensors[t].static_shape for t in graph.inputs) for index, graph in graphs.items()}


def input_of(graph: Subgraph, given: int | str) -> int:
    """Return an input's index, by its index or name. Raises ModelError for a name that not exactly one input has."""
    if not isinstance(given, str):
        return given
    names = [graph.tensors[t].name for t in graph.inputs]
    if names.count(given) != 1:
        raise ModelError(f"expected the name of one input, got {given!r}; inputs are {names}")
    return graph.inputs[names.index(given)]


def told_apart(names: Sequence[str]) -> list[str]:
    """Return names that differ: those that several have get "#" and their position."""
    return [f"{name}#{i}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def blank(spec: TensorSpec) -> Array:
    """Return zeros, or empty strings, for an input that has not been set. Raises ModelError if there is not
    enough memory.
    """
    try:
        if spec.type == TensorType.STRING:
            return np.full(spec.static_shape, b"", np.object_)
        return np.zeros(spec.static_shape, spec.dtype)
    except (MemoryError, ValueError) as error:
        raise ModelError(f"input {spec.name!r}: no memory for shape {list(spec.static_shape)}") from error


def seen_dtype(spec: TensorSpec) -> np.dtype[Any]:
    """Return the type of a tensor's elements as callers see it: of BFLOAT16 ml_dtypes', as LiteRT has it, where that is
    installed, or else uint16, for the bits.
    """
    return _bfloat16() if spec.type is _BFLOAT16 else spec.dtype


def seen(spec: TensorSpec, value: Array) -> Array:
    """Return a tensor's memory as callers see it."""
    return value.view(_bfloat16()) if spec.type is _BFLOAT16 else value


@cache
def _bfloat16() -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(import_module("ml_dtypes").bfloat16)
    except ImportError:
        return np.dtype(np.uint16)
    return found


def fits(shape: Sequence[int], declared: Sequence[int]) -> bool:
    """Return whether a shape is one that is declared, where -1 is any number."""
    return len(shape) == len(declared) and all(m in (n, -1) for n, m in zip(shape, declared, strict=True))


def check_strict(spec: TensorSpec, shape: Shape) -> None:
    """Raise ShapeError for a shape that an input's signature does not allow."""
    signature = spec.static_shape if spec.shape_signature is None else spec.shape_signature
    if not fits(shape, signature):
        raise ShapeError(f"resize: {spec.name!r} has the signature {list(signature)}, got {list(shape)}")


def checked(index: int, spec: TensorSpec, value: npt.ArrayLike) -> Array:
    """Return a value as an array. Raises ShapeError unless shape and type are those of the tensor."""
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
    return array.view(spec.dtype) if spec.type is _BFLOAT16 else array


def texts(value: npt.ArrayLike, where: str) -> Array:
    """Return strings as bytes, in an array of objects: ``str`` in UTF-8, as LiteRT takes it.

    Raises ShapeError, which begins with ``where``, for what is neither ``str`` nor ``bytes``, what UTF-8 cannot encode,
    and a ragged list.
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
