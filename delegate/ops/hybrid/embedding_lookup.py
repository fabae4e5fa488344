"""EMBEDDING_LOOKUP of a table of integers with scales: dequantizes the rows that it looks up."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Operand, Refusal, Step
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import pixels
from litecl.delegate.ops.gather import outside
from litecl.delegate.quantized import hybrid
from litecl.interpreter.file.storage import store
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.schema import TensorType

_BITS = {TensorType.INT4: 4, TensorType.INT2: 2}


def _claim(options: Any, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    lookup, table = claims.given(inputs, 0), claims.given(inputs, 1)
    quantization, rows = table.quantization, table.static_shape[0]
    if quantization is None or not quantization.scale.size or table.sparsity is not None:
        return hybrid.claim_weights(table)
    block = quantization.block_size or table.size // max(1, rows)
    if quantization.scale.size * block != table.size and (quantization.block_size or quantization.scale.size > 1):
        return Refusal(f"{quantization.scale.size} scales of a table of {rows} rows")
    return outside(lookup, [rows])


def _lower(call: Call) -> list[Step]:
    lookup, table = call.input(0), call.input(1)
    rows, inner = table.shape[0], math.prod(table.shape[1:])
    quantization = table.spec.quantization
    assert quantization is not None
    scales = quantization.scale.astype(np.float32).reshape(-1)
    row_scales = 0 if scales.size == 1 else scales.size // rows
    block = quantization.block_size or inner
    bits = _BITS.get(table.spec.type, 8)
    share = pixels("embedding_lookup", lookup.spec.size, inner, call.target, work=inner)
    sizes = (np.int32(size) for size in (rows, inner, block, row_scales))
    args: tuple[Arg, ...] = (
        table if bits == 8 else _packed(table),
        Const(scales),
        lookup,
        *call.outputs,
        *share.args,
        *sizes,
    )
    return [share.launch("embedding_lookup", args, {"BITS": bits})]


def _packed(table: Operand) -> Operand | Const:
    """Return the bytes of a table as stored: the file's own if they are there and read-only."""
    stored = store(hybrid.integers(table), table.spec.type)
    if stored.flags.writeable:
        return Const(stored)
    return Operand(TensorSpec(TensorType.UINT8, stored.shape, table.spec.name, stored))


CL_OPS = (ClOp(EMBEDDING_LOOKUP, claim=_claim, lower=_lower),)
