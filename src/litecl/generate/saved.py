"""Saves sessions to ``.npz`` files with caches, tokens and the random state."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ArgumentError, ModelError
from litecl.interpreter.graph import Array, Model, Shape
from litecl.interpreter.records import Misfit, Within, record
from litecl.interpreter.regular_files import open_regular
from litecl.interpreter.whole_files import whole_file

_VERSION = 1
_STATE = "session"
_ELEMENTS = 4096  # sampled from a constant
_HEADER_BYTES = 1 << 16  # upper bound for a member's header, and for a session without its tokens
_TOKEN_BYTES = 32  # upper bound for a token in JSON

_Natural = Annotated[int, Within(0)]
_Bits32 = Annotated[int, Within(0, (1 << 32) - 1)]
_Bits128 = Annotated[int, Within(0, (1 << 128) - 1)]


@dataclass(frozen=True)
class _Numbers:
    state: _Bits128
    inc: _Bits128


@dataclass(frozen=True)
class Random:
    """The state of numpy's bit generator."""

    bit_generator: Literal["PCG64"]
    state: _Numbers
    has_uint32: Literal[0, 1]
    uinteger: _Bits32


@dataclass(frozen=True)
class State:
    """A session without its caches. held: how many of the tokens the caches hold."""

    tokens: Sequence[_Natural]
    held: _Natural
    random: Random


@dataclass(frozen=True)
class Limits:
    """What a session must match to fit a model. vocabulary: number of distinct tokens. most_tokens: of a session."""

    model: str
    vocabulary: int
    most_tokens: int
    caches: Mapping[str, tuple[Shape, np.dtype[Any]]]


@dataclass(frozen=True)
class _File(State):
    version: Literal[1]
    model: str


def fingerprint(models: Sequence[Model]) -> str:
    """Return a digest of the models' operators and of samples of all their constants."""
    digest = hashlib.sha256()
    for graph in (graph for model in models for graph in model.subgraphs):
        digest.update(" ".join(node.op.name for node in graph.nodes).encode())
        for spec in graph.tensors:
            if spec.data is not None:
                digest.update(f"{spec.type.name}{spec.data.shape}".encode())
                digest.update(_part(spec.data))
    return digest.hexdigest()


def _part(data: Array) -> bytes:
    """Return a constant's elements as bytes, evenly sampled if it is large."""
    flat = data.reshape(-1)
    some = flat[:: max(flat.size // _ELEMENTS, 1)]
    return repr(some.tolist()).encode() if some.dtype.hasobject else some.tobytes()


def write(path: str | PathLike[str], model: str, state: State, caches: Mapping[str, Array]) -> None:
    """Write a session atomically. model: its fingerprint. Raises OSError, and ArgumentError for no path."""
    _require_path(path)
    text = json.dumps({"version": _VERSION, "model": model, **asdict(state)})
    arrays: dict[str, Any] = {_STATE: np.frombuffer(text.encode(), np.uint8), **caches}
    with whole_file(Path(path)) as file:
        np.savez(file, **arrays)


def read(path: str | PathLike[str], limits: Limits) -> tuple[State, dict[str, Array]]:
    """Read a session. Raises ModelError for a damaged file, or one that doesn't fit the model; ArgumentError."""
    _require_path(path)
    try:
        with open_regular(path) as opened, np.load(opened, allow_pickle=False) as arrays:
            _check_sizes(arrays, limits)
            data = json.loads(bytes(arrays[_STATE]))
            caches = {name: np.array(arrays[name]) for name in limits.caches}
        file = _file(data)
    except FileNotFoundError:
        raise
    except Exception as error:  # damaged bytes: whatever zipfile, zlib and numpy's header parser raise
        raise ModelError(f"{path!s}: no session that can be read ({type(error).__name__}: {error})") from error
    if fault := _fault(file, caches, limits):
        raise ModelError(f"{fspath(path)}: {fault}")
    return file, caches


def _require_path(path: object) -> None:
    if not isinstance(path, str | PathLike):
        raise ArgumentError(f"path: expected the path of a file, got {path!r:.100}")


def _check_sizes(arrays: Any, limits: Limits) -> None:
    """Raise ModelError for members larger than a session's, before unpacking them."""
    most = {name: math.prod(shape) * dtype.itemsize for name, (shape, dtype) in limits.caches.items()}
    most[_STATE] = limits.most_tokens * _TOKEN_BYTES
    for member in arrays.zip.infolist():
        name = member.filename.removesuffix(".npy")
        if member.file_size > most.get(name, 0) + _HEADER_BYTES:
            raise ModelError(f"{name!r} is larger than that of a session: {member.file_size} bytes")


def _file(data: Any) -> _File:
    version = data.get("version") if isinstance(data, dict) else None
    if type(version) is int and version != _VERSION:  # whatever its other fields are
        raise Misfit(f"a session of version {version}, expected {_VERSION}")
    return record(_File, data)


def _fault(file: _File, caches: Mapping[str, Array], limits: Limits) -> str:
    """Return why a session doesn't fit the model, or an empty string."""
    if file.model != limits.model:
        return "the session of another model"
    if len(file.tokens) > limits.most_tokens:
        return f"{len(file.tokens)} tokens, expected at most {limits.most_tokens}"
    if outside := [token for token in file.tokens if token >= limits.vocabulary]:
        return f"tokens {outside[:5]} are out of range for a vocabulary of {limits.vocabulary}"
    if file.held > len(file.tokens):
        return f"caches of {file.held} tokens in a session of {len(file.tokens)}"
    for name, (shape, dtype) in limits.caches.items():
        if (got := caches[name]).shape != shape or got.dtype != dtype:
            return f"{name!r}: expected {dtype}{[*shape]}, got {got.dtype}{[*got.shape]}"
        if not (got.dtype.kind in "iub" or np.isfinite(got).all()):
            return f"{name!r}: expected finite numbers"
    return ""
