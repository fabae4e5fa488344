"""Computes a step's input values as the exporters define them: positions, masks, and the range of the caches in use."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from litecl.generate.signatures import Entry, Role, Step
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array

_HIDDEN = 0.7  # of the float range: a logit added to the mask stays finite


def values(step: Step, tokens: Array, start: int, count: int, window: int | None) -> Mapping[str, Array]:
    """Return the values of a step's inputs, except embeddings and caches.

    tokens: as many as the step takes; the first ``count`` are real. start: how many came before. window: how many
    tokens a layer with a local mask sees, including the current one.
    """
    positions = np.arange(start, start + step.width)
    arrays = {}
    for entry in step.inputs:
        if entry.role is Role.TOKENS:
            arrays[entry.name] = tokens.astype(entry.dtype).reshape(entry.shape)
        elif entry.role is Role.POSITIONS:
            arrays[entry.name] = positions.astype(entry.dtype).reshape(entry.shape)
        elif entry.role is Role.MASK:
            slots = entry.shape[-1]
            if step.width == 1 and start < slots == math.prod(entry.shape) and entry.dtype.kind in "bf":
                arrays[entry.name] = _masks(slots, entry.dtype)[slots - 1 - start :][:slots].reshape(entry.shape)
            else:
                arrays[entry.name] = _mask(entry, np.arange(slots) <= positions[:, None])
        elif entry.role is Role.LOCAL_MASK:
            arrays[entry.name] = _mask(entry, _in_window(entry, positions, window))
        elif entry.role is Role.RANGE:
            arrays[entry.name] = _range(entry, start, start + count)
    return arrays


@lru_cache(maxsize=8)
def _masks(slots: int, dtype: np.dtype[Any]) -> Array:
    """Return an array whose slices of ``slots`` elements are the masks of all single tokens, the last one's first."""
    shown = np.arange(2 * slots - 1) < slots
    return shown if dtype == np.bool_ else np.where(shown, dtype.type(0), hidden(dtype))


def _mask(entry: Entry, seen: Array) -> Array:
    """Return a mask in its input's type: True or 0 for visible slots, False or a large negative number for others.

    seen: by token and slot. Raises ModelError if it doesn't fit the input.
    """
    if seen.size != math.prod(entry.shape):
        raise ModelError(f"input {entry.name!r}: expected a mask by token and slot, got shape {[*entry.shape]}")
    if entry.dtype == np.bool_:
        return seen.reshape(entry.shape)
    if entry.dtype.kind != "f":
        raise ModelError(f"input {entry.name!r}: expected a mask of bool or of floats, got {entry.dtype}")
    return np.asarray(np.where(seen, entry.dtype.type(0), hidden(entry.dtype))).reshape(entry.shape)


def hidden(dtype: np.dtype[Any]) -> Any:
    """Return a float mask's value for a hidden slot."""
    return dtype.type(-_HIDDEN * float(np.finfo(dtype).max))


def _in_window(entry: Entry, positions: Array, window: int | None) -> Array:
    """Return which slots of a ring buffer each token sees. A prefill's mask covers the ring before its tokens, then a
    slot for each of them; decode's covers the ring with its token.
    """
    if window is None:
        raise ModelError(f"input {entry.name!r}: the file does not say how many tokens are seen: give sliding_window=")
    ring = entry.shape[-1] - (len(positions) if len(positions) > 1 else 0)
    last = positions[0] - 1 if len(positions) > 1 else positions[0]  # latest token in the ring
    slots = np.arange(ring)
    held = last - (last - slots) % ring  # position of the token in each slot; negative: still empty
    if len(positions) > 1:
        held = np.concatenate([held, positions])
    return np.asarray((held >= 0) & (held <= positions[:, None]) & (held > positions[:, None] - window))


def _range(entry: Entry, start: int, end: int) -> Array:
    """Return where tokens are written and how many slots are then in use, in the format of LiteRT-LM's GPU kernels."""
    array = np.zeros(entry.shape, entry.dtype)
    array.reshape(-1)[:3] = start, end, end
    return array
