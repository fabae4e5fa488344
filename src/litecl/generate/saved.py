"""Sessions in files: numpy's ``.npz``, with the caches, the tokens and the state of random numbers."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array, Model, Shape

_VERSION = 1
_STATE = "session"
_ELEMENTS = 4096  # of a constant, that are looked at


@dataclass(frozen=True)
class State:
    """All of a session but its caches. held: how many of the tokens these hold. random: of numpy's bit generator."""

    tokens: Sequence[int]
    held: int
    random: Mapping[str, Any]


def fingerprint(models: Sequence[Model]) -> str:
    """Return what tells models apart: a digest of their operators, and of parts of all their constants."""
    digest = hashlib.sha256()
    for graph in (graph for model in models for graph in model.subgraphs):
        digest.update(" ".join(node.op.name for node in graph.nodes).encode())
        for spec in graph.tensors:
            if spec.data is not None:
                digest.update(f"{spec.type.name}{spec.data.shape}".encode())
                digest.update(_part(spec.data))
    return digest.hexdigest()


def _part(data: Array) -> bytes:
    """Return some of the elements: all of small constants, of large ones those at equal distances."""
    flat = data.reshape(-1)
    some = flat[:: max(flat.size // _ELEMENTS, 1)]
    return repr(some.tolist()).encode() if some.dtype.hasobject else some.tobytes()


def write(path: str | PathLike[str], model: str, state: State, caches: Mapping[str, Array]) -> None:
    """Write a session. model: its fingerprint. Raises OSError."""
    text = json.dumps({"version": _VERSION, "model": model, **asdict(state)})
    arrays: dict[str, Any] = {_STATE: np.frombuffer(text.encode(), np.uint8), **caches}
    with Path(path).open("wb") as file:
        np.savez(file, **arrays)


def read(
    path: str | PathLike[str], model: str, specs: Mapping[str, tuple[Shape, np.dtype[Any]]]
) -> tuple[State, dict[str, Array]]:
    """Return what was written. specs: of the caches. Raises ModelError for a damaged one, or of another model."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = json.loads(bytes(arrays[_STATE]))
            version, theirs = found.pop("version"), found.pop("model")
            state = State(**found)
            caches = {name: np.array(arrays[name]) for name in specs}
    except FileNotFoundError:
        raise
    except Exception as error:  # of damaged bytes: whatever zipfile, zlib, and numpy's parser of headers raise
        raise ModelError(f"{fspath(path)}: no session that can be read ({type(error).__name__}: {error})") from error
    if version != _VERSION:
        raise ModelError(f"{fspath(path)}: a session of version {version}, expected {_VERSION}")
    if theirs != model:
        raise ModelError(f"{fspath(path)}: the session of another model")
    for name, (shape, dtype) in specs.items():
        if (got := caches[name]).shape != shape or got.dtype != dtype:
            raise ModelError(f"{fspath(path)}: {name!r}: expected {dtype}{[*shape]}, got {got.dtype}{[*got.shape]}")
    if not (isinstance(state.held, int) and 0 <= state.held <= len(state.tokens)):
        raise ModelError(f"{fspath(path)}: caches of {state.held} tokens in a session of {len(state.tokens)}")
    return state, caches
