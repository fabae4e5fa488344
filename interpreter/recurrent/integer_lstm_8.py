"""The LSTM cell with 8-bit activations and 8-bit products (tflite/kernels/lstm_eval.cc, Integer8x8_8).

It has one form: coupled input and forget gates, layer normalization and a projection with a bias, no peepholes. Twelve
intermediate tensors hold each gate's quantization: that of its sum, then of both products.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litecl.interpreter.arithmetic import fixed_point, lookup
from litecl.interpreter.arithmetic.fixed_point import Multiplier
from litecl.interpreter.arithmetic.integer_sums import Sums, clip_of, clipped, constant, saturate, sums
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import UnsupportedOp
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, Run, Specs
from litecl.interpreter.recurrent import lstm_cell
from litecl.interpreter.recurrent.lstm_cell import FULL, CellOptions

_FORGET, _CELL, _OUTPUT = range(1, 4)
_NORM = 20
_FLOOR = np.float32(1e-8)


@dataclass(frozen=True, eq=False)
class Part:
    """One of a gate's two products, rounded to 8 bits, and its scaling into their sum."""

    sums: Sums
    zero_point: int
    multiplier: Multiplier

    def __call__(self, rows: Array) -> Array:
        """Return whole numbers in steps of the sum."""
        product = saturate(self.sums(rows) + self.zero_point, 8)
        return fixed_point.multiply_by_quantized_multiplier(product - self.zero_point, self.multiplier)


@dataclass(frozen=True, eq=False)
class Gate:
    """One gate; ``scale`` and ``bias_scale`` belong to the normalization."""

    of_input: Part
    of_output: Part
    weights: Array
    bias: Array
    scale: np.float32
    bias_scale: np.float32

    def __call__(self, x: Array, h: Array) -> Array:
        """Return the gate before its activation, with 12 fractional bits."""
        z = saturate(self.of_input(x) + self.of_output(h)).astype(np.float32)
        mean, variance = _moments(z)
        inverse = np.float32(1) / np.sqrt(np.where(variance == 0, _FLOOR, variance))
        normal = (z - mean) * inverse * self.weights * self.scale + self.bias * self.bias_scale
        return saturate(fixed_point.round_half_away(normal * np.float32(4096)))


def _moments(z: Array) -> tuple[Array, Array]:
    """Return the mean and variance of rows, summed element by element in float32."""
    count = np.float32(z.shape[-1])
    mean = np.add.accumulate(z, axis=-1)[:, -1:] / count
    squares = np.add.accumulate(z * z, axis=-1)[:, -1:] / count
    return mean, squares - mean * mean


def _truncated(x: Array) -> Array:
    """Return numbers of [-1, 1] with 15 fractional bits, truncated."""
    return saturate(np.trunc(x * np.float32(32768)))


def sigmoid(z: Array) -> Array:
    """Return the logistic function of gates, with 15 fractional bits."""
    return _truncated(np.float32(1) / (np.float32(1) + lookup.exp(-z.astype(np.float32) * np.float32(2.0**-12))))


def tanh(z: Array, bits: int) -> Array:
    """Return the hyperbolic tangent, with 15 fractional bits, of numbers with ``bits`` of them."""
    return _truncated(np.tanh(z * 2.0**-bits).astype(np.float32))


