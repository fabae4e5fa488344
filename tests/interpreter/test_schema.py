"""The tables of the schema against the accessors that flatc generates."""

from dataclasses import fields
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import numpy as np
import pytest

from litecl.interpreter.file.encoding import encode
from litecl.interpreter.file.flatbuffer import Record, decode
from litecl.interpreter.file.tables import BUILTIN_OPERATORS, SCALARS, TABLES, UNIONS, Field
from litecl.interpreter.op import ControlOp, NoOptions, Op
from litecl.interpreter.ops import BUILTINS
from litecl.interpreter.schema import TensorType


def _value(field: Field, rng: np.random.Generator) -> Any:
    """A value that is not the default, for any field."""
    if field.type in UNIONS:
        return _record(UNIONS[field.type][-1], rng)
    if field.type in TABLES:
        return [_record(field.type, rng)] if field.vector else _record(field.type, rng)
    if field.type == "string":
        return f"text {rng.integers(1000)}"
    if field.type == "bool":
        return [True, False] if field.vector else not field.default
    dtype = np.dtype(SCALARS[field.type])
    numbers = rng.integers(2, 100, 3).astype(dtype)
    return numbers if field.vector else numbers[0].item()


def _record(table: str, rng: np.random.Generator) -> Record:
    return Record(table, **{field.name: _value(field, rng) for field in TABLES[table]})


def _assert_agrees(record: Record, theirs: Any) -> None:
    """Every field of a record is what ai_edge_litert's generated accessors read."""
    for field in TABLES[record.table]:
        head, *rest = field.name.split("_")
        ours, got = record.fields[field.name], getattr(theirs, head + "".join(part.title() for part in rest))
        if field.type in TABLES and field.vector:
            _assert_agrees(ours[0], got[0])
        elif isinstance(ours, Record):
            _assert_agrees(ours, got)
        elif field.type == "string":
            assert got.decode() == ours
        else:
            np.testing.assert_array_equal(got, ours)


@pytest.mark.parametrize("table", TABLES)
def test_tables_agree_with_the_schema(table: str) -> None:
    """What is encoded by our tables is read alike by accessors that flatc generated, for every field of every table."""
    record = _record(table, np.random.default_rng(3))
    content = encode(record, b"TFL3")
    theirs = getattr(schema, table + "T").InitFromPackedBuf(content)
    _assert_agrees(record, theirs)
    _assert_agrees(decode(content, table, b"TFL3"), theirs)


def test_enumerations_agree_with_the_schema() -> None:
    """Operators, element types and unions have the schema's numbers."""
    assert {name: code for code, name in enumerate(BUILTIN_OPERATORS)} == _members(schema.BuiltinOperator)
    assert {type_.name: type_.value for type_ in TensorType} == _members(schema.TensorType)
    for union, members in UNIONS.items():
        assert {name: code for code, name in enumerate(members)} == _members(getattr(schema, union))


@pytest.mark.parametrize("op", BUILTINS.values(), ids=lambda op: op.name)
def test_options_are_tables_of_the_schema(op: Op | ControlOp) -> None:
    """An options dataclass has its table's name, only fields that the table has, and the table's defaults."""
    if op.options is NoOptions:
        return
    ours = {field.name: getattr(op.options(), field.name) for field in fields(op.options)}
    schemas = {field.name: field.default for field in TABLES[op.options.__name__]}
    assert ours.keys() <= schemas.keys()
    assert all(value == schemas[name] for name, value in ours.items() if schemas[name] is not None)


def _members(enumeration: type) -> dict[str, int]:
    return {name: value for name, value in vars(enumeration).items() if isinstance(value, int) and name[0] != "_"}
