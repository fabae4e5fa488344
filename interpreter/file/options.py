"""Conversion of operator options between a file and ``interpreter/ops``'s dataclasses, with no code per operator.

An options dataclass is named after its schema table and its fields after the table's, so one conversion serves all.
Custom operators carry bytes. Options of an operator without a record in litecl are kept as read.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import IntEnum
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from litecl.interpreter.errors import ModelError
from litecl.interpreter.file.flatbuffer import Record
from litecl.interpreter.file.tables import TABLES
from litecl.interpreter.graph import Array
from litecl.interpreter.op import ControlOp, NoOptions, Op
from litecl.interpreter.options import CustomOptions, RawOptions, flexbuffer_map

_NUMBER = (int, float, np.number, np.bool_)
_TAKEN: dict[type, tuple[type, ...]] = {
    bool: _NUMBER,
    int: _NUMBER,
    float: _NUMBER,
    str: (str,),
    tuple: (list, tuple, np.ndarray),
}
"""The types of values that a field of each type accepts."""


def decode_options(op: Op | ControlOp, table: Record | None) -> Any:
    """Return a builtin's options from its table; schema defaults if there is none, or it is another operator's."""
    if op.options is RawOptions:
        return RawOptions() if table is None else RawOptions(table.table, table.fields)
    if op.options is NoOptions:
        return NoOptions()
    given = table is not None and table.table == op.options.__name__
    values = table.fields if table and given else {f.name: f.default for f in TABLES[op.options.__name__]}
    hints = _hints(op.options)
    return op.options(**{f.name: _decoded(op, f.name, hints[f.name], values) for f in fields(op.options)})


def encode_options(options: object) -> Record | None:
    """Return the table of a builtin's options, None for an operator without options, or a RESHAPE by its operand."""
    if options is None or isinstance(options, NoOptions):
        return None
    if isinstance(options, RawOptions):
        return Record(options.table, **options.values) if options.table else None
    table = next((each.__name__ for each in type(options).__mro__ if each.__name__ in TABLES), None)
    if table is None:
        raise ModelError(f"options {type(options).__name__} are not a table of the schema")
    values = {name: _encoded(value) for name, value in vars(options).items()}
    if table == "ReshapeOptions" and not values["new_shape"]:
        return None  # OpenVINO takes an empty one, not the operand, for the shape; tf2onnx refuses a table without one
    return Record(table, **values)


def decode_custom_options(op: Op | ControlOp, data: bytes) -> Any:
    """Return the options of a custom operator: bytes, or a dataclass filled from a FlexBuffers map by field names."""
    if op.options is CustomOptions:
        return CustomOptions(data)
    values = flexbuffer_map(data) if data else {}
    hints = _hints(op.options)
    known = {f.name: hints[f.name] for f in fields(op.options) if f.name in values}
    return op.options(**{name: _decoded(op, name, hint, values) for name, hint in known.items()})


def encode_custom_options(options: object) -> bytes:
    """Return the bytes of a custom operator's options."""
    if options is None or isinstance(options, NoOptions):
        return b""
    if isinstance(options, CustomOptions):
        return options.data
    if isinstance(options, bytes):
        return options
    from flatbuffers import flexbuffers  # few models need it

    return bytes(flexbuffers.Dumps(dict(sorted(vars(options).items()))))


@cache
def _hints(options: type) -> dict[str, Any]:
    return get_type_hints(options)


def _decoded(op: Op | ControlOp, name: str, hint: Any, values: Mapping[str, Any]) -> Any:
    """Return a field's value as the dataclass declares it: an enumeration, a tuple, an array, text, a number."""
    value = values[name]
    if isinstance(hint, type) and issubclass(hint, IntEnum):
        return _enumerated(op, name, hint, value)
    if get_origin(hint) is tuple:
        return () if value is None else _items(op, name, get_args(hint)[0], _plain(op, name, tuple, value))
    if hint is bytes:
        return b"" if value is None else bytes(value)
    if hint is str and value is None:
        return ""
    return hint(_plain(op, name, hint, value)) if isinstance(hint, type) and hint in _TAKEN else value


def _items(op: Op | ControlOp, name: str, hint: type, values: Sequence[Any] | Array) -> tuple[Any, ...]:
    """Return a vector, whose elements have one type, or a custom option's list, whose items may be anything."""
    if isinstance(values, np.ndarray):
        return tuple(values.tolist())
    return tuple(hint(_plain(op, f"{name}[{i}]", hint, value)) for i, value in enumerate(values))


def _plain(op: Op | ControlOp, name: str, hint: type, value: Any) -> Any:
    """Return a value if it fits the type of its field: custom options may hold anything under a name."""
    is_taken = isinstance(value, _TAKEN[hint])
    if not is_taken or (hint in (bool, int) and not math.isfinite(value)):
        raise ModelError(f"{op.name}: expected {name} of type {hint.__name__}, got {value!r:.60}")
    return value


def _enumerated(op: Op | ControlOp, name: str, kind: type[IntEnum], value: int) -> IntEnum:
    try:
        return kind(value)
    except ValueError as error:
        raise ModelError(f"{op.name}: {name} {value} is not a {kind.__name__}") from error


def _encoded(value: Any) -> Any:
    if isinstance(value, bytes):
        return np.frombuffer(value, np.uint8)
    return int(value) if isinstance(value, IntEnum) else value
