"""Launches that run an LSTM cell over all time steps, shared by the LSTM operators (kernels_cl/lstm.cl)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from litecl.delegate.cl_op import Activation, Arg, Call, Const, Launch, Operand, Record, Refusal, Scratch, Target
from litecl.delegate.kit import claims
from litecl.delegate.kit.schedule import Grid, flops, group_of, rows_of, tile_for
from litecl.delegate.matmul.product import Packed, Product, gemm, panels
from litecl.interpreter.graph import Array
from litecl.interpreter.recurrent.lstm_cell import Layout
from litecl.interpreter.schema import TensorType

_NOTHING = np.zeros(1, np.float32)


class Gate(IntEnum):
    """The gates in the order of their weights; the input gate is absent where it is coupled to the forget gate."""

    INPUT = 0
    FORGET = 1
    CELL = 2
    OUTPUT = 3


class Peephole(IntEnum):
    """The gates that read the cell's state."""

    INPUT = 0
    FORGET = 1
    OUTPUT = 2


@dataclass(frozen=True)
class TimeLoop:
    """Strides of a cell's input and output.

    A row of x is one time step of one batch entry; out is counted in elements. Each has a first position, and strides
    from step to step (negative to run backwards) and from one batch entry to the next.
    """

    steps: int
    batch: int
    x_first: int
    x_time: int
    x_batch: int
    out_first: int
    out_time: int
    out_batch: int


@dataclass(frozen=True)
class Recurrence(Record):
    """Arguments of lstm.cl: the time loop, the cell's units, blocks of units that fill vectors, elements of output."""

    time: TimeLoop
    units: int
    blocks: int
    outputs: int


