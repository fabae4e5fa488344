"""SOFTMAX, LOG_SOFTMAX, layer norms, reductions and ARG_MAX of rows on a GPU: a group for each row."""

from collections.abc import Mapping, Sequence

import numpy as np

from litecl.delegate.cl_op import Arg, Call, Launch, Local, Step, Target
from litecl.delegate.kit.groups import groups, has_room, items_for

ROWS = "rows_local"
"""The kernel file of functions of whole rows of floats."""

_LEAST_LENGTH = 32  # of a row for which a group pays
_WIDEST = 8  # bytes of an accumulator
_COLUMNS = 16  # columns of a group: neighbours lie in as many bytes as memory gives at once
_EXP_FLOPS = 20  # of an exponential, in additions and multiplications


def softmax(call: Call) -> list[Step] | None:
    """Lower SOFTMAX."""
    return of_rows(call, ROWS, "softmax_local", (call.input(0),), (np.float32(call.options.beta),), _EXP_FLOPS)


def log_softmax(call: Call) -> list[Step] | None:
    """Lower LOG_SOFTMAX."""
    return of_rows(call, ROWS, "log_softmax_local", (call.input(0),), (), _EXP_FLOPS)


def of_rows(
    call: Call,
    kernel: str,
    entry: str,
    operands: Sequence[Arg],
    more: Sequence[np.generic],
    flops: int,
    defines: Mapping[str, str | int | float] | None = None,
) -> list[Step] | None:
    """Return the launch of an entry of a kernel file that gives every row a group. flops: of an element."""
    out, length = call.outputs[0], call.outputs[0].shape[-1]
    items = items_for(call.target, length)
    local = Local(_WIDEST * items)
    if length < _LEAST_LENGTH or not has_room(call.target, items, local):
        return None
    args: tuple[Arg, ...] = (*operands, out, local, np.int32(length), *more)
    return [groups(kernel, entry, out.spec.size // length, items, args, defines or {}, out.spec.size * flops)]


def reduction(
    target: Target, x: Arg, y: Arg, rows: int, length: int, defines: Mapping[str, str | int | float], *more: np.generic
) -> Launch | None:
    """Return a reduction of ``rows`` rows, for macros of reduce.cl, and what it starts from and is divided by."""
    items = items_for(target, length)
    local = Local(_WIDEST * items)
    if length < _LEAST_LENGTH or not has_room(target, items, local):
        return None
    args: tuple[Arg, ...] = (x, y, local, np.int32(length), *more)
    return groups("reduce_local", "reduce_local", rows, items, args, defines, rows * length)


def columns(
    target: Target,
    x: Arg,
    y: Arg,
    shape: tuple[int, int, int],
    defines: Mapping[str, str | int | float],
    *more: np.generic,
) -> Launch | None:
    """Return a reduction of the middle dimension of ``shape``: see ``reduction``."""
    outer, length, inner = shape
    items = items_for(target, length * _COLUMNS)
    local = Local(_WIDEST * items)
    if length < _LEAST_LENGTH or not has_room(target, items, local):
        return None
    args: tuple[Arg, ...] = (x, y, local, np.int32(length), *more, np.int32(inner))
    macros, count = {**defines, "COLUMNS": _COLUMNS}, outer * -(-inner // _COLUMNS)
    return groups("reduce_local", "reduce_columns_local", count, items, args, macros, outer * length * inner)


def place(call: Call, rows: int, length: int, defines: Mapping[str, str | int | float]) -> list[Step] | None:
    """Lower ARG_MAX or ARG_MIN along the last dimension, for macros of arg_max.cl."""
    items = items_for(call.target, length)
    local = Local(4 * items)
    if length < _LEAST_LENGTH or not has_room(call.target, items, local):
        return None
    args: tuple[Arg, ...] = (call.input(0), call.outputs[0], local, np.int32(length))
    return [groups("reduce_local", "place_local", rows, items, args, defines, rows * length)]
