"""EMBEDDING_LOOKUP: rows of a table, by index."""

import numpy as np

from litecl.interpreter.arithmetic import hybrid
from litecl.interpreter.errors import ModelError, UnsupportedOp
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import REPLACED
from litecl.interpreter.kit import lowest, require
from litecl.interpreter.op import Inputs, NoOptions, Op, Run, Specs
from litecl.interpreter.schema import TensorType


def _infer(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    lookup, table = require.present(inputs, 2)
    require.types(lookup, (TensorType.INT32,))
    require.rank(lookup, exactly=1)
    require.rank(table, at_least=2)
    return [TensorSpec(table.type, (*lookup.static_shape, *table.static_shape[1:]))]


def _run(options: NoOptions, inputs: Inputs) -> list[Array]:
    lookup, table = require.arrays(inputs, 2)
    if lookup.size and not 0 <= lookup.min() <= lookup.max() < len(table):
        raise ModelError(f"expected indices of 0 to {len(table) - 1}, got {lookup.tolist()}")
    return [table[lookup]]


def _bind(options: NoOptions, inputs: Specs, outputs: Specs) -> Run | None:
    _, table = require.present(inputs, 2)
    (output,) = require.present(outputs, 1)
    if output.type != TensorType.FLOAT32 or table.type == TensorType.FLOAT32:
        return None
    require.types(table, hybrid.INTEGERS)
    quantization = table.quantization
    if quantization is None:
        raise UnsupportedOp(f"expected a quantized table, got {table.type.name} without scales")
    scales = np.asarray(quantization.scale, np.float32)
    row_scales = np.broadcast_to(scales.reshape(-1), (table.static_shape[0],)) if not quantization.block_size else None

    def run(options: NoOptions, inputs: Inputs) -> list[Array]:
        lookup, values = require.arrays(inputs, 2)
        (stored,) = _run(options, inputs)
        rows = hybrid.integers(stored)
        if row_scales is None:
            blocks = rows.reshape(len(lookup), -1, quantization.block_size)
            return [(blocks * scales.reshape(len(values), -1, 1)[lookup]).reshape(rows.shape)]
        return [rows * row_scales[lookup].reshape(-1, *(1,) * (rows.ndim - 1))]

    return run


EMBEDDING_LOOKUP = Op(
    "EMBEDDING_LOOKUP",
    versions=range(1, 6),
    options=NoOptions,
    infer=_infer,
    run=_run,
    bind=_bind,
    declared_types=True,
    integers=REPLACED,
    lowest=lowest.by_type({TensorType.INT8: 3, TensorType.INT4: 4}, 1),
)
