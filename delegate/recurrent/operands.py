"""The constant operands of recurrent cells, of floats or with integer weights, and the claims on them."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, Operand, Refusal
from litecl.delegate.kit import claims
from litecl.delegate.quantized import hybrid
from litecl.delegate.quantized.integers import stored_bits
from litecl.delegate.recurrent.time_loop import Gate, Peephole
from litecl.interpreter.arithmetic.hybrid import scales_of
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array
from litecl.interpreter.recurrent.lstm_cell import Layout
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True, eq=False)
class Matrix:
    """Weights [units, depth]: floats, or signed bytes that fit in ``bits``, with a scale for each unit."""

    values: Array
    scales: Array | None = None
    bits: int = 8


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell's operands by gate: four, three if the input gate is coupled, or one if the cell is no LSTM.

    peephole: of the input, forget and output gate. Lists of operands that the cell lacks are empty.
    """

    input_weights: list[Matrix]
    recurrent_weights: list[Matrix]
    bias: list[Array]
    aux_weights: list[Matrix]
    peephole: list[Array]
    norm: list[Array]
    projection: Matrix | None
    projection_bias: Array | None

    @property
    def gates(self) -> int:
        """Return how many gates have weights."""
        return len(self.input_weights)

    @property
    def units(self) -> int:
        """Number of cells."""
        return int(self.input_weights[0].values.shape[0])

    @property
    def outputs(self) -> int:
        """Elements of a step's output."""
        return int(self.recurrent_weights[0].values.shape[1])

    @property
    def is_hybrid(self) -> bool:
        """Return whether weights are integers."""
        return self.recurrent_weights[0].scales is not None


def plain_cell(of_x: Sequence[Array], of_h: Sequence[Array], bias: Sequence[Array]) -> Cell:
    """Return a cell of floats without optional operands."""
    return Cell([*map(Matrix, of_x)], [*map(Matrix, of_h)], [*bias], [], [], [], None, None)


def claim(options: Any, inputs: claims.Specs, layouts: Sequence[Layout], *fed: int) -> Refusal | None:
    """Refuse operands of an LSTM that are not float32, and variable weights; inputs in ``fed`` may vary."""
    return claim_floats(options, inputs, (*fed, *_states(layouts)))


def claim_floats(options: Any, inputs: claims.Specs, fed: Collection[int]) -> Refusal | None:
    """Refuse operands that are not float32, and variable weights; inputs in ``fed`` may vary."""
    unknown = [i for i, spec in enumerate(inputs) if spec is not None and spec.data is None and i not in fed]
    if unknown:
        return Refusal(f"input {unknown[0]} is not a constant")
    return claims.typed(inputs, claims.FLOAT) or claims.activated(options, TensorType.FLOAT32)


def claim_hybrid(options: Any, inputs: claims.Specs, layouts: Sequence[Layout], *fed: int) -> Refusal | None:
    """Refuse an LSTM whose matrices are not all constant integers with scales; inputs in ``fed`` may vary."""
    matrices = [position for layout in layouts for position in _matrices(layout)]
    return claim_integers(options, inputs, matrices, (*fed, *_states(layouts)))


def claim_integers(
    options: Any, inputs: claims.Specs, matrices: Collection[int], fed: Collection[int]
) -> Refusal | None:
    """Refuse matrices that are not constant integers with scales, and other operands as ``claim_floats`` does.

    Vectors may be integers too: they are small, and become floats.
    """
    others = [*inputs]
    for position, spec in enumerate(inputs):
        if spec is None or position in fed:
            continue
        if position in matrices or spec.type != TensorType.FLOAT32:
            if refusal := hybrid.claim_weights(spec):
                return refusal
            others[position] = None
        if position in matrices and len(spec.static_shape) != 2:
            return Refusal("integer weights on a diagonal")
    return claim_floats(options, others, fed)


def _states(layouts: Sequence[Layout]) -> list[int]:
    return [position for layout in layouts for position in (layout.output_state, layout.cell_state)]


def _matrices(layout: Layout) -> list[int]:
    bases = (layout.input_weights, layout.recurrent_weights, layout.aux_weights)
    return [*(base + gate for base in bases if base is not None for gate in Gate), layout.projection]


def cell_of(call: Call, layout: Layout) -> Cell:
    """Return the operands of an LSTM at the positions that ``layout`` gives."""

    def matrices(base: int | None) -> list[Matrix]:
        gates = [] if base is None else [matrix_at(call, base + gate) for gate in Gate]
        return [matrix for matrix in gates if matrix is not None]

    input_weights = matrices(layout.input_weights)
    zeros = np.zeros(input_weights[0].values.shape[0], np.float32)
    bias = [_or(vector_at(call, layout.bias + i), zeros) for i in range(len(Gate) - len(input_weights), len(Gate))]
    peephole = [vector_at(call, layout.peephole + gate) for gate in Peephole]
    norm = [] if layout.layer_norm is None else [vector_at(call, layout.layer_norm + gate) for gate in Gate]
    return Cell(
        input_weights,
        matrices(layout.recurrent_weights),
        bias,
        matrices(layout.aux_weights),
        [_or(array, zeros) for array in peephole] if any(array is not None for array in peephole) else [],
        [array for array in norm if array is not None],
        matrix_at(call, layout.projection),
        vector_at(call, layout.projection + 1),
    )


def matrix_at(call: Call, position: int) -> Matrix | None:
    """Return the weights at a position; those of rank 1 are a matrix's diagonal."""
    operand = _at(call, position)
    if operand is None or operand.data is None:
        return None
    if operand.spec.type == TensorType.FLOAT32:
        return Matrix(np.diag(operand.data) if operand.data.ndim == 1 else operand.data)
    bits = stored_bits(operand.spec.type, operand.shape[1])
    scales = np.broadcast_to(scales_of(operand.spec), len(operand.data))
    return Matrix(hybrid.integers(operand), scales, bits)


def vector_at(call: Call, position: int) -> Array | None:
    """Return the vector at a position, as floats."""
    operand = _at(call, position)
    if operand is None or operand.data is None:
        return None
    return operand.data if operand.spec.type == TensorType.FLOAT32 else hybrid.dequantized(operand).value


def _at(call: Call, position: int) -> Operand | None:
    return call.inputs[position] if position < len(call.inputs) else None


def _or(array: Array | None, default: Array) -> Array:
    return default if array is None else array
