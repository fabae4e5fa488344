"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR, from tables of the positions that the interpreter computes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Const, Refusal, Step
from litecl.delegate.claims import FLOAT, Specs, bits, moves, typed
from litecl.delegate.launch import Chunks, chunks
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.ops.resize import RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR, interpolation, nearest


def _share(call: Call) -> Chunks:
    *_, channels = call.outputs[0].shape
    return chunks(call.outputs[0].spec.size // channels, call.target, work=channels)


def _sizes(call: Call) -> tuple[np.int32, ...]:
    return tuple(np.int32(size) for size in (*call.input(0).shape[1:], *call.outputs[0].shape[1:3]))


def _integers(*columns: Array) -> Const:
    return Const(np.stack(columns, axis=-1).astype(np.int32))


def _lower_bilinear(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    sides = [interpolation(call.options, x.shape[axis], y.shape[axis]) for axis in (1, 2)]
    tables: list[Arg] = [_integers(lower, upper) for lower, upper, _ in sides]
    tables += [Const(distance.astype(np.float32)) for _, _, distance in sides]
    share = _share(call)
    defines: dict[str, str | int] = {"T": "float", "BILINEAR": 1}
    return [
        share.launch("resize", "bilinear", (x, y, *tables, *share.args, *_sizes(call)), defines, 8 * y.spec.size)
    ]


def _lower_nearest(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    tables = [_integers(nearest(call.options, x.shape[axis], y.shape[axis])) for axis in (1, 2)]
    share = _share(call)
    return [share.launch("resize", "nearest", (x, y, *tables, *share.args, *_sizes(call)), {"T": bits(x.spec)})]


def _claim_bilinear(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return typed(inputs[:1], FLOAT)


CL_OPS = (
    ClOp(RESIZE_BILINEAR, claim=_claim_bilinear, lower=_lower_bilinear),
    ClOp(RESIZE_NEAREST_NEIGHBOR, claim=moves, lower=_lower_nearest),
)
