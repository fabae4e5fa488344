"""Two cells over one sequence, one that walks forwards and one that walks backwards."""

from collections.abc import Sequence

from litecl.delegate.cl_op import Call, Launch, Operand
from litecl.delegate.recurrent.lstm_cell import NO_CLIPS, Clips, Memory, run
from litecl.delegate.recurrent.operands import Cell
from litecl.delegate.recurrent.time_loop import time_loop


def both_ways(
    call: Call,
    cells: tuple[Cell, Cell],
    aux: Operand | None,
    outs: Sequence[Operand],
    memories: tuple[Memory, Memory],
    clips: Clips = NO_CLIPS,
) -> list[Launch]:
    """Return the launches of both cells over the first input into ``outs``, which may be one for both.

    aux: an auxiliary input. If it has no weights of its own, the backward cell reads it in place of the first.
    """
    options, x = call.options, call.input(0)
    forward, backward = cells
    merged = options.merge_outputs
    backward_x = x if aux is None or backward.aux_weights else aux
    launches: list[Launch] = []
    for cell, read, out, memory, first in (
        (forward, x, outs[0], memories[0], 0),
        (backward, backward_x, outs[-1], memories[1], forward.outputs if merged else 0),
    ):
        steps, batch = read.shape[:2] if options.time_major else (read.shape[1], read.shape[0])
        width = forward.outputs + backward.outputs if merged else cell.outputs
        way = time_loop(steps, batch, width, time_major=options.time_major, reverse=cell is backward, first=first)
        inputs = [read, aux] if cell.aux_weights and aux is not None else [read]
        launches += run(call, cell, way, inputs, out, memory, clips)
    return launches
