"""Lookup tables: TFLite's hash tables between strings and int64, others by comparison with all keys."""

import zlib

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder, Lowering
from litecl.converter.lower.expression import Expression
from litecl.converter.records import Table
from litecl.interpreter.ops import reduce
from litecl.interpreter.ops.arg_max import ARG_MAX, ArgMaxOptions
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.hashtable import HASHTABLE, HASHTABLE_FIND, HashtableOptions
from litecl.interpreter.schema import TensorType

_HASHED = {TensorType.INT64, TensorType.STRING}


def is_hashed(table: Table) -> bool:
    """Return whether TFLite has a hash table for the table's types."""
    return {TensorType.of(table.data.dtype), TensorType.of(table.values.dtype)} == _HASHED


def options_of(table: Table) -> HashtableOptions:
    """Return the options of the operator that makes the table's handle."""
    types = (TensorType.of(array.dtype) for array in (table.data, table.values))
    return HashtableOptions(zlib.crc32(table.key.encode()) & 0x7FFFFFFF, *types)


def _table(b: Builder) -> Table:
    table = b.node.input(0).variable
    if not isinstance(table, Table):
        raise b.error("its table is unknown at conversion; track it as a table of the model")
    return table


def _find(b: Builder) -> Value:
    table, keys, default = _table(b), Expression(b, b.node.input(1)), Expression(b, b.node.input(2))
    if is_hashed(table):
        handle = b.op(HASHTABLE, [], options_of(table), type=TensorType.RESOURCE, shape=(1,))
        return b.op(HASHTABLE_FIND, [handle, keys.value, default.value])
    if table.values.ndim != 1 or not table.data.size or TensorType.STRING in (keys.type, default.type):
        raise b.error("TFLite has tables only from numbers to numbers, and between strings and int64")
    rank = len(b.shape(keys.value))
    equal = keys.expand(-1).equals(Expression(b, b.const(table.data)))
    places = b.op(
        ARG_MAX,
        [equal.cast(TensorType.FLOAT32).value, b.const(rank, np.int32)],
        ArgMaxOptions(TensorType.INT32),
        type=TensorType.INT32,
        shape=keys.value.shape,
    )
    values = Expression(b, b.op(GATHER, [b.const(table.values), places], GatherOptions()))
    return equal.reduce(reduce.REDUCE_ANY, [-1]).select(values, default).value


LOWERINGS: dict[str, Lowering] = {
    "LookupTableFindV2": _find,
    "LookupTableSizeV2": lambda b: b.const(len(_table(b).data), np.int64),
}
