"""LSTM: one step of an LSTM cell, in the FULL form of 20 or 24 operands and the BASIC one of 5."""

from collections.abc import Sequence

import numpy as np

from litecl.interpreter.arithmetic import hybrid
from litecl.interpreter.arithmetic.hybrid import NO_SCALES, Scales
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import KEEPS_STATES
from litecl.interpreter.kit import lowest, require, types
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.recurrent import integer_basic_lstm, integer_lstm, integer_lstm_8, lstm_cell
from litecl.interpreter.recurrent.lstm_cell import FULL
from litecl.interpreter.schema import ActivationFunctionType, LSTMKernelType, TensorType


@dataclass(frozen=True)
class LSTMOptions:
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    kernel_type: LSTMKernelType = LSTMKernelType.FULL
    asymmetric_quantize_inputs: bool = False


def _infer(options: LSTMOptions, inputs: Specs) -> list[TensorSpec]:
    if len(inputs) not in (20, 24):
        raise ShapeError(f"expected 20 or 24 inputs, got {len(inputs)}")
    (x,) = require.present(inputs, 1)
    require.types(x, (*types.FLOAT, TensorType.INT8))
    require.rank(x, exactly=2)
    batch, depth = x.static_shape
    return [TensorSpec(x.type, (batch, lstm_cell.check(inputs, depth, batch)))]


def _run(options: LSTMOptions, inputs: Inputs, scales: Scales = NO_SCALES) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    h, c = lstm_cell.states(inputs, FULL, len(x))
    (output,), h_new, c_new = lstm_cell.cell(options, inputs, scales=scales).run(x[None], None, h, c)
    return [output, *lstm_cell.like_states(inputs, FULL, h_new, c_new)]


_bind_hybrid = hybrid.bind(_run)


def _bind(options: LSTMOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    (x,) = require.present(inputs, 1)
    if x.type == TensorType.FLOAT32:
        return _bind_hybrid(options, inputs, outputs)
    if len(outputs) > 6:
        return integer_lstm_8.bind(options, inputs, outputs)
    return integer_lstm.bind(options, inputs, outputs, time_major=True)


def _select(options: LSTMOptions) -> Op:
    return BASIC_LSTM if options.kernel_type == LSTMKernelType.BASIC else LSTM


LSTM = Op(
    "LSTM",
    versions=range(1, 5),
    options=LSTMOptions,
    infer=_infer,
    run=_run,
    bind=_bind,
    states=(FULL.output_state, FULL.cell_state),
    select=_select,
    integers=KEEPS_STATES,
    lowest=lowest.by_type({TensorType.INT8: 3}, 2),
)


def _infer_basic(options: LSTMOptions, inputs: Specs) -> list[TensorSpec]:
    """Infer from input, previous activation, weights, bias, previous state."""
    x, h, weights, bias, c = require.present(inputs, 5)
    quantized = x.type == TensorType.UINT8
    for spec in (x, h, weights, c):
        wanted = (TensorType.INT16 if spec is c else TensorType.UINT8,) if quantized else types.FLOAT
        require.types(spec, wanted)
        require.rank(spec, exactly=2)
    (batch, depth), (_, units) = x.static_shape, h.static_shape
    expected = {1: (batch, units), 2: (4 * units, depth + units), 3: (4 * units,), 4: (batch, units)}
    for position, spec in enumerate((h, weights, bias, c), start=1):
        if spec.static_shape != expected[position]:
            raise ShapeError(
                f"expected input {position} of shape {list(expected[position])}, got {list(spec.static_shape)}"
            )
    state, joined, gates = (batch, units), (batch, depth + units), (batch, 4 * units)
    return [TensorSpec(h.type, state), TensorSpec(c.type, state), TensorSpec(x.type, joined), TensorSpec(c.type, gates)]


def _run_basic(options: LSTMOptions, inputs: Inputs) -> list[Array]:
    """Return activation, state, the joined input and activation, the gates before their activations, and states."""
    x, h, weights, bias, c = require.arrays(inputs, 5)
    joined = np.concatenate([x, h], axis=1)
    gates = joined @ weights.T + bias
    accept, candidate, forget, output = np.split(gates, 4, axis=1)
    c = lstm_cell.sigmoid(accept) * np.tanh(candidate) + lstm_cell.sigmoid(forget) * c
    h = lstm_cell.sigmoid(output) * np.tanh(c)
    return [h, c, joined, gates, h, c]


def _bind_basic(options: LSTMOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    (x,) = require.present(inputs, 1)
    return None if x.type == TensorType.FLOAT32 else integer_basic_lstm.bind(inputs, outputs)


BASIC_LSTM = Op(
    "LSTM",
    versions=range(1, 5),
    options=LSTMOptions,
    infer=_infer_basic,
    run=_run_basic,
    bind=_bind_basic,
    states=(1, 4),
    integers=KEEPS_STATES,
)
