"""Attention as one kernel: softmax(scale * queries keys^T + mask) values, whose scores are never stored.

No file has this operator: the pass ``attention`` finds it. A few rows of queries read the keys as they are; more rows
are multiplied in tiles, for which the keys are packed.
"""

from litecl.delegate.cl_op import Arg, Call, ClOp, Launch, Operand, Scratch, Step
from litecl.delegate.cpu.target import CpuCall, filled
from litecl.delegate.kit.claims import FLOAT, bits, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.kit.schedule import Tile
from litecl.delegate.kit.strided import copy, view
from litecl.delegate.matmul.attention import AttentionOptions, attention, begins, flops, values_in_rows
from litecl.delegate.ops.gpu import attention as gpu
from litecl.delegate.ops.gpu.fallback import or_else

_FEW_ROWS = 4  # of queries, for which packing keys does not pay


def _lower(call: Call) -> list[Step]:
    values, steps = values_in_rows(call)
    return [*steps, _launch(call, call.input(1), None, values)]


def _on_cpu(call: CpuCall) -> list[Step]:
    if call.input(0).shape[-2] <= _FEW_ROWS:
        return _lower(call)
    values, steps = values_in_rows(call)
    keys, tile, packing = _panels(call)
    return [*steps, *packing, _launch(call, keys, tile, values)]


def _launch(call: Call, keys: Operand | Scratch, tile: Tile | None, values: Operand | Scratch) -> Launch:
    """Return the launch of attention.cl. tile: that the keys are packed for, None if they are not."""
    a = attention(call)
    rows, keys_size = (1, None) if tile is None else (tile.rows, -(-a.keys // tile.panel) * tile.panel * a.depth)
    bands = -(-a.rows // rows)
    own = filled("attention", call.target, bands, a.products, flops(a) / a.products / bands) * rows
    mask = call.input(3) if a.has_mask else call.input(0)
    operands: tuple[Arg, ...] = (call.input(0), keys, values, mask, call.outputs[0], begins(call, keys_size))
    defines = {"KEYS_IN_ROWS": int(call.options.keys_in_rows)} if tile is None else tile.defines
    grid = call.target.grid("attention", (a.rows, a.products), (own, 1))
    return grid.launch("attention", (*operands, attention(call, own)), defines, flops(a))


def _panels(call: Call) -> tuple[Scratch, Tile, list[Launch]]:
    """Return the keys packed for tiles, [.., keys / panel, depth, panel]; what is past the last key is undefined."""
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


ATTENTION = ClOp(
    composed("ATTENTION", AttentionOptions),
    claim=takes(*FLOAT),
    cpu=_on_cpu,
    gpu=or_else(gpu.attention, gpu.turned(_lower)),
)
