"""The BASIC LSTM cell with 8-bit activations and 16-bit states (LstmCell of tflite/kernels/internal/reference).

Activations are UINT8 with zero point 128 and scale 1/128; states have four integer bits, gates three.
"""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.arithmetic import exact, fixed_point, gemmlowp
from litecl.interpreter.arithmetic.fixed_point import Multiplier, saturating_rounding_doubling_high_mul
from litecl.interpreter.arithmetic.integer_sums import saturate
from litecl.interpreter.errors import UnsupportedOp
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, Run, Specs

_STATE_BITS, _GATE_BITS = 4, 3


def factor_of(bias: TensorSpec, state: TensorSpec) -> Multiplier:
    """Return the factor from sums, in the bias's scale, to gates. Raises UnsupportedOp for another form of state."""
    bits = 15 + round(float(np.log2(fixed_point.scale_of(state))))
    if bits != _STATE_BITS:
        raise UnsupportedOp(f"expected a state of {_STATE_BITS} integer bits, got {bits}")
    return fixed_point.quantize_multiplier(4096 * fixed_point.scale_of(bias))


def tables() -> tuple[Array, Array]:
    """Return the logistic function and the hyperbolic tangent of gates, by their value modulo 2**16."""
    return gemmlowp.table(gemmlowp.logistic, _GATE_BITS), gemmlowp.table(gemmlowp.tanh, _GATE_BITS)


def bind(inputs: Specs, outputs: Sequence[TensorSpec]) -> Run:
    """Return the ``run`` for operands input, previous activation, weights, bias, previous state."""
    _, _, weights, bias, _ = require.present(inputs, 5)
    factor = factor_of(bias, outputs[1])
    zero_point = fixed_point.zero_point_of(weights)
    ready = exact.once([weights], lambda matrix: exact.product(matrix.T.astype(np.int64) - zero_point, 128))

    def run(options: object, inputs: Inputs) -> list[Array]:
        x, h, weights, bias, c = require.arrays(inputs, 5)
        joined = np.concatenate([x, h], axis=1)
        sums = ready(weights)(joined.astype(np.int64) - 128).astype(np.int64) + bias
        gates = saturate(_rescaled(sums, factor))
        h, c = _cell(gates, c.astype(np.int64))
        return [h, c, joined, gates.astype(np.int16), h, c]

    return run


def _rescaled(sums: Array, factor: Multiplier) -> Array:
    """Return sums times the factor, rounded twice, the second time with halves up, as ruy does in LiteRT."""
    left, right = max(int(factor.shift), 0), max(-int(factor.shift), 0)
    high = saturating_rounding_doubling_high_mul(fixed_point.wrapped(sums << left), factor.value)
    result: Array = (high + ((1 << right) >> 1)) >> right
    return result


def _cell(gates: Array, c: Array) -> tuple[Array, Array]:
    """Return new activation and state, for gates before their activations: input, candidate, forget, output."""
    logistic, tanh = tables()
    accept, candidate, forget, output = np.split(gates & 0xFFFF, 4, axis=1)
    added = _times(logistic[accept], tanh[candidate])
    new = saturate(fixed_point.rounding_divide_by_pot(added, _STATE_BITS) + _times(logistic[forget], c))
    narrow = fixed_point.saturating_multiply_by_pot(new, _STATE_BITS - _GATE_BITS, 16)
    activation = _times(logistic[output], tanh[narrow & 0xFFFF])
    stored = saturate(fixed_point.rounding_divide_by_pot(activation, 8), 8) + 128
    return stored.astype(np.uint8), new.astype(np.int16)


def _times(a: Array, b: Array) -> Array:
    return saturating_rounding_doubling_high_mul(a, b, 16)
