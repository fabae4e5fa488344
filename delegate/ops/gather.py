"""GATHER, EMBEDDING_LOOKUP, GATHER_ND and ONE_HOT: rows of a tensor by index, and indices as rows."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Operand, Record, Refusal, Step
from litecl.delegate.kit.claims import C_TYPES, Specs, bits, given, moves
from litecl.delegate.kit.schedule import elements, pixels
from litecl.delegate.kit.strided import dense
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Shape, TensorSpec
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.gather import GATHER, GATHER_ND
from litecl.interpreter.ops.one_hot import ONE_HOT


@dataclass(frozen=True)
class Axis(Record):
    """An indexed dimension of an array."""

    size: int
    stride: int


def _defines(x: Operand, indices: Operand) -> dict[str, str]:
    return {"T": bits(x.spec), "I": C_TYPES[indices.spec.type]}


def outside(indices: TensorSpec, sizes: Sequence[int]) -> Refusal | None:
    """Refuse constant indices that are out of range, which the CPU reports. sizes: of the indexed dimensions."""
    if indices.data is None or bool(np.all((indices.data >= 0) & (indices.data < np.array(sizes)))):
        return None
    return Refusal("an index is out of range")


def _claim_gather(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    x, positions = given(inputs, 0), given(inputs, 1)
    return outside(positions, [x.static_shape[options.axis]]) or moves(options, inputs, outputs)


def _claim_embedding(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    lookup, table = given(inputs, 0), given(inputs, 1)
    if table.type != outputs[0].type:
        return Refusal(f"quantized table of type {table.type.name}")
    return outside(lookup, [table.static_shape[0]]) or moves(options, inputs, outputs)


def _claim_gather_nd(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    x, indices = given(inputs, 0), given(inputs, 1)
    depth = indices.static_shape[-1]
    if depth == 0:
        return Refusal("indices of length 0")
    return outside(indices, x.static_shape[:depth]) or moves(options, inputs, outputs)


def _gather(call: Call, x: Operand, positions: Operand, axis: int, batch: int) -> list[Step]:
    """Gather from x [batches, outer, size, inner] at positions [batches, count]."""
    outer, inner = math.prod(x.shape[batch:axis]), math.prod(x.shape[axis + 1 :])
    count = math.prod(positions.shape[batch:])
    rows = math.prod(x.shape[:batch]) * outer * count
    share = pixels("gather", rows, inner, call.target, work=inner)
    sizes = (np.int32(size) for size in (outer, x.shape[axis], inner, count))
    return [share.launch("gather", (x, positions, *call.outputs, *share.args, *sizes), _defines(x, positions))]


def _lower_gather(call: Call) -> list[Step]:
    x, positions = call.input(0), call.input(1)
    batch = call.options.batch_dims
    batch = batch + len(positions.shape) if batch < 0 else batch
    return _gather(call, x, positions, call.options.axis % len(x.shape), batch)


def _lower_embedding(call: Call) -> list[Step]:
    return _gather(call, call.input(1), call.input(0), 0, 0)


def _lower_gather_nd(call: Call) -> list[Step]:
    x, indices, (y,) = call.input(0), call.input(1), call.outputs
    depth = indices.shape[-1]
    inner = math.prod(x.shape[depth:])
    axes = tuple(map(Axis, x.shape[:depth], dense(x.shape)[:depth]))
    share = pixels("gather", y.spec.size // inner, inner, call.target, work=inner)
    args = (x, indices, y, axes, *share.args, np.int32(depth), np.int32(inner))
    return [share.launch("gather_nd", args, _defines(x, indices))]


def _lower_one_hot(call: Call) -> list[Step]:
    indices, on, off, (y,) = call.input(0), call.input(2), call.input(3), call.outputs
    axis = call.options.axis % len(y.shape)
    inner: Shape = y.shape[axis + 1 :]
    share = elements("one_hot", y.spec.size, call.target)
    args = (indices, on, off, y, *share.args, np.int32(y.shape[axis]), np.int32(math.prod(inner)))
    return [share.launch("one_hot", args, {"T": bits(y.spec), "I": C_TYPES[indices.spec.type]})]


CL_OPS = (
    ClOp(GATHER, claim=_claim_gather, lower=_lower_gather),
    ClOp(EMBEDDING_LOOKUP, claim=_claim_embedding, lower=_lower_embedding),
    ClOp(GATHER_ND, claim=_claim_gather_nd, lower=_lower_gather_nd),
    ClOp(ONE_HOT, claim=moves, lower=_lower_one_hot),
)
