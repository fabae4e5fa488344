"""Changes of the decoded numbers and texts of a model, which is then encoded again."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from litecl.interpreter.errors import LiteclError
from litecl.interpreter.file.encoding import encode
from litecl.interpreter.file.flatbuffer import Record, decode
from litecl.interpreter.file.tables import SCALARS, TABLES
from support.damage import EXTREMES

_SCALES = (0.0, -1.0, 1e-30, 1e30, float("nan"), float("inf"), 0.5)
_TYPES = {(table, field.name): field.type for table, fields in TABLES.items() for field in fields}
_TEXTS = ("", "\0", "x" * 5000, "\u00e9\ufffd", "main", "serving_default", "%s%n", "../../x")


def changed_fields(content: bytes, rng: np.random.Generator) -> bytes:
    """Decode, change one to four fields in place, and encode again."""
    root = decoded(content)
    places = list(_places(root))
    for _ in range(int(rng.integers(1, 5))):
        record, name = places[int(rng.integers(len(places)))]
        value = None if rng.integers(12) == 0 else _other(record.fields[name], rng)
        record.fields[name] = _fitting(value, _TYPES[record.table, name])
    return encoded(root, content)


def decoded(content: bytes) -> Record:
    """Return the tables of a model that can be read."""
    return decode(memoryview(content), "Model", b"TFL3")


def encoded(root: Record, otherwise: bytes) -> bytes:
    """Return the file of changed tables, or what was there before where they do not fit the schema's types."""
    try:
        return bytes(encode(root, b"TFL3"))
    except (AttributeError, LiteclError, OverflowError, TypeError, ValueError):
        return otherwise


def _places(record: Record) -> Iterator[tuple[Record, str]]:
    """Yield every field of every table that holds a number, a text or a vector of numbers; the contents of buffers
    seldom matter.
    """
    for name, value in record.fields.items():
        if isinstance(value, Record):
            yield from _places(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Record):
                    yield from _places(item)
        elif isinstance(value, bool | int | float | str | np.ndarray):
            yield record, name


def _other(value: Any, rng: np.random.Generator) -> Any:
    if value is None or isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return _TEXTS[int(rng.integers(len(_TEXTS)))]
    if isinstance(value, int):
        return int(rng.choice([*EXTREMES, value + 1, value - 1, int(rng.integers(0, 64))]))
    if isinstance(value, float):
        return float(rng.choice(_SCALES))
    return _other_vector(np.asarray(value).copy(), rng)


def _fitting(value: Any, type_: str) -> Any:
    """Return a number as its field's type stores it, modulo its range."""
    if not isinstance(value, int) or isinstance(value, bool) or np.dtype(SCALARS[type_]).kind not in "iu":
        return value
    return int(np.array(value % (1 << 64), np.uint64).astype(SCALARS[type_]))


def _other_vector(vector: Any, rng: np.random.Generator) -> Any:
    """Change one element, or make the vector longer or shorter."""
    kind = rng.integers(4)
    if kind == 0 or not vector.size:
        return vector[: int(rng.integers(0, vector.size + 1))]
    if kind == 1:
        return np.concatenate([vector, vector[:1]])
    place = int(rng.integers(vector.size))
    choices = _SCALES if vector.dtype.kind == "f" else (*EXTREMES, int(vector[place]) + 1, int(vector[place]) - 1)
    with np.errstate(all="ignore"):
        vector[place] = np.asarray(rng.choice(choices)).astype(vector.dtype)
    return vector
