"""The LSTM cell of tflite-micro with 8-bit activations (tensorflow/lite/micro/kernels/lstm_eval.cc).

It is made of other operators' kernels: sums as FULLY_CONNECTED's, LOGISTIC and TANH of 16 bits, products as MUL's.
Gates have 12 fractional bits before their activation and 15 afterwards. All values are int64 arrays.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.arithmetic import fixed_math, fixed_point
from litecl.interpreter.arithmetic.integer_sums import Sums, clip_of, clipped, saturate, sums
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, Run, Specs
from litecl.interpreter.recurrent import lstm_cell
from litecl.interpreter.recurrent.lstm_cell import FULL, CellOptions

_GATE_BITS = 12
_UNIT = 2.0**-15

_ABSENT = (*range(FULL.peephole, FULL.peephole + 3), FULL.projection, FULL.projection + 1)


@dataclass(frozen=True, eq=False)
class MicroCell:
    """Sums of the four gates side by side, and what follows them. kept, added, hidden: multiply products of gates."""

    of_input: Sums
    of_output: Sums
    kept: Callable[[Array], Array]
    added: Callable[[Array], Array]
    hidden: Callable[[Array], Array]
    state_power: int
    zero_point: int
    clip: int

    def step(self, of_input: Array, h: Array, c: Array) -> tuple[Array, Array]:
        """Return the new output and cell state, given the products of all gates with the input."""
        gates = saturate(of_input + saturate(self.of_output(h)))
        accept, forget, candidate, out = np.split(gates, 4, axis=-1)
        accept, forget, out = (fixed_math.logistic16(3 * gate) for gate in (accept, forget, out))
        kept = saturate(self.kept(forget * c))
        added = saturate(self.added(accept * fixed_math.tanh16(3 * candidate)))
        c = clipped(saturate(kept + added), self.clip)
        hidden = self.hidden(out * fixed_math.tanh16(_scaled(c, self.state_power + _GATE_BITS)))
        return saturate(hidden + self.zero_point, 8), c


def applies(inputs: Specs) -> bool:
    """Return whether tflite-micro has the cell: neither coupled nor normalized, without peepholes and projection."""
    extra = (*_ABSENT, *(range(FULL.layer_norm, FULL.layer_norm + 4) if FULL.layer_norm is not None else ()))
    return require.optional(inputs, FULL.input_weights) is not None and all(
        require.optional(inputs, i) is None for i in extra
    )


def bind(options: CellOptions, inputs: Specs, outputs: Sequence[TensorSpec], time_major: bool) -> Run:
    """Return the ``run`` for the FULL layout and an input of rank 3."""
    cell = _cell(options, inputs)
    state_specs = require.at(inputs, (FULL.output_state, FULL.cell_state))

    def run(options: CellOptions, inputs: Inputs) -> list[Array]:
        (x,) = require.arrays(inputs, 1)
        steps = x if time_major else x.swapaxes(0, 1)
        h, c = (state.astype(np.int64) for state in lstm_cell.states(inputs, FULL, steps.shape[1]))
        results = np.empty((*steps.shape[:2], h.shape[1]), x.dtype)
        for t, of_input in enumerate(saturate(cell.of_input(steps))):
            limits.tick()
            h, c = cell.step(of_input, h, c)
            results[t] = h
        states = lstm_cell.like_states(inputs, FULL, h, c)
        news = (new.astype(spec.dtype) for new, spec in zip(states, state_specs, strict=True))
        return [results if time_major else results.swapaxes(0, 1), *news]

    return run


def _scaled(c: Array, shift: int) -> Array:
    """Return three times the state with 12 fractional bits, as the table of TANH takes it."""
    if shift >= 0:
        return c * (3 << shift)
    return (c * 3 + (1 << (-shift - 1))) >> -shift


def _cell(options: CellOptions, inputs: Specs) -> MicroCell:
    x, state, memory = require.at(inputs, (0, FULL.output_state, FULL.cell_state))
    scale = float(fixed_point.scale_of(memory))
    return MicroCell(
        _sums(inputs, FULL.input_weights, FULL.bias, x),
        _sums(inputs, FULL.recurrent_weights, None, state),
        _multiplied(_UNIT),
        _multiplied(_UNIT * _UNIT / scale),
        _multiplied(_UNIT * _UNIT / float(fixed_point.scale_of(state))),
        round(float(np.log2(scale))),
        fixed_point.zero_point_of(state),
        clip_of(options.cell_clip, np.float32(scale), 16),
    )


def _multiplied(real: float) -> Callable[[Array], Array]:
    return partial(fixed_point.multiply_by_quantized_multiplier, multiplier=fixed_point.quantize_multiplier(real))


def _sums(inputs: Specs, first: int, bias: int | None, rows: TensorSpec) -> Sums:
    """Return the sums of all gates with 12 fractional bits; factors are products of scales in float64."""
    weights = require.at(inputs, range(first, first + 4))
    biases = [None if bias is None else require.optional(inputs, bias + i) for i in range(4)]
    scale = float(fixed_point.scale_of(rows)) * 2**_GATE_BITS
    parts = [(w, b, scale * float(fixed_point.scale_of(w))) for w, b in zip(weights, biases, strict=True)]
    return sums(parts, fixed_point.zero_point_of(rows))
