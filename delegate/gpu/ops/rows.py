"""SOFTMAX, LOG_SOFTMAX, layer norms and ARG_MAX of rows on a GPU: a group for each row."""

from collections.abc import Mapping, Sequence

import numpy as np

from litecl.delegate.cl_op import Arg, Local, Step
from litecl.delegate.gpu.groups import groups
from litecl.delegate.gpu.target import GpuCall
from litecl.delegate.kit.claims import C_TYPES, integers
from litecl.delegate.ops import layer_norm
from litecl.delegate.ops.arg_max import sizes
from litecl.delegate.ops.quantized import softmax as quantized
from litecl.interpreter.schema import TensorType

_ROWS = "rows_local"  # the kernel file of functions of whole rows of floats
LEAST_LENGTH = 32
"""The least length of a row that is worth a group."""
WIDEST = 8
"""Bytes of an accumulator."""
_EXP_FLOPS = 20  # of an exponential, in additions and multiplications


def softmax(call: GpuCall) -> list[Step] | None:
    """Lower SOFTMAX."""
    return _of_rows(call, _ROWS, "softmax_local", (call.input(0),), (np.float32(call.options.beta),), _EXP_FLOPS)


def log_softmax(call: GpuCall) -> list[Step] | None:
    """Lower LOG_SOFTMAX."""
    return _of_rows(call, _ROWS, "log_softmax_local", (call.input(0),), (), _EXP_FLOPS)


def _of_rows(
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


def quantized_softmax(call: GpuCall) -> list[Step] | None:
    """Lower SOFTMAX of bytes."""
    x, (y,) = call.input(0), call.outputs
    if x.spec.type == TensorType.INT16:
        return None
    kernel, operands = "quantized_softmax_local", (x, quantized.table(call))
    return _of_rows(call, kernel, kernel, operands, quantized.limits(y), quantized.WORK, quantized.defines(x, y))


def norm(call: GpuCall, *, centred: bool) -> list[Step] | None:
    """Lower LAYER_NORM or RMS_NORM. centred: see ``layer_norm.operands``."""
    return _of_rows(call, _ROWS, "layer_norm_local", *layer_norm.operands(call, centred), layer_norm.FLOPS)


def arg(call: GpuCall, *, comparison: str) -> list[Step] | None:
    """Lower ARG_MAX or ARG_MIN along the last dimension. comparison: a macro of arg_max.cl."""
    x, (y,) = call.input(0), call.outputs
    outer, length, inner = sizes(x.shape, *integers(call.input(1).data))
    items = call.target.items_for(length)
    local = Local(4 * items)
    if inner > 1 or length < LEAST_LENGTH or not call.target.has_room(items, local):
        return None
    defines = {"T": C_TYPES[x.spec.type], "R": C_TYPES[y.spec.type], "OP": comparison}
    return [groups("reduce_local", "place_local", outer, items, (x, y, local, np.int32(length)), defines, x.spec.size)]
