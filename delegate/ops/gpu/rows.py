"""SOFTMAX, LOG_SOFTMAX, layer norms and ARG_MAX of rows on a GPU: a group for each row."""

from collections.abc import Mapping, Sequence

import numpy as np

from litecl.delegate.cl_op import Arg, Local, Step
from litecl.delegate.gpu.groups import groups
from litecl.delegate.gpu.target import GpuCall

ROWS = "rows_local"
"""The kernel file of functions of whole rows of floats."""

LEAST_LENGTH = 32
"""The least length of a row that is worth a group."""
WIDEST = 8
"""Bytes of an accumulator."""
_EXP_FLOPS = 20  # of an exponential, in additions and multiplications


def softmax(call: GpuCall) -> list[Step] | None:
    """Lower SOFTMAX."""
    return of_rows(call, ROWS, "softmax_local", (call.input(0),), (np.float32(call.options.beta),), _EXP_FLOPS)


def log_softmax(call: GpuCall) -> list[Step] | None:
    """Lower LOG_SOFTMAX."""
    return of_rows(call, ROWS, "log_softmax_local", (call.input(0),), (), _EXP_FLOPS)


def of_rows(
    call: GpuCall,
    kernel: str,
    entry: str,
    operands: Sequence[Arg],
    more: Sequence[np.generic],
    flops: int,
    defines: Mapping[str, str | int | float] | None = None,
) -> list[Step] | None:
    """Return the launch of an entry of a kernel file that gives every row a group. flops: per element."""
    out, length = call.outputs[0], call.outputs[0].shape[-1]
    items = call.target.items_for(length)
    local = Local(WIDEST * items)
    if length < LEAST_LENGTH or not call.target.has_room(items, local):
        return None
    args: tuple[Arg, ...] = (*operands, out, local, np.int32(length), *more)
    return [groups(kernel, entry, out.spec.size // length, items, args, defines or {}, out.spec.size * flops)]


def place(call: GpuCall, rows: int, length: int, defines: Mapping[str, str | int | float]) -> list[Step] | None:
    """Lower ARG_MAX or ARG_MIN along the last dimension, for macros of arg_max.cl."""
    items = call.target.items_for(length)
    local = Local(4 * items)
    if length < LEAST_LENGTH or not call.target.has_room(items, local):
        return None
    args: tuple[Arg, ...] = (call.input(0), call.outputs[0], local, np.int32(length))
    return [groups("reduce_local", "place_local", rows, items, args, defines, rows * length)]
