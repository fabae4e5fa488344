"""The LSTM cell with 8-bit activations, 16-bit gates and cell state (tflite/kernels/lstm_eval.cc, Integer8x8_16).

Gates before their activation have 12 fractional bits, or the scale of an intermediate tensor if they are normalized
over the cells; afterwards they have 15. The cell state's scale is a power of two. All values are int64 arrays.
"""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.arithmetic import fixed_point, gemmlowp
from litecl.interpreter.arithmetic.fixed_point import Multiplier
from litecl.interpreter.arithmetic.integer_sums import Part, Sums, clip_of, clipped, constant, saturate, sums
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import UnsupportedOp
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, Run, Specs
from litecl.interpreter.recurrent import lstm_cell
from litecl.interpreter.recurrent.lstm_cell import FULL, CellOptions

_PEEPHOLES = (0, 1, None, 2)
_INPUT, _FORGET, _CELL, _OUTPUT = range(4)
_HIDDEN = 4


@dataclass(frozen=True, eq=False)
class LayerNorm:
    """Normalization over the cells, in integers."""

    weights: Array
    bias: Array
    multiplier: Multiplier
    guard: int

    def __call__(self, z: Array) -> Array:
        """Return gates with 12 fractional bits."""
        count = z.shape[-1]
        mean = _divide(1024 * z.sum(axis=-1, keepdims=True), count)
        variance = (z * z).sum(axis=-1, keepdims=True) * ((1 << 20) // count) - mean * mean
        variance = _divide(variance, 1 << 20)
        deviation = gemmlowp.inverse_sqrt(np.where(variance < 1, self.guard, variance))
        normal = fixed_point.multiply_by_quantized_multiplier(1024 * z - mean, deviation)
        scaled = (normal * self.weights + self.bias).astype(np.int32).astype(np.int64)
        scaled = _divide(scaled + np.where(scaled > 0, 512, -512), 1024)
        return saturate(fixed_point.multiply_by_quantized_multiplier(scaled, self.multiplier))


def _divide(x: Array, divisor: int) -> Array:
    """Divide and drop the fraction, as C does."""
    result: Array = np.where(x < 0, -(-x // divisor), x // divisor)
    return result


@dataclass(frozen=True, eq=False)
class Peephole:
    """The part of a gate that reads the cell state."""

    weights: Array
    multiplier: Multiplier

    def add(self, z: Array, c: Array) -> Array:
        """Add to the gate as TensorFlow Lite does.

        It assumes consecutive rows as long as ``weights``, which is cut to the number of outputs: with a projection
        only the first elements of all rows together get their part.
        """
        count = len(z) * len(self.weights)
        parts = np.tile(self.weights, len(z)) * c.reshape(-1)[:count]
        result = z.reshape(-1).copy()
        result[:count] = saturate(result[:count] + fixed_point.multiply_by_quantized_multiplier(parts, self.multiplier))
        return result.reshape(z.shape)


@dataclass(frozen=True, eq=False)
class Gate:
    """One gate, from the sums of its products with input and output. columns: those of all sums that are its own."""

    columns: slice
    peephole: Peephole | None
    norm: LayerNorm | None
    table: Array

    @property
    def units(self) -> int:
        """The number of cells."""
        return int(self.columns.stop - self.columns.start)

    def __call__(self, all_sums: Array, c: Array) -> Array:
        """Return the gate after its activation, with 15 fractional bits."""
        z = all_sums[:, self.columns]
        if self.peephole is not None:
            z = self.peephole.add(z, c)
        if self.norm is not None:
            z = self.norm(z)
        result: Array = self.table[z & 0xFFFF]
        return result


@dataclass(frozen=True, eq=False)
class IntegerCell:
    """A cell with all its weights; ``input`` is None if it is coupled to ``forget``."""

    of_input: Sums
    of_output: Sums
    input: Gate | None
    forget: Gate
    cell: Gate
    output: Gate
    state_bits: int
    cell_clip: int
    table: Array | None
    hidden: Multiplier
    hidden_zero_point: int
    projection: Sums | None
    output_zero_point: int
    proj_clip: int

    def step(self, of_input: Array, h: Array, c: Array) -> tuple[Array, Array]:
        """Return the new output and cell state, given the products of all gates with the input."""
        z = saturate(of_input + self.of_output(h))
        forget = self.forget(z, c)
        accept = 32767 - forget if self.input is None else self.input(z, c)
        candidate = self.cell(z, c)
        kept = fixed_point.rounding_divide_by_pot(forget * c, 15)
        added = fixed_point.rounding_divide_by_pot(accept * candidate, 30 + self.state_bits)
        c = clipped(saturate(kept + added), self.cell_clip)
        activated = c if self.table is None else self.table[c & 0xFFFF]
        hidden = fixed_point.multiply_by_quantized_multiplier(self.output(z, c) * activated, self.hidden)
        hidden = saturate(hidden + self.hidden_zero_point, 8)
        if self.projection is None:
            return hidden, c
        projected = saturate(self.projection(hidden) + self.output_zero_point, 8)
        return clipped(projected, self.proj_clip), c


def bind(options: CellOptions, inputs: Specs, outputs: Sequence[TensorSpec], time_major: bool) -> Run:
    """Return the ``run`` for the FULL layout, input [batch, depth] or of rank 3, and five intermediates."""
    cell = cell_of(options, inputs, outputs)

    def run(options: CellOptions, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        steps = x[None] if x.ndim == 2 else x if time_major else x.swapaxes(0, 1)
        h, c = (state.astype(np.int64) for state in lstm_cell.states(inputs, FULL, steps.shape[1]))
        results = np.empty((*steps.shape[:2], h.shape[1]), x.dtype)
        for t, of_input in enumerate(saturate(cell.of_input(steps))):
            limits.tick()
            h, c = _step(cell, of_input, h, c, together=time_major)
            results[t] = h
        result = results[0] if x.ndim == 2 else results if time_major else results.swapaxes(0, 1)
        states = lstm_cell.like_states(inputs, FULL, h, c)
        return [result, *(new.astype(spec.dtype) for new, spec in zip(states, state_specs, strict=True))]

    state_specs = require.at(inputs, (FULL.output_state, FULL.cell_state))
    return run


def _step(cell: IntegerCell, of_input: Array, h: Array, c: Array, together: bool) -> tuple[Array, Array]:
    """Run one step for all rows together, or for each alone; only peepholes make a difference."""
    if together or cell.forget.peephole is None or not len(h):
        return cell.step(of_input, h, c)
    rows = [cell.step(of_input[i : i + 1], h[i : i + 1], c[i : i + 1]) for i in range(len(h))]
    return np.concatenate([h for h, _ in rows]), np.concatenate([c for _, c in rows])


def _scale(spec: TensorSpec) -> np.float32:
    return np.float32(fixed_point.scale_of(spec))


def cell_of(options: CellOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> IntegerCell:
    """Return the cell with operands in ``inputs``; its intermediates follow the output. Raises UnsupportedOp."""
    output, *intermediates = outputs
    if len(intermediates) <= _HIDDEN:
        raise UnsupportedOp(f"expected 5 intermediate tensors, got {len(intermediates)}")
    state, memory = require.at(inputs, (FULL.output_state, FULL.cell_state))
    hidden_scale = _scale(intermediates[_HIDDEN])
    hidden_zero_point = fixed_point.zero_point_of(intermediates[_HIDDEN])
    state_bits = round(float(np.log2(_scale(memory))))
    weights = require.optional(inputs, FULL.projection)
    projection = None
    if weights is not None:
        factor = _scale(weights) * hidden_scale / _scale(state)
        projection = sums([(weights, require.optional(inputs, FULL.projection + 1), factor)], -hidden_zero_point)
    coupled = require.optional(inputs, FULL.input_weights) is None
    present = range(_FORGET if coupled else _INPUT, _OUTPUT + 1)
    of_input, of_output = zip(*(_parts(inputs, intermediates, index) for index in present), strict=True)
    gates = [_gate(inputs, intermediates, index, state_bits, index - present.start) for index in present]
    forget, cell, out = gates[-3:]
    bits = 15 + state_bits
    return IntegerCell(
        sums(of_input, fixed_point.zero_point_of(require.at(inputs, (0,))[0])),
        sums(of_output, fixed_point.zero_point_of(state)),
        None if coupled else gates[0],
        forget,
        cell,
        out,
        state_bits,
        clip_of(options.cell_clip, _scale(memory), 16),
        gemmlowp.table(gemmlowp.tanh, bits) if 0 <= bits <= 6 else None,
        fixed_point.quantize_multiplier(np.float32(2.0**-15 / float(hidden_scale) * 2.0**-15)),
        # The projection adds the hidden zero point instead of subtracting it, so its rows get the negative.
        hidden_zero_point if projection is None else -hidden_zero_point,
        projection,
        fixed_point.zero_point_of(state),
        clip_of(options.proj_clip, _scale(output), 8),
    )


def _sum_scale(inputs: Specs, intermediates: Sequence[TensorSpec], index: int) -> np.float32:
    """Return the scale of a gate before its activation or normalization."""
    assert FULL.layer_norm is not None
    normalized = require.optional(inputs, FULL.layer_norm + index) is not None
    return _scale(intermediates[index]) if normalized else np.float32(2.0**-12)


def _parts(inputs: Specs, intermediates: Sequence[TensorSpec], index: int) -> tuple[Part, Part]:
    """Return a gate's products with input and output; a normalized gate gets its bias later."""
    assert FULL.layer_norm is not None
    positions = (FULL.input_weights + index, FULL.recurrent_weights + index, 0, FULL.output_state)
    weights, recurrent, x, state = require.at(inputs, positions)
    scale = _sum_scale(inputs, intermediates, index)
    normalized = require.optional(inputs, FULL.layer_norm + index) is not None
    bias = None if normalized else require.optional(inputs, FULL.bias + index)
    of_input = _scale(weights) * _scale(x) / scale
    of_output = _scale(recurrent) * _scale(state) / scale
    return (weights, bias, of_input), (recurrent, None, of_output)


def _gate(inputs: Specs, intermediates: Sequence[TensorSpec], index: int, state_bits: int, order: int) -> Gate:
    assert FULL.layer_norm is not None
    (recurrent,) = require.at(inputs, (FULL.recurrent_weights + index,))
    cells, outputs = recurrent.static_shape
    coefficients = require.optional(inputs, FULL.layer_norm + index)
    position = _PEEPHOLES[index]
    peephole = None if position is None else require.optional(inputs, FULL.peephole + position)
    scale = _sum_scale(inputs, intermediates, index)
    return Gate(
        slice(order * cells, (order + 1) * cells),
        None if peephole is None else _peephole(peephole, outputs, state_bits, scale),
        None if coefficients is None else _layer_norm(coefficients, require.optional(inputs, FULL.bias + index)),
        gemmlowp.table(gemmlowp.tanh if index == _CELL else gemmlowp.logistic, 3),
    )


def _peephole(weights: TensorSpec, outputs: int, state_bits: int, scale: np.float32) -> Peephole:
    factor = np.float32(2.0**state_bits * float(_scale(weights)) / float(scale))
    return Peephole(constant(weights)[:outputs].astype(np.int64), fixed_point.quantize_multiplier(factor))


def _layer_norm(weights: TensorSpec, bias: TensorSpec | None) -> LayerNorm:
    scale = _scale(weights)
    value, shift = fixed_point.quantize_multiplier(scale)
    added = np.zeros(weights.size, np.int64) if bias is None else constant(bias).astype(np.int64)
    guard = max(1, int(np.float32(10000) * scale))
    return LayerNorm(constant(weights).astype(np.int64), added, Multiplier(value, shift + 12), guard)