@dataclass(frozen=True, eq=False)
class IntegerCell8:
    """A cell with all its weights."""

    forget: Gate
    cell: Gate
    output: Gate
    projection: Sums
    output_zero_point: int
    cell_clip: int
    proj_clip: int

    def step(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        """Return the new output and cell state."""
        forget = sigmoid(self.forget(x, h))
        candidate = tanh(self.cell(x, h), 12)
        kept = fixed_point.rounding_divide_by_pot(forget * c, 15)
        added = fixed_point.rounding_divide_by_pot((32767 - forget) * candidate, 15)
        c = clipped(saturate(kept + added), self.cell_clip)
        hidden = fixed_point.rounding_divide_by_pot(sigmoid(self.output(x, h)) * tanh(c, 15), 15)
        projected = saturate(self.projection(hidden) + self.output_zero_point, 8)
        return clipped(projected, self.proj_clip), c


def bind(options: CellOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    """Return the ``run`` for the FULL layout, input [batch, depth] and twelve intermediates."""
    cell = cell_of(options, inputs, outputs)
    specs = require.at(inputs, (FULL.output_state, FULL.cell_state))

    def run(options: CellOptions, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        h, c = (state.astype(np.int64) for state in lstm_cell.states(inputs, FULL, len(x)))
        h, c = cell.step(x, h, c)
        states = lstm_cell.like_states(inputs, FULL, h, c)
        return [h.astype(x.dtype), *(new.astype(spec.dtype) for new, spec in zip(states, specs, strict=True))]

    return run


def cell_of(options: CellOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> IntegerCell8:
    """Return the cell with operands in ``inputs``; its intermediates follow the output. Raises UnsupportedOp."""
    output, *intermediates = outputs
    needed = [FULL.projection, FULL.projection + 1, *(_NORM + gate for gate in (_FORGET, _CELL, _OUTPUT))]
    absent = [FULL.input_weights, FULL.peephole + 1]
    if (
        len(intermediates) != 12
        or any(require.optional(inputs, p) is None for p in needed)
        or any(require.optional(inputs, p) is not None for p in absent)
    ):
        raise UnsupportedOp(
            "with 8-bit products expected 12 intermediate tensors, coupled gates, layer normalization and a "
            "projection with a bias, and no peepholes"
        )
    weights, bias, state, memory = require.at(
        inputs, (FULL.projection, FULL.projection + 1, FULL.output_state, FULL.cell_state)
    )
    factor = np.float32(float(_scale(weights)) * 2.0**-15 / float(_scale(state)))
    forget, cell, out = (_gate(inputs, intermediates, gate) for gate in (_FORGET, _CELL, _OUTPUT))
    return IntegerCell8(
        forget,
        cell,
        out,
        sums([(weights, bias, factor)], 0, reach=1 << 15),
        fixed_point.zero_point_of(state),
        clip_of(options.cell_clip, _scale(memory), 16) if options.cell_clip < 1 else 0,
        clip_of(options.proj_clip, _scale(output), 8),
    )


def _scale(spec: TensorSpec) -> np.float32:
    return np.float32(fixed_point.scale_of(spec))


def _gate(inputs: Specs, intermediates: Sequence[TensorSpec], gate: int) -> Gate:
    x, state = require.at(inputs, (0, FULL.output_state))
    positions = [base + gate for base in (FULL.input_weights, FULL.recurrent_weights, _NORM, FULL.bias)]
    weights, recurrent, coefficients, bias = require.at(inputs, positions)
    total, of_input, of_output = intermediates[3 * gate : 3 * gate + 3]
    value, shift = fixed_point.quantize_multiplier(_scale(coefficients))
    scale = np.float32(float(value) * 2.0 ** (float(shift) - 31))
    recurrent_part = _part(state, recurrent, of_output, total)
    return Gate(
        _part(x, weights, of_input, total),
        _misread(recurrent_part, intermediates) if gate == _OUTPUT else recurrent_part,
        constant(coefficients).astype(np.float32),
        constant(bias).astype(np.float32),
        scale,
        np.float32(2.0**-10) * scale,
    )


def _misread(part: Part, intermediates: Sequence[TensorSpec]) -> Part:
    """Return the output gate's product with the state as TensorFlow Lite computes it.

    LstmStepInteger8x8_8 reads element 11 of eight multipliers, which is a shift of the forget gate's, and another
    product's zero point.
    """
    forget_sum, forget_product = intermediates[3 * _FORGET], intermediates[3 * _FORGET + 2]
    misread = fixed_point.quantize_multiplier(_scale(forget_product) / _scale(forget_sum)).shift
    zero_point = fixed_point.zero_point_of(intermediates[3 * _CELL + 1])
    return replace(part, zero_point=zero_point, multiplier=Multiplier(misread, part.multiplier.shift))


def _part(x: TensorSpec, weights: TensorSpec, product: TensorSpec, total: TensorSpec) -> Part:
    factor = _scale(weights) * _scale(x) / _scale(product)
    zero_point = fixed_point.zero_point_of(product)
    return Part(
        sums([(weights, None, factor)], fixed_point.zero_point_of(x)),
        zero_point,
        fixed_point.quantize_multiplier(_scale(product) / _scale(total)),
    )
