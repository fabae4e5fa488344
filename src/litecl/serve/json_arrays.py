"""Reads and writes JSON in slices, with numpy arrays for arrays of numbers.

Python's ``json`` holds the GIL for a whole document and creates an object per number. Here a thread that reads or
writes a long array lets others run after every slice, and each slice's numbers become an array at once.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from re import compile as pattern
from typing import Any, Never

import numpy as np

from litecl.interpreter.errors import ModelError
from litecl.interpreter.graph import Array

_SLICE = 1 << 15  # characters read or numbers written at once
_MOST_ITEMS = 1 << 16  # per array, not counting numbers
_MOST_DEPTH = 16
_SPACE = pattern(r"[ \t\n\r]*")


def parse(text: str, most_values: int) -> Any:
    """Parse a JSON document. An array of numbers or booleans, or of such arrays of one shape, becomes a numpy array: of
    bool, int64, or float64 if a number is real; of objects if it mixes booleans and numbers or exceeds int64.

    most_values: limit for objects, strings and arrays, except short arrays of numbers. Raises ModelError for invalid
    JSON, including NaN and infinity, and for more values, deeper nesting or longer arrays than allowed.
    """
    try:
        return _Reader(text, most_values).document()
    except (ValueError, OverflowError) as error:  # ValueError covers integers of thousands of digits too
        message = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise ModelError(f"the request is no JSON that can be read: {message}") from None


def pieces(array: Array) -> Iterator[str]:
    """Yield the elements of an array of numbers or strings (C order) as pieces of JSON, to be joined with commas.

    Non-finite numbers become null, as JSON lacks them.
    """
    flat = array.reshape(-1)
    for start in range(0, flat.size, _SLICE):
        values = flat[start : start + _SLICE]
        if values.dtype.kind not in "biuOSU":
            values = values.astype(np.float64)
            if not (finite := np.isfinite(values)).all():
                values = values.astype(np.object_)
                values[~finite] = None
        yield json.dumps(values.tolist())[1:-1]


class _Reader:
    def __init__(self, text: str, most_values: int) -> None:
        self._text, self._left, self._most = text, most_values, most_values

    def document(self) -> Any:
        value, at = self._value(0, 0)
        if self._skip(at) != len(self._text):
            raise ValueError("expected the end after the document")
        return value

    def _value(self, at: int, depth: int) -> tuple[Any, int]:
        at = self._skip(at)
        self._spend(1)
        if depth > _MOST_DEPTH:
            raise _too_deep()
        read = {"{": self._object, "[": self._array}.get(self._text[at : at + 1])
        if read is None:
            return _JSON.raw_decode(self._text, at)
        return self._short(at, depth) or read(at + 1, depth)

    def _spend(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise ValueError(f"it has more than {self._most} values beside arrays of numbers")

    def _short(self, at: int, depth: int) -> tuple[Any, int] | None:
        """Decode an object or array with the C decoder. Returns None if it is longer than a slice."""
        text = self._text[at : at + _SLICE]
        try:
            value, size = _JSON.raw_decode(text)
        except json.JSONDecodeError:
            return None
        except RecursionError:
            raise _too_deep() from None
        text = text[:size]
        if (array := _numbers(value, text)) is not None:
            return array, at + size
        self._spend(text.count(",") + text.count(":"))
        return _packed(value, depth), at + size

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}

        def item(at: int) -> int:
            name, at = self._value(at, depth + 1)
            if not isinstance(name, str):
                raise ValueError("expected a string as a name")
            at = self._skip(at)
            if self._text[at : at + 1] != ":":
                raise ValueError("expected ':' after a name")
            members[name], at = self._value(at + 1, depth + 1)
            return at

        return members, self._items(at, "}", item)

    def _array(self, at: int, depth: int) -> tuple[Any, int]:
        end = self._text.find("]", at)
        if end >= 0 and all(self._text.find(other, at, end) < 0 for other in '["{'):
            return self._scalars(at, end), end + 1
        items: list[Any] = []

        def item(at: int) -> int:
            if len(items) == _MOST_ITEMS:
                raise ValueError(
                    f"an array has more than {_MOST_ITEMS} items, not counting numbers: send those as one flat array"
                )
            value, at = self._value(at, depth + 1)
            items.append(value)
            return at

        at = self._items(at, "]", item)
        return _stacked(items), at

    def _scalars(self, at: int, end: int) -> Array:
        """Read an array without strings, arrays or objects among its items."""
        parts: list[Array] = []
        while at <= end:
            comma = self._text.find(",", min(at + _SLICE, end), end)
            until = comma if comma >= 0 else end
            if until - at > 2 * _SLICE:
                raise ValueError(f"a value has more than {_SLICE} characters")
            values = _JSON.decode(f"[{self._text[at:until]}]")
            if not values:
                raise ValueError("expected a value after ','")
            parts.append(_array_of(values))
            at = until + 1
        return _joined(parts, np.concatenate)

    def _items(self, at: int, end: str, item: Callable[[int], int]) -> int:
        """Read comma-separated items. Return the position after the end."""
        at = self._skip(at)
        if self._text[at : at + 1] == end:
            return at + 1
        while True:
            at = self._skip(item(at))
            character, at = self._text[at : at + 1], at + 1
            if character == end:
                return at
            if character != ",":
                raise ValueError(f"expected ',' or '{end}'")

    def _skip(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return at if match is None else match.end()


def _numbers(value: Any, text: str) -> Array | None:
    """Return a list of numbers, or of such lists of one shape, as an array; None if it may be anything else."""
    if not isinstance(value, list) or any(other in text for other in _OTHERS):
        return None
    try:
        array = np.array(value)
    except (ValueError, OverflowError):  # ragged rows
        return None
    real = "." in text or "e" in text or "E" in text
    return array if array.dtype == (np.float64 if real else np.int64) and array.ndim <= _MOST_DEPTH else None


def _packed(value: Any, depth: int) -> Any:
    """Replace lists of non-string scalars, and of arrays of one shape, by numpy arrays in a decoded value."""
    if depth > _MOST_DEPTH:
        raise _too_deep()
    if isinstance(value, dict):
        return {name: _packed(each, depth + 1) for name, each in value.items()}
    if not isinstance(value, list):
        return value
    if not any(isinstance(each, list | dict | str) for each in value):
        return _array_of(value)
    return _stacked([_packed(each, depth + 1) for each in value])


def _stacked(items: list[Any]) -> Any:
    arrays = all(isinstance(each, np.ndarray) for each in items) and len({each.shape for each in items}) == 1
    return _joined(items, np.stack) if arrays else items


def _too_deep() -> ValueError:
    return ValueError(f"it is nested deeper than {_MOST_DEPTH}")


def _array_of(values: Sequence[Any]) -> Array:
    types = {type(value) for value in values}
    if not types:
        return np.empty(0)
    if types == {bool}:
        return np.array(values, np.bool_)
    if types == {int}:
        wide = max(values) >= 1 << 63 or min(values) < -(1 << 63)
        return np.array(values, np.object_ if wide else np.int64)
    if types <= {int, float}:
        return np.array(values, np.float64)
    return np.array(values, np.object_)


def _joined(parts: Sequence[Array], join: Callable[[Sequence[Array]], Array]) -> Array:
    """Join arrays, keeping the types of their values: numpy would turn booleans into numbers."""
    types = {part.dtype for part in parts if part.size}
    same = len(types) <= 1 or types == {np.dtype(np.int64), np.dtype(np.float64)}
    return join(parts if same else [part.astype(np.object_) for part in parts])


def _refuse(constant: str) -> Never:
    raise ValueError(f"JSON has no {constant}")


_OTHERS = ('"', "{", "t", "f", "n")  # in strings, objects, true, false and null
_JSON = json.JSONDecoder(parse_constant=_refuse)
