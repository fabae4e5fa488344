"""Records as a data frame of pandas or polars, whichever is installed."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, Literal

from litecl.interpreter.errors import MissingExtra

Library = Literal["pandas", "polars"]
_LIBRARIES: tuple[Library, ...] = ("pandas", "polars")


def frame(rows: Sequence[Any], library: Library | None = None) -> Any:
    """Return a data frame with a row for each record and a column for each of its fields.

    rows: dataclasses. A field of several plain values becomes a list, one of records a list of texts. library: by
    default pandas, or polars if only that is installed. Raises MissingExtra if neither is.
    """
    return of_columns(columns(rows), library)


def of_columns(columns: Mapping[str, Any], library: Library | None = None) -> Any:
    """Return a data frame of named columns. See ``frame``."""
    return _module(library).DataFrame(columns)


def columns(rows: Sequence[Any]) -> Mapping[str, list[Any]]:
    """Return the fields of records by name, one plain value per record."""
    names = [each.name for each in fields(rows[0])] if rows else []
    return {name: [_plain(getattr(row, name)) for row in rows] for name in names}


def _module(library: Library | None) -> Any:
    for name in _LIBRARIES if library is None else (library,):
        try:
            return import_module(name)
        except ModuleNotFoundError:
            continue
    raise MissingExtra(f"a data frame needs {library or 'pandas or polars'}: pip install {library or 'pandas'}")


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return str(value) if is_dataclass(value) else value
