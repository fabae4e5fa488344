"""Attention on a GPU: a group for a few queries of a product, whose work-items share the keys, then the columns."""

from litecl.delegate.cl_op import Arg, Call, Local, Step
from litecl.delegate.kit.groups import groups, has_room, items_for
from litecl.delegate.matmul.attention import attention as arguments
from litecl.delegate.matmul.attention import flops, values_in_rows
from litecl.delegate.matmul.heads import plain_and_views

_ROWS = 4  # queries of a group, which share what it reads


def attention(call: Call) -> list[Step] | None:
    """Lower ATTENTION, if a group has room for its queries and their scores."""
    plain, views = plain_and_views(call)
    a = arguments(plain, min(_ROWS, plain.input(0).shape[-2]))
    items = items_for(call.target, a.keys)
    local = Local(4 * a.item_rows * (a.depth + a.columns + 2 * items))
    if not has_room(call.target, items, local):
        return None
    values, steps = (call.input(2), []) if call.options.values_in_rows else values_in_rows(call)
    bands = -(-a.rows // a.item_rows)
    mask = call.input(3) if a.has_mask else call.input(0)
    operands = (call.input(0), call.input(1), values, mask, call.outputs[0])
    record = views.record(a)
    args: tuple[Arg, ...] = (*operands, views.begins(plain), record, local)
    defines = {"ROWS": a.item_rows, "KEYS_IN_ROWS": int(record.depth_step == 1)}
    return [*steps, groups("attention_local", "attention_local", a.products * bands, items, args, defines, flops(a))]
