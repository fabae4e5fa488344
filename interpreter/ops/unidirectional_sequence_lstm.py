"""UNIDIRECTIONAL_SEQUENCE_LSTM: an LSTM cell along the time dimension."""

from collections.abc import Sequence

from litecl.interpreter.arithmetic import hybrid
from litecl.interpreter.arithmetic.hybrid import NO_SCALES, Scales
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import KEEPS_STATES
from litecl.interpreter.kit import lowest, require, types
from litecl.interpreter.op import Inputs, Op, Run, Specs
from litecl.interpreter.recurrent import integer_lstm, lstm_cell
from litecl.interpreter.recurrent.lstm_cell import FULL
from litecl.interpreter.schema import ActivationFunctionType, TensorType


@dataclass(frozen=True)
class UnidirectionalSequenceLSTMOptions:
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    time_major: bool = False
    asymmetric_quantize_inputs: bool = False
    diagonal_recurrent_tensors: bool = False


def _infer(options: UnidirectionalSequenceLSTMOptions, inputs: Specs) -> list[TensorSpec]:
    if len(inputs) not in (20, 24):
        raise ShapeError(f"expected 20 or 24 inputs, got {len(inputs)}")
    (x,) = require.present(inputs, 1)
    require.types(x, (*types.FLOAT, TensorType.INT8))
    require.rank(x, exactly=3)
    batch, depth = x.static_shape[1 if options.time_major else 0], x.static_shape[2]
    outputs = lstm_cell.check(inputs, depth, batch)
    return [TensorSpec(x.type, (*x.static_shape[:2], outputs))]


def _run(options: UnidirectionalSequenceLSTMOptions, inputs: Inputs, scales: Scales = NO_SCALES) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    steps = x if options.time_major else x.swapaxes(0, 1)
    h, c = lstm_cell.states(inputs, FULL, steps.shape[1])
    outputs, h, c = lstm_cell.cell(options, inputs, scales=scales).run(steps, None, h, c)
    outputs = outputs if options.time_major else outputs.swapaxes(0, 1)
    return [outputs, *lstm_cell.like_states(inputs, FULL, h, c)]


_bind_hybrid = hybrid.bind(_run)


def _bind(options: UnidirectionalSequenceLSTMOptions, inputs: Specs, outputs: Sequence[TensorSpec]) -> Run | None:
    (x,) = require.present(inputs, 1)
    if x.type == TensorType.FLOAT32:
        return _bind_hybrid(options, inputs, outputs)
    return integer_lstm.bind(options, inputs, outputs, time_major=options.time_major)


UNIDIRECTIONAL_SEQUENCE_LSTM = Op(
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    versions=range(1, 5),
    options=UnidirectionalSequenceLSTMOptions,
    infer=_infer,
    run=_run,
    bind=_bind,
    states=(FULL.output_state, FULL.cell_state),
    integers=KEEPS_STATES,
    lowest=lowest.by_type({TensorType.INT8: 2}, 2),
)
