"""The launches of an LSTM cell of integers: its input's part of the gates, then all steps (integer_lstm.cl)."""

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from litecl.delegate.cl_op import Arg, Const, Launch, Operand, Record, Scratch, Target
from litecl.delegate.kit.schedule import flops, groups
from litecl.delegate.kit.shared import packed as packed_records
from litecl.delegate.matmul.geometry import matrix
from litecl.delegate.quantized.integer_product import integer_product
from litecl.delegate.quantized.integers import WORDS, Bounds, Scale, Weights, unsigned_zero
from litecl.delegate.recurrent.time_loop import Gate, Peephole, TimeLoop, by_block, width_of
from litecl.interpreter.arithmetic.fixed_point import Multiplier
from litecl.interpreter.arithmetic.integer_sums import Sums
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array
from litecl.interpreter.schema import TensorType

_NO_SCALE = Scale(0, 0, 0)
_NO_BOUNDS = Bounds(0, 0, 0)


class IntegerTable(IntEnum):
    """Functions of 16-bit numbers as tables: the activation of gates, of the cell gate, and of the cell state."""

    GATE = 0
    CELL = 1
    STATE = 2


@dataclass(frozen=True)
class IntegerGate:
    """Arguments of integer_lstm.cl for a gate.

    peephole: the factor of products with the cell state. norm: the factor of normalized sums. guard: the variance used
    in place of 0. With 8-bit products: zero points and factors of the products with input and output, and the float
    scales of the normalization.
    """

    peephole: Scale = _NO_SCALE
    norm: Scale = _NO_SCALE
    guard: int = 1
    input_zero: int = 0
    input: Scale = _NO_SCALE
    output_zero: int = 0
    output: Scale = _NO_SCALE
    norm_scale: float = 0.0
    bias_scale: float = 0.0


@dataclass(frozen=True)
class IntegerRecurrence(Record):
    """Arguments of integer_lstm.cl.

    row_bytes, hidden_bytes: of the last output and of the projection's input, padded to whole ints. peephole_step:
    elements from one row of the batch to the next. added_shift: from the product of two gates to steps of the cell
    state. cell_clip, projection_clip: bounds in steps, 0 for none. hidden, hidden_zero: from the product of output gate
    and state to 8 bits. output_zero: the zero point of the projection's result.
    """

    time: TimeLoop
    units: int
    blocks: int
    outputs: int
    row_bytes: int
    hidden_bytes: int
    peephole_step: int
    added_shift: int
    cell_clip: int
    projection_clip: int
    hidden: Scale
    hidden_zero: int
    output_zero: int


@dataclass(frozen=True, eq=False)
class IntegerCell:
    """A cell of integers with its operands by gate, three of them where the input gate is coupled.

    of_input, of_output: products of all gates side by side. peephole: weights [rows, 3, units]. norm: weights and
    biases [2, gates, units]. Either is None if the cell has none. tables: [IntegerTable, 2**16].
    """

    of_input: Sums
    of_output: Sums
    gates: Sequence[IntegerGate]
    peephole: Array | None
    norm: Array | None
    tables: Array
    projection: Sums | None
    products_8: bool
    added_shift: int
    cell_clip: int
    projection_clip: int
    hidden: Scale
    hidden_zero: int
    output_zero: int

    @property
    def units(self) -> int:
        """Number of cells."""
        return len(self.of_input.weights) // len(self.gates)

    @property
    def outputs(self) -> int:
        """Elements of a step's output."""
        return int(self.of_output.weights.shape[1])


def scale_from(multiplier: Multiplier) -> Scale:
    """Return a multiplier as kernels take it."""
    shift = int(multiplier.shift)
    return Scale(int(multiplier.value), max(shift, 0), max(-shift, 0))


