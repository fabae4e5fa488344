"""Attention on a GPU: a group for a few queries of a product, whose work-items share the keys, then the columns."""

from litecl.delegate.cl_op import Arg, Call, Local, Step
from litecl.delegate.kit.groups import groups, has_room, items_for
from litecl.delegate.matmul.attention import attention as arguments
from litecl.delegate.matmul.attention import begins, flops

_ROWS = 4  # queries of a group, which share what it reads


def attention(call: Call) -> list[Step] | None:
    """Lower ATTENTION, if values come in rows and a group has room for its queries and their scores."""
    a = arguments(call, min(_ROWS, call.input(0).shape[-2]))
    items = items_for(call.target, a.keys)
    local = Local(4 * a.item_rows * (a.depth + a.columns + 2 * items))
    if not call.options.values_in_rows or not has_room(call.target, items, local):
        return None
    bands = -(-a.rows // a.item_rows)
    mask = call.input(3) if a.has_mask else call.input(0)
    operands = (*(call.input(i) for i in range(3)), mask, call.outputs[0])
    args: tuple[Arg, ...] = (*operands, begins(call), a, local)
    defines = {"ROWS": a.item_rows, "KEYS_IN_ROWS": int(call.options.keys_in_rows)}
    return [groups("attention_local", "attention_local", a.products * bands, items, args, defines, flops(a))]