def time_loop(
    steps: int, batch: int, width: int, *, time_major: bool, reverse: bool = False, first: int = 0
) -> TimeLoop:
    """Return the loop over dense x and an output of ``width`` elements a step, the cell's part of which begins at
    ``first``.
    """
    time, row = (batch, 1) if time_major else (1, steps)
    start = (steps - 1) * time if reverse else 0
    step = -time if reverse else time
    return TimeLoop(steps, batch, start, step, row, first + start * width, step * width, row * width)


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell's constant operands, by gate: three of them where the input gate is coupled.

    peephole: of the input, forget and output gate; what the cell does not have is empty.
    """

    input_weights: list[Array]
    recurrent_weights: list[Array]
    aux_weights: list[Array]
    bias: list[Array]
    peephole: list[Array]
    norm: list[Array]
    projection: Array | None
    projection_bias: Array | None

    @property
    def gates(self) -> int:
        """Return how many gates have weights."""
        return len(self.input_weights)

    @property
    def units(self) -> int:
        """The number of cells."""
        return int(self.input_weights[0].shape[0])

    @property
    def outputs(self) -> int:
        """The number of output elements of a step."""
        return int(self.recurrent_weights[0].shape[1])


def claim(options: object, inputs: claims.Specs, layouts: Sequence[Layout], *fed: int) -> Refusal | None:
    """Refuse operands that are not float32, and weights that are not constants. fed: inputs that are data."""
    data = {*fed, *(p for layout in layouts for p in (layout.output_state, layout.cell_state))}
    unknown = [i for i, spec in enumerate(inputs) if spec is not None and spec.data is None and i not in data]
    if unknown:
        return Refusal(f"input {unknown[0]} is not a constant")
    return claims.typed(inputs, claims.FLOAT) or claims.activated(options, TensorType.FLOAT32)


def cell_of(call: Call, layout: Layout) -> Cell:
    """Return the operands at the positions that ``layout`` gives."""

    def at(position: int) -> Array | None:
        operand = call.inputs[position] if position < len(call.inputs) else None
        return None if operand is None else operand.data

    def gates(base: int | None) -> list[Array]:
        found = [] if base is None else [at(base + gate) for gate in Gate]
        return [array for array in found if array is not None]

    input_weights = gates(layout.input_weights)
    zeros = np.zeros(input_weights[0].shape[0], np.float32)
    bias = [_or(at(layout.bias + gate), zeros) for gate in range(len(Gate) - len(input_weights), len(Gate))]
    peephole = [at(layout.peephole + gate) for gate in Peephole]
    return Cell(
        input_weights,
        [np.diag(weights) if weights.ndim == 1 else weights for weights in gates(layout.recurrent_weights)],
        gates(layout.aux_weights),
        bias,
        [_or(array, zeros) for array in peephole] if any(array is not None for array in peephole) else [],
        gates(layout.layer_norm),
        at(layout.projection),
        at(layout.projection + 1),
    )


def run_cell(
    call: Call,
    cell: Cell,
    layout: Layout,
    time: TimeLoop,
    inputs: Sequence[Operand],
    out: Operand,
    states: Sequence[Operand],
) -> list[Launch]:
    """Return the launches of a cell over its inputs (x, and the auxiliary one if the cell has weights for it) into
    ``out``.

    states: the output state and the cell state after the last step.
    """
    sums, launches = _of_inputs(cell, time, inputs, call.target)
    width = call.target.vector_width
    rows = rows_of("lstm", call.target, time.batch)
    blocks = -(-cell.units // width)
    scratch = Scratch(4 * time.batch * blocks * width)
    shape = Recurrence(time, cell.units, blocks, cell.outputs)
    recurrent = _packed(cell.recurrent_weights, width, cell.gates * width, call.target)
    operands: list[Arg] = [sums, recurrent.values]
    bias = cell.bias if cell.norm else []
    operands += [Const(_blocks(vectors, width)) for vectors in (cell.peephole, cell.norm, bias)]
    operands += [Const(array) for array in _projection(cell, width)]
    operands += [call.input(layout.output_state), call.input(layout.cell_state), *states, out, scratch]
    clips = (np.float32(call.options.cell_clip), np.float32(call.options.proj_clip))
    launch = Grid("lstm", call.target, (group_of("lstm", call.target), time.batch), (1, rows)).launch(
        "lstm",
        (*operands, shape, *clips, *call.activation.bounds),
        _defines(cell, rows, width) | recurrent.defines | call.activation.defines,
        flops(time.steps * time.batch, cell.gates * cell.units, cell.outputs),
    )
    return [*launches, launch]


def _of_inputs(cell: Cell, time: TimeLoop, inputs: Sequence[Operand], target: Target) -> tuple[Scratch, list[Launch]]:
    """Return the inputs' part of the gates at all steps, with biases unless a normalization comes before them."""
    rows, width = time.steps * time.batch, target.vector_width
    columns = -(-cell.units // width) * width * cell.gates
    tile = tile_for("gemm", target, rows, columns)
    bias = [np.zeros_like(array) for array in cell.bias] if cell.norm else cell.bias
    start = Packed(Const(panels(_by_block([array[:, None] for array in bias], width), tile.panel)))
    nothing = Packed(Const(np.zeros(-(-columns // tile.panel) * tile.panel, np.float32)))
    sums: Scratch | None = None
    launches = []
    for x, weights in zip(inputs, (cell.input_weights, cell.aux_weights), strict=False):
        product = Product(rows, columns, x.shape[-1])
        packed = _packed(weights, width, tile.panel, target)
        out = Scratch(4 * rows * columns)
        launches.append(
            gemm(product, tile, target, x, packed, start if sums is None else nothing, out, Activation(), sums)
        )
        sums = out
    assert sums is not None
    return sums, launches


def _packed(gates: Sequence[Array], width: int, panel: int, target: Target) -> Packed:
    """Return gates' weights as a product's kernel reads them."""
    return Packed(Const(panels(_by_block(gates, width), panel, halves=target.half_weights)))


def _by_block(gates: Sequence[Array], width: int) -> Array:
    """Arrange the gates' weights [units, depth] as rows of one matrix, ordered by block of ``width`` units, gate
    and unit.
    """
    units, depth = gates[0].shape
    blocks = -(-units // width)
    padded = np.zeros((len(gates), blocks * width, depth), np.float32)
    padded[:, :units] = np.stack(gates)
    return padded.reshape(len(gates), blocks, width, depth).swapaxes(0, 1).reshape(-1, depth)


def _blocks(vectors: Sequence[Array], width: int) -> Array:
    """Arrange vectors of one element per unit, each padded to whole blocks."""
    if not vectors:
        return _NOTHING
    units = len(vectors[0])
    padded = np.zeros((len(vectors), -(-units // width) * width), np.float32)
    padded[:, :units] = np.stack(vectors)
    return padded


def _projection(cell: Cell, width: int) -> tuple[Array, Array]:
    if cell.projection is None:
        return _NOTHING, _NOTHING
    bias = np.zeros(cell.outputs, np.float32) if cell.projection_bias is None else cell.projection_bias
    return panels(cell.projection, width), panels(bias[:, None], width)


def _defines(cell: Cell, rows: int, width: int) -> dict[str, str | int | float]:
    flags = {
        "CIFG": cell.gates < len(Gate),
        "PEEPHOLE": bool(cell.peephole),
        "PROJECTION": cell.projection is not None,
        "LAYER_NORM": bool(cell.norm),
    }
    defines: dict[str, str | int | float] = {"MR": rows, "NV": cell.gates, "PANEL": cell.gates * width}
    return defines | {name: 1 for name, on in flags.items() if on}


def _or(array: Array | None, default: Array) -> Array:
    return default if array is None else array
