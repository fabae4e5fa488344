"""Hash tables: HASHTABLE, HASHTABLE_IMPORT, HASHTABLE_FIND and HASHTABLE_SIZE, between int64 and strings.

``Context.resources`` keeps a table as its sorted keys and their values.
"""

from typing import Any

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ModelError, ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Context, ControlOp, Inputs, NoOptions, Op, Specs
from litecl.interpreter.ops.variables import check_handle, handle, name_of
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class HashtableOptions:
    table_id: int = 0
    key_dtype: TensorType = TensorType.FLOAT32
    value_dtype: TensorType = TensorType.FLOAT32


def _infer_table(options: HashtableOptions, inputs: Specs) -> list[TensorSpec]:
    if {options.key_dtype, options.value_dtype} != {TensorType.INT64, TensorType.STRING}:
        raise ShapeError(
            f"expected INT64 to STRING or STRING to INT64, got {options.key_dtype.name} to {options.value_dtype.name}"
        )
    return [TensorSpec(TensorType.RESOURCE, (1,))]


def _run_table(options: HashtableOptions, inputs: Inputs) -> list[Array]:
    return [handle(f"HASHTABLE {options.table_id}").reshape(1)]


def _infer_import(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    table, keys, values = require.present(inputs, 3)
    check_handle(table)
    if keys.shape != values.shape:
        raise ShapeError(f"{keys.shape} keys for {values.shape} values")
    return []


def _run_import(options: NoOptions, inputs: Inputs, context: Context) -> list[Array]:
    """Fill a table once; importing again changes nothing."""
    table, keys, values = require.arrays(inputs, 3)
    order = np.argsort(keys.ravel(), kind="stable")
    context.resources.setdefault(name_of(table), (keys.ravel()[order], values.ravel()[order]))
    return []


def _content(table: Array, context: Context) -> Any:
    name = name_of(table)
    if name not in context.resources:
        raise ModelError(f"{name} was never imported")
    return context.resources[name]


def _infer_find(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    table, keys, default = require.present(inputs, 3)
    check_handle(table)
    return [TensorSpec(default.type, keys.shape)]


def _run_find(options: NoOptions, inputs: Inputs, context: Context) -> list[Array]:
    table, wanted, default = require.arrays(inputs, 3)
    keys, values = _content(table, context)
    if not keys.size:
        return [np.broadcast_to(default.reshape(()), wanted.shape).copy()]
    positions = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return [np.where(keys[positions] == wanted, values[positions], default.reshape(()))]


def _infer_size(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    check_handle(require.present(inputs, 1)[0])
    return [TensorSpec(TensorType.INT64, (1,))]


def _run_size(options: NoOptions, inputs: Inputs, context: Context) -> list[Array]:
    (table,) = require.arrays(inputs, 1)
    keys, _ = _content(table, context)
    return [np.array([np.unique(keys).size], np.int64)]


HASHTABLE = Op("HASHTABLE", options=HashtableOptions, infer=_infer_table, run=_run_table, pure=False)
HASHTABLE_IMPORT = ControlOp("HASHTABLE_IMPORT", options=NoOptions, infer=_infer_import, run=_run_import)
HASHTABLE_FIND = ControlOp("HASHTABLE_FIND", options=NoOptions, infer=_infer_find, run=_run_find)
HASHTABLE_SIZE = ControlOp("HASHTABLE_SIZE", options=NoOptions, infer=_infer_size, run=_run_size)
