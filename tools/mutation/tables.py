"""Changes of whole tables: nodes, tensors, buffers and subgraphs that are gone, repeated, in another order, or put in
another's place.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from litecl.interpreter.file.flatbuffer import Record
from litecl.interpreter.file.tables import TABLES
from tools.mutation.fields import decoded, encoded

_OPTIONS = ("builtin_options", "builtin_options2")


def changed_tables(content: bytes, rng: np.random.Generator) -> bytes:
    """Decode, move one to three tables, and encode again."""
    root = decoded(content)
    for _ in range(int(rng.integers(1, 4))):
        lists, records = _found(root)
        if rng.integers(3) and lists:
            _change_list(lists[int(rng.integers(len(lists)))], rng)
        else:
            _change_table(records, rng)
    return encoded(root, content)


@dataclass(frozen=True)
class _Place:
    """A field of a table that holds tables: one, or a list of them."""

    record: Record
    name: str

    @property
    def value(self) -> Any:
        return self.record.fields[self.name]


def _found(root: Record) -> tuple[list[_Place], list[_Place]]:
    """Return the fields that hold lists of tables, and those that hold one."""
    places = list(_walk(root))
    return [p for p in places if isinstance(p.value, list)], [p for p in places if isinstance(p.value, Record)]


def _walk(record: Record) -> Iterator[_Place]:
    for name, value in record.fields.items():
        items = [value] if isinstance(value, Record) else value if isinstance(value, list) else []
        tables = [item for item in items if isinstance(item, Record)]
        if tables:
            yield _Place(record, name)
        for table in tables:
            yield from _walk(table)


def _change_list(place: _Place, rng: np.random.Generator) -> None:
    """Leave out an item, repeat one, exchange two, empty the list or put an empty table in it."""
    items = list(place.value)
    one = int(rng.integers(len(items)))
    other = (one + int(rng.integers(1, max(2, len(items))))) % len(items)
    kind = int(rng.integers(6))
    if kind == 0:
        del items[one]
    elif kind == 1:
        items.insert(other, items[one])
    elif kind == 2:
        items[one], items[other] = items[other], items[one]
    elif kind == 3:
        items[one] = items[other]
    elif kind == 4:
        items[one] = Record(items[one].table)
    else:
        items = items[:other]
    place.record.fields[place.name] = items


def _change_table(places: list[_Place], rng: np.random.Generator) -> None:
    """Leave out a table, empty it, or put one of another node in its place: options of another operator, too."""
    if not places:
        return
    place = places[int(rng.integers(len(places)))]
    alike = [p.value for p in places if p.name == place.name]
    kind = int(rng.integers(3))
    if kind == 0:
        place.record.fields[place.name] = None
    elif kind == 1 and place.name in _OPTIONS:
        names = [name for name in TABLES if name.endswith("Options")]
        place.record.fields[place.name] = Record(names[int(rng.integers(len(names)))])
    else:
        place.record.fields[place.name] = alike[int(rng.integers(len(alike)))]
