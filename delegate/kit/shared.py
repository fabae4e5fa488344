"""Data that host and kernels share: records and codes as OpenCL C text, and records packed as that text lays them out.

A kernel file includes a record or codes by their path in litecl, ``#include <delegate.matmul.geometry.Geometry>``, and
uses fields and codes by name only. So a field is declared once, and nobody keeps an order in sync by hand.
"""

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from enum import IntEnum
from functools import cache
from importlib import import_module
from typing import Any, get_type_hints

import numpy as np

from litecl.delegate.cl_op import Arg, Const, Launch, Record, Weights
from litecl.interpreter.errors import KernelBuildError
from litecl.interpreter.graph import Array

_SCALARS: dict[Any, tuple[str, Any]] = {
    int: ("int", np.int32),
    float: ("float", np.float32),
    np.int64: ("long", np.int64),
}
"""OpenCL C's names of the types that fields may have, and numpy's."""

_NO_RECORDS = np.zeros(0, np.int32)


def layout(record: type) -> list[tuple[str, Any]]:
    """Return a record's fields in memory order, each with its type: a scalar or another record."""
    types = get_type_hints(record)
    return [(field.name, types[field.name]) for field in fields(record)]


@cache
def dtype_of(record: type) -> np.dtype[Any]:
    """Return the layout of a record as a numpy type.

    Raises TypeError if a field has a type that kernels do not share, or if a compiler would add padding.
    """
    if not is_dataclass(record):
        raise TypeError(f"{record.__name__}: expected a dataclass")
    members = []
    for name, type_ in layout(record):
        if type_ not in _SCALARS and not is_dataclass(type_):
            raise TypeError(f"{record.__name__}.{name}: expected a scalar or a record, got {type_}")
        members.append((name, _SCALARS[type_][1] if type_ in _SCALARS else dtype_of(type_)))
    aligned, dense = np.dtype(members, align=True), np.dtype(members)
    if gaps := aligned.itemsize - dense.itemsize:
        raise TypeError(f"{record.__name__}: expected fields without gaps between them, got {gaps} bytes of gaps")
    return aligned


@cache
def header(path: str) -> str:
    """Return the OpenCL C of the record or codes at a path within litecl: ``delegate.matmul.geometry.Geometry``.

    Raises KernelBuildError if there are none.
    """
    module, _, name = path.rpartition(".")
    try:
        shared = getattr(import_module(f"litecl.{module}"), name)
    except (ModuleNotFoundError, AttributeError):
        shared = None
    if not (isinstance(shared, type) and (is_dataclass(shared) or issubclass(shared, IntEnum))):
        raise KernelBuildError(f"#include <{path}>: litecl declares no such record or codes")
    return text(shared)


def text(shared: type) -> str:
    """Return the OpenCL C of a record, including the records in it, or of codes. It may be included twice."""
    name = shared.__name__
    declared = _codes(shared) if issubclass(shared, IntEnum) else _struct(shared)
    return f"#ifndef SHARED_{name}\n#define SHARED_{name}\n{declared}#endif\n"


def _struct(record: type) -> str:
    dtype_of(record)  # refuses what cannot be shared
    members = layout(record)
    parts = "".join(text(type_) for _, type_ in members if type_ not in _SCALARS)
    declared = "".join(f"    {_SCALARS[t][0] if t in _SCALARS else t.__name__} {name};\n" for name, t in members)
    return f"{parts}typedef struct {{\n{declared}}} {record.__name__};\n"


def _codes(codes: type[IntEnum]) -> str:
    """Return a macro CODES_NAME for each code, CODESS (the plural) for their number, and EACH_CODES(DO), which is
    DO(NAME) for each.
    """
    prefix = snake(codes.__name__).upper()
    values = {f"{prefix}_{code.name}": code.value for code in codes} | {f"{prefix}S": len(codes)}
    defined = "".join(f"#define {name} {value if value >= 0 else f'({value})'}\n" for name, value in values.items())
    return f"{defined}#define EACH_{prefix}(DO) {' '.join(f'DO({code.name})' for code in codes)}\n"


def snake(name: str) -> str:
    """Return a class's name as its module would be named: FooBar as foo_bar."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def packed(record: type, values: Iterable[Any]) -> Array:
    """Return records of one type as an array that a kernel reads as ``__global const Name *``."""
    return np.array([_values(value) for value in values], dtype_of(record))


def _values(value: Any) -> tuple[Any, ...]:
    record: type = type(value)
    members = (getattr(value, name) for name in dtype_of(record).names or ())
    return tuple(_values(member) if is_dataclass(member) else member for member in members)


def with_constants(launch: Launch) -> Launch:
    """Return a launch whose weights and records are replaced by constants."""
    return replace(launch, args=tuple(_constant(arg) for arg in launch.args))


def _constant(arg: Arg) -> Arg:
    if isinstance(arg, Record):
        return Const(packed(type(arg), (arg,)))
    if isinstance(arg, Weights):
        return arg.values
    if not isinstance(arg, tuple):
        return arg
    return Const(packed(type(arg[0]), arg) if arg else _NO_RECORDS)
