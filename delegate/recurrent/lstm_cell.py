"""Launches that run a cell over all time steps, shared by the recurrent operators (kernels_cl/lstm.cl)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Activation, Arg, Call, Const, Launch, Operand, Scratch, Target, Weights
from litecl.delegate.kit.schedule import flops, groups, rows_of
from litecl.delegate.matmul.geometry import matrix
from litecl.delegate.matmul.product import Packed, Product, gemm, panels
from litecl.delegate.quantized.hybrid_product import HybridWeights, hybrid_product
from litecl.delegate.quantized.integers import packed
from litecl.delegate.recurrent.operands import Cell, Matrix
from litecl.delegate.recurrent.time_loop import Gate, Recurrence, TimeLoop, by_block, width_of
from litecl.delegate.target import own
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array
from litecl.interpreter.recurrent.lstm_cell import CellOptions, Layout

_NOTHING = np.zeros(1, np.float32)
_MOST_VECTORS = 4  # of units of a cell with one gate, summed at once


@dataclass(frozen=True, eq=False)
class Memory:
    """The states that a cell reads and those that it writes: its output and, of an LSTM, the cell state."""

    before: Sequence[Operand]
    after: Sequence[Operand | Scratch]


@dataclass(frozen=True)
class Clips:
    """Bounds of the cell state and of the projection, 0 for none."""

    cell: float = 0.0
    projection: float = 0.0


NO_CLIPS = Clips()


def memory_of(call: Call, layout: Layout, after: Sequence[Operand]) -> Memory:
    """Return the states that an LSTM reads, and ``after``, which it writes."""
    return Memory([call.input(layout.output_state), call.input(layout.cell_state)], after)


def clips_of(options: CellOptions) -> Clips:
    """Return the bounds of an LSTM."""
    return Clips(options.cell_clip, options.proj_clip)


FloatProduct = Callable[[Any, Operand, Array, Array, Scratch, Scratch | None, int], list[Launch]]


def float_product(
    call: Call, x: Operand, values: Array, start: Array, out: Scratch, sums: Scratch | None, rows: int
) -> list[Launch]:
    """Return the launches of ``rows`` rows of x times ``values`` [columns, depth], plus ``start`` [columns, 1] and
    ``sums``.
    """
    (columns, depth), target = values.shape, call.target
    tile = target.tile_for("gemm", rows, columns)
    by_panel = Packed(Weights(Const(panels(values, tile.panel))))
    begin = Packed(Const(panels(start, tile.panel)))
    return [gemm(Product(rows, columns, depth), tile, target, x, by_panel, begin, out, Activation(), sums)]


def run(
    call: Call,
    cell: Cell,
    time: TimeLoop,
    inputs: Sequence[Operand],
    out: Operand,
    memory: Memory,
    clips: Clips = NO_CLIPS,
) -> list[Launch]:
    """Return the launches of any cell over its inputs (x, and the auxiliary one if it has weights for it) into ``out``,
    in the device's own way.
    """
    return own(call.target, plain)(call, cell, time, inputs, out, memory, clips)


def plain(
    call: Call,
    cell: Cell,
    time: TimeLoop,
    inputs: Sequence[Operand],
    out: Operand,
    memory: Memory,
    clips: Clips,
    product: FloatProduct = float_product,
) -> list[Launch]:
    """Return the launches of any cell, with lstm.cl; see ``run``. product: how inputs of floats are multiplied."""
    target = call.target
    vector = target.lanes
    vectors = min(_MOST_VECTORS, -(-cell.units // vector)) if cell.gates == 1 and vector > 1 else 1
    width = vectors * vector
    sums, launches = of_inputs(call, cell, time, inputs, width, product)
    rows = rows_of("lstm", target, time.batch)
    blocks = -(-cell.units // width)
    row_bytes, hidden_bytes = (-(-n // 4) * 4 for n in (cell.outputs, cell.units))
    shape = Recurrence(time, cell.units, blocks, cell.outputs, row_bytes, hidden_bytes)
    recurrent, own = _recurrent(call, cell, width, target)
    operands: list[Arg] = [sums, recurrent]
    bias = cell.bias if cell.norm else []
    operands += [Const(_blocks(vectors, width)) for vectors in (cell.peephole, cell.norm, bias)]
    projection, projection_stage = _projection(cell, vector)
    bias_of_projection = np.zeros(cell.outputs, np.float32) if cell.projection_bias is None else cell.projection_bias
    operands += [projection, Const(panels(bias_of_projection[:, None], vector))]
    scratch = Scratch(4 * time.batch * blocks * width)
    before, after = [*memory.before], [*memory.after]
    if cell.gates == 1:  # it has no state but its output
        before, after = before * 2, [*after, scratch]
    operands += [*before, *after, out, scratch, shape, np.float32(clips.cell), np.float32(clips.projection)]
    if cell.is_hybrid:
        padded = -(-time.batch // rows) * rows
        kept = [Scratch(padded * n) for n in (row_bytes, hidden_bytes)]
        own += [projection_stage, *kept, np.int32(call.options.asymmetric_quantize_inputs)]
    launch = groups("lstm", target, time.batch, rows).launch(
        "lstm",
        (*operands, *call.activation.bounds, *own),
        _defines(cell, rows, vectors, width) | width_of(target) | call.activation.defines,
        flops(time.steps * time.batch, cell.gates * cell.units, cell.outputs),
    )
    return [*launches, launch]


def of_inputs(
    call: Call, cell: Cell, time: TimeLoop, inputs: Sequence[Operand], width: int, product: FloatProduct
) -> tuple[Scratch, list[Launch]]:
    """Return the inputs' part of the gates at all steps, with biases unless a normalization precedes them."""
    rows, columns = time.steps * time.batch, -(-cell.units // width) * width * cell.gates
    bias = [np.zeros_like(array) for array in cell.bias] if cell.norm else cell.bias
    starts = [by_block([array[:, None] for array in bias], width), np.zeros((columns, 1), np.float32)]
    sums: Scratch | None = None
    launches: list[Launch] = []
    for x, weights, start in zip(inputs, (cell.input_weights, cell.aux_weights), starts, strict=False):
        out = Scratch(4 * rows * columns)
        launches += _product(call, x, weights, start, out, sums, (rows, width), product)
        sums = out
    assert sums is not None
    return sums, launches


def _product(
    call: Call,
    x: Operand,
    weights: Sequence[Matrix],
    start: Array,
    out: Scratch,
    sums: Scratch | None,
    size: tuple[int, int],
    product: FloatProduct,
) -> list[Launch]:
    """Return the launches of the gates' weights times an input, plus ``start`` [columns, 1] and ``sums``. size: the
    rows, and the units of a block.
    """
    rows, width = size
    values = by_block([matrix.values for matrix in weights], width)
    if weights[0].scales is None:
        return product(call, x, values, start, out, sums, rows)
    both = HybridWeights(values, _scales(weights, width), start[:, 0], _bits(weights))
    g, kind = matrix(rows, x.shape[-1], len(values)), call.options.asymmetric_quantize_inputs
    return hybrid_product(x, g, rows, both, out, call.target, Activation(), sums, kind=kind)


def _scales(weights: Sequence[Matrix], width: int) -> Array:
    """Return the scales of all gates' columns, in the columns' order."""
    return by_block([matrix.scales[:, None] for matrix in weights if matrix.scales is not None], width)[:, 0]


def _bits(weights: Sequence[Matrix]) -> int:
    """Return the bits that store a weight of any gate."""
    return max(matrix.bits for matrix in weights)


def _recurrent(call: Call, cell: Cell, width: int, target: Target) -> tuple[Arg, list[Arg]]:
    """Return the recurrent weights and, for integers, their stage."""
    weights, panel = cell.recurrent_weights, cell.gates * width
    values = by_block([matrix.values for matrix in weights], width)
    if not cell.is_hybrid:
        return Weights(Const(panels(values, panel))), []
    both = HybridWeights(values, _scales(weights, width), np.zeros(len(values), np.float32), _bits(weights))
    stage = both.stage(1, panel, target.lanes)
    return Const(both.packed(1, panel, 1)), [Const(stage)]


def _projection(cell: Cell, width: int) -> tuple[Const, Const]:
    """Return the projection's weights and, for integers, their stage."""
    projection = cell.projection
    if projection is None:
        return Const(_NOTHING), Const(_NOTHING)
    if projection.scales is None:
        return Const(panels(projection.values, width)), Const(_NOTHING)
    both = HybridWeights(projection.values, projection.scales, np.zeros(cell.outputs, np.float32))
    return Const(packed(projection.values[None], width)), Const(both.stage(1, width, width))


def _blocks(vectors: Sequence[Array], width: int) -> Array:
    """Arrange vectors of one element per unit, each padded to whole blocks."""
    if not vectors:
        return _NOTHING
    units = len(vectors[0])
    padded = np.zeros((len(vectors), -(-units // width) * width), np.float32)
    padded[:, :units] = np.stack(vectors)
    return padded


def _defines(cell: Cell, rows: int, vectors: int, width: int) -> dict[str, str | int | float]:
    flags = {
        "RNN": cell.gates == 1,
        "CIFG": 1 < cell.gates < len(Gate),
        "PEEPHOLE": bool(cell.peephole),
        "PROJECTION": cell.projection is not None,
        "LAYER_NORM": bool(cell.norm),
        "HYBRID": cell.is_hybrid,
    }
    defines: dict[str, str | int | float] = {"MR": rows, "NV": cell.gates * vectors, "PANEL": cell.gates * width}
    if (bits := _bits(cell.recurrent_weights)) < 8:
        defines["WEIGHT_BITS"] = bits
    return defines | {name: 1 for name, on in flags.items() if on}
