"""Attention on a GPU: a group for a few queries of a product, whose work-items share the keys, then the columns."""

from dataclasses import replace

from litecl.delegate.cl_op import Arg, Local, Operand, Scratch, Step
from litecl.delegate.gpu.groups import groups
from litecl.delegate.gpu.heads import by_copies, plain_and_views
from litecl.delegate.gpu.target import GpuCall
from litecl.delegate.kit.strided import view
from litecl.delegate.matmul.attention import attention as arguments
from litecl.delegate.matmul.attention import booleans, flops, values_in_rows
from litecl.delegate.ops.attention import lower

_ROWS = 4  # queries of a group, which share what it reads
_FEW_ROWS = 16  # of queries, for which it does not pay to transpose values


def attention(call: GpuCall) -> list[Step] | None:
    """Lower ATTENTION, if a group has room for its queries and their scores."""
    plain, views = plain_and_views(call)
    a = arguments(plain, min(_ROWS, plain.input(0).shape[-2]))
    items = call.target.items_for(a.keys)
    local = Local(4 * a.item_rows * (a.depth + a.columns + 2 * items))
    if not call.target.has_room(items, local):
        return None
    values: Operand | Scratch = call.input(2)
    steps: list[Step] = []
    if not call.options.values_in_rows and a.rows > _FEW_ROWS:
        values, turning = values_in_rows(call)
        steps += turning
        views = replace(views, values=view(views.values.shape))
    bands = -(-a.rows // a.item_rows)
    mask = call.input(3) if a.has_mask else call.input(0)
    operands = (call.input(0), call.input(1), values, mask, call.outputs[0])
    record = views.record(a)
    args: tuple[Arg, ...] = (*operands, views.begins(plain), record, local)
    defines = {"ROWS": a.item_rows, "KEYS_IN_ROWS": int(record.depth_step == 1)} | booleans(call.options)
    return [*steps, groups("attention_local", "attention_local", a.products * bands, items, args, defines, flops(a))]


def one_by_one(call: GpuCall) -> list[Step]:
    """Lower ATTENTION without groups; operands that are turned are transposed in launches before and after."""
    return by_copies(call, lower) if any(call.options.turns) else lower(call)
