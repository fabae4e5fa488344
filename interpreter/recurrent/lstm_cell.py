"""The LSTM cell that the three LSTM operators share, and its loop over time.

    gate = activation(W_input x + W_aux aux + W_recurrent h + w_peephole * c + bias)

With layer normalization the sum is normalized over the cells and scaled before the bias is added. The output gate's
peephole reads the new cell state, the others read the old one (tflite/kernels/lstm_eval.cc).
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.arithmetic.hybrid import NO_SCALES, Matrix, Scales, dequantize
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, Shape
from litecl.interpreter.kit import activation, require
from litecl.interpreter.op import Inputs, Specs
from litecl.interpreter.schema import ActivationFunctionType

_VARIANCE_FLOOR = np.float32(1e-8)


class CellOptions(Protocol):
    """The options that every LSTM operator has."""

    @property
    def fused_activation_function(self) -> ActivationFunctionType:
        """The activation of the cell gate and of the cell state."""

    @property
    def cell_clip(self) -> float:
        """The bound of the cell state, 0 for none."""

    @property
    def proj_clip(self) -> float:
        """The bound of the projection, 0 for none."""

    @property
    def asymmetric_quantize_inputs(self) -> bool:
        """Return whether rows multiplied by integer weights get a zero point."""


@dataclass(frozen=True)
class Layout:
    """Positions of a cell's operands. Gates come in the order input, forget, cell, output.

    The input gate's operands are absent if it is coupled to the forget gate (CIFG).
    """

    input_weights: int
    recurrent_weights: int
    peephole: int
    bias: int
    projection: int
    output_state: int
    cell_state: int
    layer_norm: int | None = None
    aux_weights: int | None = None


FULL = Layout(
    input_weights=1,
    recurrent_weights=5,
    peephole=9,
    bias=12,
    projection=16,
    output_state=18,
    cell_state=19,
    layer_norm=20,
)

# The cell gate has no peephole: input, forget, output.
_PEEPHOLES = (0, 1, None, 2)
_FORGET, _CELL, _OUTPUT = range(1, 4)


@dataclass(frozen=True, eq=False)
class Gate:
    """The weights of one gate."""

    input_weights: Matrix
    recurrent_weights: Matrix
    bias: Array | None
    peephole: Array | None
    norm: Array | None
    aux_weights: Matrix | None

    def of_input(self, x: Array, aux: Array | None) -> Array:
        """Return the part that does not depend on the state, for all steps at once."""
        result = self.input_weights(x)
        return result if aux is None or self.aux_weights is None else result + self.aux_weights(aux)

    def __call__(self, of_input: Array, h: Array, c: Array) -> Array:
        """Return the gate before its activation."""
        z = of_input + self.recurrent_weights(h)
        if self.peephole is not None:
            z += c * self.peephole
        if self.norm is not None:
            z = _normalize(z) * self.norm
        return z if self.bias is None else z + self.bias


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell with all its weights; ``input`` is None if it is coupled to ``forget``."""

    input: Gate | None
    forget: Gate
    cell: Gate
    output: Gate
    projection_weights: Matrix | None
    projection_bias: Array | None
    activation: ActivationFunctionType
    cell_clip: float
    proj_clip: float

    def run(self, x: Array, aux: Array | None, h: Array, c: Array, reverse: bool = False) -> tuple[Array, Array, Array]:
        """Return outputs [time, batch, n] for inputs [time, batch, n], and the states after the last step."""
        gates = (self.input, self.forget, self.cell, self.output)
        parts = [None if gate is None else gate.of_input(x, aux) for gate in gates]
        outputs = np.empty((len(x), *h.shape), h.dtype)
        steps = range(len(x))
        for t in reversed(steps) if reverse else steps:
            limits.tick()
            h, c = self._step([None if part is None else part[t] for part in parts], h, c)
            outputs[t] = h
        return outputs, h, c

    def _step(self, parts: Sequence[Array | None], h: Array, c: Array) -> tuple[Array, Array]:
        of_input, of_forget, of_cell, of_output = parts
        assert of_forget is not None and of_cell is not None and of_output is not None
        forget = sigmoid(self.forget(of_forget, h, c))
        if self.input is None or of_input is None:
            accept = 1 - forget
        else:
            accept = sigmoid(self.input(of_input, h, c))
        candidate = activation.apply(self.activation, self.cell(of_cell, h, c))
        c = _clip(forget * c + accept * candidate, self.cell_clip)
        out = sigmoid(self.output(of_output, h, c)) * activation.apply(self.activation, c)
        if self.projection_weights is None:
            return out, c
        projected = self.projection_weights(out)
        if self.projection_bias is not None:
            projected += self.projection_bias
        return _clip(projected, self.proj_clip), c


def cell(options: CellOptions, inputs: Inputs, layout: Layout = FULL, scales: Scales = NO_SCALES) -> Cell:
    """Return the cell whose weights are in ``inputs`` at the positions of ``layout``; integer ones have ``scales``."""
    operands = _Operands(inputs, scales, options.asymmetric_quantize_inputs)
    input_, *others = (_gate(operands, layout, index) for index in range(4))
    forget, cell_gate, output = (gate for gate in others if gate is not None)
    return Cell(
        input_,
        forget,
        cell_gate,
        output,
        operands.matrix(layout.projection),
        operands.vector(layout.projection + 1),
        options.fused_activation_function,
        options.cell_clip,
        options.proj_clip,
    )


