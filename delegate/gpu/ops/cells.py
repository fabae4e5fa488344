"""Recurrent cells of floats on a GPU: LSTMs with their weights in registers (kernels_cl/lstm_local.cl), and products of
inputs in tiles.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from litecl.delegate.cl_op import Activation, Arg, Const, Launch, Operand, Scratch, Weights
from litecl.delegate.gpu.cell_groups import CellShare, cell_share
from litecl.delegate.gpu.local_product import VECTOR, LocalOperands, Slice, in_tiles, local_product, padded_bias
from litecl.delegate.gpu.target import GpuCall, GpuTarget
from litecl.delegate.gpu.tiles import arithmetic, local_share
from litecl.delegate.kit.schedule import flops
from litecl.delegate.matmul.geometry import matrix
from litecl.delegate.recurrent import lstm_cell
from litecl.delegate.recurrent.lstm_cell import Clips, Memory
from litecl.delegate.recurrent.operands import Cell
from litecl.delegate.recurrent.time_loop import Gate, Recurrence, TimeLoop
from litecl.interpreter.graph import Array

_MOST_QUEUED = 256  # steps, with a launch each


def run(
    call: GpuCall,
    cell: Cell,
    time: TimeLoop,
    inputs: Sequence[Operand],
    out: Operand,
    memory: Memory,
    clips: Clips,
) -> list[Launch]:
    """Return the launches of any cell; see ``lstm_cell.run``."""
    share = _share_of(call.target, cell, time)
    if share is None:
        return lstm_cell.plain(call, cell, time, inputs, out, memory, clips, product=_product)
    sums, launches = lstm_cell.of_inputs(call, cell, time, inputs, 1, _product)
    states, bounds = [*memory.before, *memory.after], (np.float32(clips.cell), *call.activation.bounds)
    defines = call.activation.defines
    return [*launches, *_launches(share, cell, time, call.target, sums, states, out, defines, bounds)]


def _product(
    call: GpuCall, x: Operand, values: Array, start: Array, out: Scratch, sums: Scratch | None, rows: int
) -> list[Launch]:
    """Return the launch of an input's product by tiles in local memory; see ``lstm_cell.float_product``."""
    (columns, depth), target = values.shape, call.target
    share = local_share(target, 1, rows, columns, depth, arithmetic=arithmetic(call)) if depth % VECTOR == 0 else None
    if share is None:
        return lstm_cell.float_product(call, x, values, start, out, sums, rows)
    weights = in_tiles(values[np.newaxis], share)
    operands = LocalOperands(x, weights, padded_bias(start, share), out, columns, sums)
    return [local_product(operands, share, matrix(rows, depth, columns), [Slice(0, 0, 0, 0)], Activation(), {})]


def _share_of(target: GpuTarget, cell: Cell, time: TimeLoop) -> CellShare | None:
    """Return how groups share a cell's units; None if lstm.cl has to run it: for cells of one gate, integer weights,
    normalized layers and projections, and if groups would have to wait for each other but can't.
    """
    other = cell.gates == 1 or cell.is_hybrid or bool(cell.norm) or cell.projection is not None
    share = None if other else cell_share(target, cell.units, time.batch)
    if share is None or time.steps == 0:
        return None
    return share if share.groups == 1 or share.at_once or time.steps <= _MOST_QUEUED else None


def _launches(
    share: CellShare,
    cell: Cell,
    time: TimeLoop,
    target: GpuTarget,
    sums: Scratch,
    states: Sequence[Operand | Scratch],
    out: Operand,
    defines: Mapping[str, str | int | float],
    bounds: Sequence[np.float32],
) -> list[Launch]:
    """Return one launch for all time steps, or one for each where several groups are not sure to run at once.

    sums: of the inputs, [rows][units][gates]. states: output and cell state before and after. bounds: the clip of the
    cell state, and the arguments of the activation.
    """
    shape = Recurrence(time, cell.units, share.groups, cell.outputs, 0, 0)
    values = _packed(share, [matrix.values for matrix in cell.recurrent_weights])
    weights = Weights(Const(values))
    peephole = Const(np.stack(cell.peephole).astype(np.float32) if cell.peephole else np.zeros(1, np.float32))
    # Kept from run to run, so it is no scratch, which other launches overwrite.
    handed_on = share.groups > 1 and share.at_once and time.steps > 1
    handed = Const(np.zeros(time.batch * (1 + 2 * cell.units) if handed_on else 1, np.uint64))
    flags = {"CIFG": cell.gates < len(Gate), "PEEPHOLE": bool(cell.peephole), "HANDED_ON": handed_on}
    macros: dict[str, str | int | float] = {"NV": cell.gates, **defines}
    macros |= {name: 1 for name, on in flags.items() if on}
    before: tuple[Arg, ...] = (sums, weights, peephole, *states, out, handed, share.local, shape)
    whole = share.groups == 1 or handed_on
    parts = [(0, time.steps)] if whole else [(t, t + 1) for t in range(time.steps)]
    return [
        share.launch(
            (*before, np.int32(first), np.int32(last), *bounds),
            macros,
            flops((last - first) * time.batch, cell.gates * cell.units, cell.outputs),
        )
        for first, last in parts
    ]


def _packed(share: CellShare, gates: Sequence[Array]) -> Array:
    """Return gates' weights [units, outputs] as [groups][depth][lanes][units of a group][4]."""
    units, outputs = gates[0].shape
    padded = np.zeros((len(Gate), share.groups * share.units, share.depth * share.lanes), np.float32)
    padded[: len(gates), :units, :outputs] = np.stack(gates)
    parts = padded.reshape(len(Gate), share.groups, share.units, share.depth, share.lanes)
    return np.ascontiguousarray(parts.transpose(1, 3, 4, 2, 0))
