"""Attention as one kernel: softmax(scale * queries keys^T + mask) values, whose scores are never stored.

No model file contains this operator; the pass ``attention`` creates it. A few rows of queries read keys and
values in place; more rows are multiplied in tiles, after packing the keys and transposing values that are in columns.
JOINED_ATTENTION takes keys and values in two tensors each, such as a cache and the entries not yet written to it.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from litecl.delegate.cl_op import Arg, Call, ClOp, Launch, Operand, Scratch, Step
from litecl.delegate.cpu.target import CpuCall, filled
from litecl.delegate.kit.claims import FLOAT, bits, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.kit.schedule import Tile
from litecl.delegate.kit.strided import copy, view
from litecl.delegate.matmul.attention import AttentionOptions, attention, begins, booleans, flops, values_in_rows
from litecl.interpreter.graph import TensorSpec

_FEW_ROWS = 16  # of queries, for which packing keys does not pay
_PANELS, _PANELS_MASKED = 8, 2  # of keys in a block, whose scores are exponentiated together; masks hide whole blocks
_ROWS_AT_ONCE = 4  # queries that share reads of unpacked keys and values


def lower(call: Call) -> list[Step]:
    """Return the launch that takes one query at a time, and reads keys and values in place."""
    return [_as_they_are(call, 1)]


def _on_cpu(call: CpuCall) -> list[Step]:
    if (rows := call.input(0).shape[-2]) <= _FEW_ROWS:
        return [_as_they_are(call, min(rows, _ROWS_AT_ONCE))]
    values, steps = values_in_rows(call)
    keys, tile, packing = _panels(call)
    keys_size = -(-attention(call).keys // tile.panel) * tile.panel * attention(call).depth
    panels = _PANELS_MASKED if attention(call).has_mask else _PANELS
    defines = {**tile.defines, "PANELS": panels, "VALUES_IN_ROWS": 1}
    return [*steps, *packing, _launch(call, keys, values, tile.rows, defines, keys_size)]


def _as_they_are(call: Call, rows: int) -> Launch:
    """Return the launch that reads keys and values in place. rows: of queries at a time."""
    o: AttentionOptions = call.options
    defines = {"ROWS": rows, "KEYS_IN_ROWS": int(o.keys_in_rows), "VALUES_IN_ROWS": int(o.values_in_rows)}
    return _launch(call, call.input(1), call.input(2), rows, defines)


def _launch(
    call: Call,
    keys: Operand | Scratch,
    values: Operand | Scratch,
    rows: int,
    defines: Mapping[str, str | int | float],
    keys_size: int | None = None,
) -> Launch:
    """Return the launch of attention.cl for some rows at a time. keys_size: of a product, if keys are packed."""
    a = attention(call)
    bands = -(-a.rows // rows)
    own = filled("attention", call.target, bands, a.products, flops(a) / a.products / bands) * rows
    mask = call.input(3) if a.has_mask else call.input(0)
    operands: tuple[Arg, ...] = (call.input(0), keys, values, mask, call.outputs[0], begins(call, keys_size))
    grid = call.target.grid("attention", (a.rows, a.products), (own, 1))
    args = (*operands, attention(call, own))
    return grid.launch("attention", args, {**defines, **booleans(call.options)}, flops(a))


def _panels(call: Call) -> tuple[Scratch, Tile, list[Launch]]:
    """Return the keys packed for tiles, [.., keys / panel, depth, panel]; elements past the last key are undefined."""
    a, keys = attention(call), call.input(1)
    tile = call.target.tile_for("attention", a.rows, a.keys)
    count, panel = keys.spec.size // (a.keys * a.depth), tile.panel
    source = view((count, *keys.shape[-2:]))
    by_key = source if call.options.keys_in_rows else source.swapaxes(1, 2)
    whole, rest = divmod(a.keys, panel)
    panels = view((count, whole + bool(rest), a.depth, panel))
    packed, parts = Scratch(4 * panels.size), []
    if whole:
        parts.append((by_key[:, : whole * panel].reshape(count, whole, panel, a.depth), panels[:, :whole]))
    if rest:
        parts.append((by_key[:, whole * panel :], panels[:, whole, :, :rest]))
    copies = [copy(keys, at.swapaxes(-1, -2), packed, to, bits(keys.spec), call.target) for at, to in parts]
    return packed, tile, copies


def _joined(call: Call) -> list[Step]:
    """Join keys and values, then run attention. Inputs: queries, both keys, both values, mask."""
    o: AttentionOptions = call.options
    queries, mask = call.inputs[0], call.inputs[5:]
    steps: list[Step] = []
    joined = [
        _side_by_side(call, parts, axis, steps)
        for parts, axis in (((1, 2), -2 if o.keys_in_rows else -1), ((3, 4), -2 if o.values_in_rows else -1))
    ]
    return [*steps, *ATTENTION.steps(replace(call, inputs=[queries, *joined, *mask]))]


def _side_by_side(call: Call, parts: tuple[int, int], axis: int, steps: list[Step]) -> Operand:
    """Concatenate two inputs along an axis. steps: the list to which their copies are added."""
    first, second = (call.input(i) for i in parts)
    shape = [*first.shape]
    shape[axis] += second.shape[axis]
    whole = Operand(TensorSpec(first.spec.type, tuple(shape)))
    halves = np.split(view(shape), [first.shape[axis]], axis)
    for part, into in zip((first, second), halves, strict=True):
        steps.append(copy(part, view(part.shape), whole, into, bits(part.spec), call.target))
    return whole


ATTENTION = ClOp(composed("ATTENTION", AttentionOptions), claim=takes(*FLOAT), lower=_on_cpu)
JOINED_ATTENTION = ClOp(composed("JOINED_ATTENTION", AttentionOptions), claim=takes(*FLOAT), lower=_joined)