def states(inputs: Inputs, layout: Layout, batch: int) -> tuple[Array, Array]:
    """Return the output state and the cell state as [batch, n]; models may store them in one dimension."""
    h, c = require.arrays([inputs[layout.output_state], inputs[layout.cell_state]], 2)
    weights = [inputs[first + _OUTPUT] for first in (layout.input_weights, layout.recurrent_weights)]
    of_input, recurrent = require.arrays(weights, 2)
    return h.reshape(batch, recurrent.shape[-1]), c.reshape(batch, len(of_input))


def like_states(inputs: Inputs, layout: Layout, h: Array, c: Array) -> list[Array]:
    """Return new states in the shapes that the model stores."""
    old_h, old_c = require.arrays([inputs[layout.output_state], inputs[layout.cell_state]], 2)
    return [h.reshape(old_h.shape), c.reshape(old_c.shape)]


def check(inputs: Specs, depth: int, batch: int, layout: Layout = FULL) -> int:
    """Check the operands of a cell that reads ``batch`` rows of ``depth`` elements; return its outputs' size."""
    weights = require.at(inputs, [layout.input_weights + gate for gate in (_FORGET, _CELL, _OUTPUT)])
    recurrent = require.at(inputs, [layout.recurrent_weights + gate for gate in (_FORGET, _CELL, _OUTPUT)])
    cells, outputs = weights[-1].static_shape[0], recurrent[-1].static_shape[-1]
    expected: dict[int, Shape] = {layout.input_weights + gate: (cells, depth) for gate in range(4)}
    expected |= {layout.peephole + i: (cells,) for i in range(3)} | {layout.bias + gate: (cells,) for gate in range(4)}
    expected |= {layout.projection: (outputs, cells), layout.projection + 1: (outputs,)}
    if layout.layer_norm is not None:
        expected |= {layout.layer_norm + gate: (cells,) for gate in range(4)}
    for position, shape in expected.items():
        _expect(inputs, position, shape)
    for gate in range(4):
        diagonal = len(recurrent[-1].static_shape) == 1
        _expect(inputs, layout.recurrent_weights + gate, (cells,) if diagonal else (cells, outputs))
    from_x, from_h = (require.optional(inputs, p) for p in (layout.input_weights, layout.recurrent_weights))
    if (from_x is None) != (from_h is None):
        raise ShapeError("expected both or neither of the input gate's weights")
    if require.optional(inputs, layout.projection) is None and outputs != cells:
        raise ShapeError(f"expected {cells} outputs without a projection, got {outputs}")
    _expect_state(inputs, layout.output_state, batch * outputs)
    _expect_state(inputs, layout.cell_state, batch * cells)
    return outputs


@dataclass(frozen=True, eq=False)
class _Operands:
    """Operands by position, None where absent."""

    inputs: Inputs
    scales: Scales
    asymmetric: bool

    def matrix(self, position: int | None) -> Matrix | None:
        values = None if position is None else require.optional(self.inputs, position)
        if position is None or values is None:
            return None
        return Matrix(values, self.scales.get(position), self.asymmetric)

    def vector(self, position: int | None) -> Array | None:
        values = None if position is None else require.optional(self.inputs, position)
        if position is None or values is None:
            return None
        return dequantize(values, self.scales[position].scales) if position in self.scales else values


def _gate(operands: _Operands, layout: Layout, index: int) -> Gate | None:
    input_weights = operands.matrix(layout.input_weights + index)
    recurrent_weights = operands.matrix(layout.recurrent_weights + index)
    if input_weights is None or recurrent_weights is None:
        return None
    peephole = _PEEPHOLES[index]
    return Gate(
        input_weights,
        recurrent_weights,
        bias=operands.vector(layout.bias + index),
        peephole=operands.vector(None if peephole is None else layout.peephole + peephole),
        norm=operands.vector(None if layout.layer_norm is None else layout.layer_norm + index),
        aux_weights=operands.matrix(None if layout.aux_weights is None else layout.aux_weights + index),
    )


def _expect(inputs: Specs, position: int, shape: Shape) -> None:
    spec = require.optional(inputs, position)
    if spec is not None and spec.static_shape != shape:
        raise ShapeError(f"expected input {position} of shape {list(shape)}, got {list(spec.static_shape)}")


def _expect_state(inputs: Specs, position: int, size: int) -> None:
    spec = require.optional(inputs, position)
    if spec is None or spec.size != size:
        got = "none" if spec is None else list(spec.static_shape)
        raise ShapeError(f"expected a state of {size} elements as input {position}, got {got}")


def _normalize(z: Array) -> Array:
    centred = z - z.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    normalized: Array = centred / np.sqrt(variance + _VARIANCE_FLOOR)
    return normalized


def sigmoid(z: Array) -> Array:
    """Return 1 / (1 + exp(-z))."""
    # tanh overflows at neither end.
    half = z.dtype.type(0.5)
    result: Array = np.tanh(z * half) * half + half
    return result


def _clip(x: Array, bound: float) -> Array:
    return np.clip(x, x.dtype.type(-bound), x.dtype.type(bound)) if bound > 0 else x
