"""Damaged copies of models: cut off, or with bytes, words or decoded numbers changed, the same for the same seed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.flatbuffer import Record, decode, encode
from litecl.interpreter.file.reader import read

_CUT_EVERYWHERE_BYTES = 4096
_EXTREMES = (0, 1, 2, 3, 5, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, -1, -2, -128, -(2**31))
_SCALES = (0.0, -1.0, 1e-30, 1e30, float("nan"), float("inf"), 0.5)


@dataclass(frozen=True)
class Plan:
    """What to try: the seed files, the number of mutations of them, and the source of random numbers."""

    seeds: Sequence[tuple[str, bytes]]
    mutations: int
    seed: int = 0

    def __len__(self) -> int:
        return len(self._cuts) + self.mutations

    def __getitem__(self, number: int) -> tuple[str, bytes]:
        """Return the name and the content of one damaged model, always the same for the same number."""
        cuts = self._cuts
        if number < len(cuts):
            name, content = self.seeds[cuts[number][0]]
            return f"{name} cut at {cuts[number][1]}", content[: cuts[number][1]]
        rng = np.random.default_rng([self.seed, number])
        name, content = self.seeds[int(rng.integers(len(self.seeds)))]
        return f"{name} mutation {number}", mutate(content, rng)

    @cached_property
    def _cuts(self) -> list[tuple[int, int]]:
        small = [i for i, (_, content) in enumerate(self.seeds) if len(content) <= _CUT_EVERYWHERE_BYTES]
        return [(i, end) for i in small[:8] for end in range(len(self.seeds[i][1]))] if self.mutations > 10000 else []


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the model with one to four changes of one kind."""
    kind = rng.integers(4)
    if kind == 0:
        return _changed_bytes(content, rng)
    if kind == 1:
        return _changed_words(content, rng)
    return _changed_fields(content, rng)


def _changed_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    data = np.frombuffer(content, np.uint8).copy()
    data[rng.integers(0, data.size, rng.integers(1, 5))] = rng.integers(0, 256)
    return data.tobytes()


def _changed_words(content: bytes, rng: np.random.Generator) -> bytes:
    data = np.frombuffer(content, np.uint8).copy()
    word = 4 * int(rng.integers(0, max(1, data.size // 4 - 1)))
    value = int(rng.choice([*_EXTREMES, data.size, data.size // 2]))
    data[word : word + 4] = np.array([value & 0xFFFFFFFF], np.uint32).view(np.uint8)[: data.size - word]
    return data.tobytes()


def _changed_fields(content: bytes, rng: np.random.Generator) -> bytes:
    """Decode, change numbers in place, and encode again."""
    root = decode(memoryview(content), "Model", b"TFL3")
    places = list(_places(root))
    for _ in range(int(rng.integers(1, 5))):
        record, name = places[int(rng.integers(len(places)))]
        record.fields[name] = _other(record.fields[name], rng)
    try:
        return bytes(encode(root, b"TFL3"))
    except (LiteclError, OverflowError, TypeError, ValueError):
        return content  # the change does not fit the schema's types


def _places(record: Record) -> Iterator[tuple[Record, str]]:
    """Yield every field of every table that holds a number or a vector of numbers; the contents of buffers seldom
    matter.
    """
    for name, value in record.fields.items():
        if isinstance(value, Record):
            yield from _places(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Record):
                    yield from _places(item)
        elif isinstance(value, bool | int | float | np.ndarray):
            yield record, name


def _other(value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return int(rng.choice([*_EXTREMES, value + 1, value - 1, int(rng.integers(0, 64))]))
    if isinstance(value, float):
        return float(rng.choice(_SCALES))
    return _other_vector(np.asarray(value).copy(), rng)


def _other_vector(vector: Any, rng: np.random.Generator) -> Any:
    """Change one element, or make the vector longer or shorter."""
    kind = rng.integers(4)
    if kind == 0 or not vector.size:
        return vector[: int(rng.integers(0, vector.size + 1))]
    if kind == 1:
        return np.concatenate([vector, vector[:1]])
    place = int(rng.integers(vector.size))
    choices = _SCALES if vector.dtype.kind == "f" else (*_EXTREMES, int(vector[place]) + 1, int(vector[place]) - 1)
    with np.errstate(all="ignore"):
        vector[place] = np.asarray(rng.choice(choices)).astype(vector.dtype)
    return vector


def seeds(paths: Sequence[Path], most: int | None = None) -> list[tuple[str, bytes]]:
    """Return the models among files and folders, of at most 64 KiB, that can be read as they are; ``most`` evenly
    chosen.
    """
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.tflite")))]
    found = []
    for file in files:
        content = file.read_bytes()
        if len(content) <= 1 << 16:
            try:
                read(content)
            except LiteclError:
                continue
            found.append((file.name, content))
    if most is None or most >= len(found):
        return found
    return [found[i * len(found) // most] for i in range(most)]
