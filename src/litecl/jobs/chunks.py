"""Splits a sound into chunks, which an input takes one after another."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array
from litecl.jobs.audio import Features, as_input, axis_of, open_shape, read_sound
from litecl.jobs.given import SOUNDS, Media, assigned
from litecl.perf.feeds import Details, labels


@dataclass(frozen=True)
class Chunks:
    """A sound in chunks. label: of the input that takes them. size_s: a chunk's length. every_s: time from the start of
    one chunk to the next. at: returns a chunk's value by its number. The last one is padded with silence.
    """

    label: str
    count: int
    size_s: float
    every_s: float
    at: Callable[[int], Array]


def is_sound(argument: str) -> bool:
    """Return whether an argument NAME=FILE, or FILE, names a sound."""
    return Path(argument.rpartition("=")[2]).suffix.lower() in SOUNDS


def chunks_of(given: Sequence[str], details: Sequence[Details], media: Media, every_ms: float | None) -> Chunks:
    """Return the chunks of the only sound among arguments NAME=FILE, or FILE.

    every_ms: from the start of one chunk to the next; without it they don't overlap. Raises ModelError for another
    number of sounds, and for a sound that the input can't take this way.
    """
    sounds = [argument for argument in given if is_sound(argument)]
    by_label = dict(zip(labels(details), details, strict=True))
    if len(sounds) != 1:
        raise ModelError(f"--stream: expected --input with one sound, got {len(sounds)}")
    ((label, path),) = assigned(sounds[0], [*by_label])
    detail = by_label[label]
    rate = media.rate_of(detail)
    sound = read_sound(path, rate)
    if media.features is None:
        return _of_samples(sound, label, detail, rate, str(path), every_ms)
    return _of_features(sound, label, detail, replace(media, rate=rate), every_ms)


def _of_samples(sound: Array, label: str, detail: Details, rate: int, source: str, every_ms: float | None) -> Chunks:
    size = open_shape(detail)[axis_of(detail, source)]
    if size == -1 and every_ms is None:
        raise ModelError(f"--stream: input {label!r} takes a sound of any length; expected --every-ms with it")
    every = size if every_ms is None else round(every_ms * rate / 1000)
    size = every if size == -1 else size
    _require(every, size, 1000 / rate)
    count = _count(len(sound), size, every)
    padded = np.pad(sound, (0, max(0, (count - 1) * every + size - len(sound))))

    def at(number: int) -> Array:
        return as_input(padded[number * every :][:size], detail, rate, source)

    return Chunks(label, count, size / rate, every / rate, at)


def _of_features(sound: Array, label: str, detail: Details, media: Media, every_ms: float | None) -> Chunks:
    assert media.features is not None and media.rate is not None
    features, hop_s = Features(media.features, media.rate, media.hop_ms), media.hop_ms / 1000
    size = features.count(detail)
    every = size if every_ms is None else round(every_ms / media.hop_ms)
    if every_ms is not None and not math.isclose(every * media.hop_ms, every_ms):
        raise ModelError(f"--every-ms: expected a multiple of --hop-ms, {media.hop_ms:g}, got {every_ms:g}")
    _require(every, size, media.hop_ms)
    count = _count(features.within(sound), size, every)
    windows = features.windows(sound, (count - 1) * every + size)

    def at(number: int) -> Array:
        return windows[number * every :][:size].reshape(detail["shape"])

    return Chunks(label, count, size * hop_s, every * hop_s, at)


def _require(every: int, size: int, unit_ms: float) -> None:
    """Raise ModelError unless each chunk starts after the one before it, without a gap."""
    if not 1 <= every <= size:
        most, got = size * unit_ms, every * unit_ms
        raise ModelError(f"--every-ms: expected at most the {most:g} ms of a chunk, and more than 0, got {got:g}")


def _count(units: int, size: int, every: int) -> int:
    """Return how many chunks cover a sound."""
    return 1 + max(0, -(-(units - size) // every))