def run_integer_cell(
    cell: IntegerCell,
    time: TimeLoop,
    x: Operand,
    before: Sequence[Operand],
    after: Sequence[Operand],
    out: Operand,
    target: Target,
) -> list[Launch]:
    """Return the launches of a cell over x into ``out``. before, after: the output state and the cell state."""
    width, gates = target.lanes, len(cell.gates)
    blocks, rows = -(-cell.units // width), time.steps * time.batch
    columns = blocks * gates * width
    sums = Scratch(2 * rows * columns)
    g = matrix(rows, x.shape[-1], columns)
    of_input = _weights(cell.of_input, gates, width)
    product = integer_product(x, g, of_input, sums, TensorType.INT16, unsigned_zero(x.spec), WORDS, target)
    recurrent = _weights(cell.of_output, gates, width)
    row_bytes, words = _padded(cell.outputs, 4), cell.products_8
    hidden_bytes = _padded((2 if words else 1) * cell.units, 4)
    peephole = _peephole(cell.peephole, blocks * width)
    shape = IntegerRecurrence(
        time=time,
        units=cell.units,
        blocks=blocks,
        outputs=cell.outputs,
        row_bytes=row_bytes,
        hidden_bytes=hidden_bytes,
        peephole_step=0 if len(peephole) == 1 else peephole[0].size,
        added_shift=cell.added_shift,
        cell_clip=cell.cell_clip,
        projection_clip=cell.projection_clip,
        hidden=cell.hidden,
        hidden_zero=cell.hidden_zero,
        output_zero=cell.output_zero,
    )
    operands: list[Arg] = [
        sums,
        Const(recurrent.packed(gates * width)),
        Const(recurrent.stage(gates * width, width, cell.of_output.zero_point + 128, _NO_BOUNDS, folds=False).fields),
        Const(peephole),
        Const(_norm(cell.norm, blocks * width)),
        Const(cell.tables.astype(np.int16)),
        *_projection(cell, width),
        Const(packed_records(IntegerGate, cell.gates)),
        *before,
        *after,
        out,
        Scratch(time.batch * row_bytes),
        Scratch(time.batch * hidden_bytes),
        shape,
    ]
    shares = groups("integer_lstm", target, time.batch, 1)
    operations = flops(rows, gates * cell.units, cell.outputs)
    return [product, shares.launch("integer_lstm", operands, _defines(cell) | width_of(target), operations)]


def _padded(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def _weights(sums: Sums, gates: int, width: int) -> Weights:
    """Return the products of all gates, ordered by block of ``width`` units, gate and unit."""
    arrays = (sums.weights, sums.bias[:, None], sums.factors[:, None])
    values, bias, factors = (by_block([*a.reshape(gates, -1, a.shape[1])], width) for a in arrays)
    return Weights(values[None], 0, bias.T, factors.T)


def _projection(cell: IntegerCell, width: int) -> tuple[Const, Const]:
    """Return the projection's weights and the stage of its sums."""
    if cell.projection is None:
        return Const(np.zeros(1, np.int8)), Const(np.zeros(1, np.int32))
    sums, flipped = cell.projection, 0 if cell.products_8 else 128
    weights = Weights(sums.weights[None], 0, sums.bias[None], sums.factors[None])
    weights = weights.words if cell.products_8 else weights
    stage = weights.stage(width, width, sums.zero_point + flipped, _NO_BOUNDS, folds=False)
    return Const(weights.packed(width)), Const(stage.fields)


def _peephole(weights: Array | None, length: int) -> Array:
    """Return weights [rows, 3, units] padded to ``length`` units."""
    shape = (1, len(Peephole), 1) if weights is None else (*weights.shape[:2], length)
    padded = np.zeros(shape, np.int16)
    if weights is not None:
        padded[..., : weights.shape[2]] = weights
    return padded


def _norm(norm: Array | None, length: int) -> Array:
    """Return weights and biases [2, gates, units] padded to ``length`` units."""
    if norm is None:
        return np.zeros(1, np.int32)
    padded = np.zeros((*norm.shape[:2], length), np.int32)
    padded[..., : norm.shape[2]] = norm
    return padded


def _defines(cell: IntegerCell) -> dict[str, str | int | float]:
    flags = {
        "CIFG": len(cell.gates) < len(Gate),
        "PEEPHOLE": cell.peephole is not None,
        "PROJECTION": cell.projection is not None,
        "LAYER_NORM": cell.norm is not None,
        "PRODUCTS_8": cell.products_8,
    }
    defines: dict[str, str | int | float] = {"NV": len(cell.gates)}
    return defines | {name: 1 for name, on in flags.items() if on}
