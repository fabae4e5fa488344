"""Records checked against a dataclass's annotations, for data from outside (JSON in a file, keywords).

::

    @dataclass(frozen=True)
    class Manifest:
        format: Literal[2]
        threads: Annotated[tuple[Annotated[int, Within(1, 1024)], ...], Within(1)]

    record(Manifest, json.loads(text))  # Misfit: threads[0]: expected an integer of 1 to 1024, got 0

Annotations may be bool, int, float, str, Any, None, Literal, enumerations (by value), unions, tuples and sequences of
one type (of any collection), mappings, and dataclasses; ``Within`` and ``Matching`` narrow them. An
integer fits a float; a boolean fits no number.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, fields
from enum import Enum
from functools import cache
from math import inf, isfinite
from operator import index
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import brief

_Record = TypeVar("_Record")


class Misfit(ValueError):
    """Data that does not fit an annotation. field: the path of what does not fit, or is missing; "" if that is all."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class Within:
    """Inclusive limits of a number, or of a number of elements."""

    least: float = -inf
    most: float = inf

    def __str__(self) -> str:
        return f"{self.least} to {self.most}" if self.most < inf else f"at least {self.least}"


@dataclass(frozen=True)
class Matching:
    """Texts that a regular expression matches as a whole. kind: its name in errors."""

    pattern: str
    kind: str


def record(kind: type[_Record], data: Any, path: str = "") -> _Record:
    """Return an instance of a dataclass, from a mapping of its fields. path: the data's, for errors.

    Raises Misfit for missing and unknown keys, and for values that do not fit.
    """
    declared = {field.name: field for field in fields(kind) if field.init}  # type: ignore[arg-type]
    if not isinstance(data, Mapping):
        raise _misfit(path, f"a mapping with {[*declared]}", data)
    if unknown := [key for key in data if key not in declared]:
        raise Misfit(f"{_at(path)}expected only {[*declared]}, got {brief(repr(unknown))}", path)
    hints, values = _hints(kind), dict[str, Any]()  # type: ignore[arg-type]  # classes have hashes
    for name, field in declared.items():
        inner = f"{path}.{name}" if path else name
        if name in data:
            values[name] = value(hints[name], data[name], inner)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise Misfit(f"{_at(path)}expected the key {name!r}", inner)
    return kind(**values)


def value(hint: Any, data: Any, path: str) -> Any:
    """Return data that fits an annotation: tuples for sequences, records for mappings. Raises Misfit."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _narrowed(value(arguments[0], data, path), arguments[1:], path)
    if origin in (Union, UnionType):
        return _one_of(arguments, data, path)
    if origin is Literal:
        return _member(arguments, data, path)
    if origin in (tuple, Sequence):
        if isinstance(data, str | bytes | Mapping) or not isinstance(data, Collection):
            raise _misfit(path, "a list", data)
        return tuple(value(arguments[0], each, f"{path}[{i}]") for i, each in enumerate(data))
    if origin is Mapping:
        if not isinstance(data, Mapping):
            raise _misfit(path, "a mapping", data)
        return {
            value(arguments[0], key, path): value(arguments[1], each, f"{path}[{key!r}]") for key, each in data.items()
        }
    if hint in _PLAIN:
        return _PLAIN[hint](data, path)
    if issubclass(hint, Enum):
        return hint(_member([each.value for each in hint], data, path))
    return record(hint, data, path)


def _one_of(hints: Sequence[Any], data: Any, path: str) -> Any:
    """Return data that fits one of several annotations; an error comes from the last one."""
    *others, last = sorted(hints, key=lambda hint: hint is not NoneType)
    for hint in others:
        try:
            return value(hint, data, path)
        except Misfit:
            continue
    return value(last, data, path)


def _member(allowed: Sequence[Any], data: Any, path: str) -> Any:
    """Return the allowed value that data equals; True and 1 differ."""
    for each in allowed:
        if isinstance(data, type(each)) and isinstance(data, bool) == isinstance(each, bool) and data == each:
            return each
    raise _misfit(path, f"one of {[*allowed]}" if len(allowed) > 1 else repr(allowed[0]), data)


def _narrowed(data: Any, limits: Sequence[Any], path: str) -> Any:
    for limit in limits:
        if isinstance(limit, Matching):
            if not re.fullmatch(limit.pattern, data):
                raise _misfit(path, limit.kind, data)
        elif isinstance(limit, Within):
            counted = hasattr(data, "__len__")
            if not limit.least <= (len(data) if counted else data) <= limit.most:
                if counted:
                    raise Misfit(f"{_at(path)}expected a length of {limit}, got {len(data)}", path)
                raise _misfit(path, f"a number of {limit}", data)
    return data


def _integer(data: Any, path: str) -> int:
    try:
        if isinstance(data, bool):
            raise TypeError
        return index(data)
    except TypeError:
        raise _misfit(path, "an integer", data) from None


def _number(data: Any, path: str) -> float:
    try:
        if isinstance(data, bool | str | bytes) or not isfinite(data):
            raise TypeError
        return float(data)
    except (TypeError, OverflowError, ValueError):
        raise _misfit(path, "a finite number", data) from None


def _instance(kind: type, expected: str) -> Callable[[Any, str], Any]:
    def check(data: Any, path: str) -> Any:
        if not isinstance(data, kind):
            raise _misfit(path, expected, data)
        return data

    return check


_PLAIN: Mapping[Any, Callable[[Any, str], Any]] = {
    Any: lambda data, path: data,
    bool: _instance(bool, "true or false"),
    int: _integer,
    float: _number,
    str: _instance(str, "a text"),
    NoneType: _instance(NoneType, "None"),
}


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _at(path: str) -> str:
    return f"{path}: " if path else ""


def _misfit(path: str, expected: str, data: Any) -> Misfit:
    shown = brief(repr(data)) if not isinstance(data, int) or abs(data) < 1 << 128 else "a number of many digits"
    return Misfit(f"{_at(path)}expected {expected}, got {shown}", path)
