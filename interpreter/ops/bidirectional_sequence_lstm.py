"""BIDIRECTIONAL_SEQUENCE_LSTM: two LSTM cells along the time dimension, one forwards and one backwards.

The 48 operands: 0 the input, 1-17 the forward cell, 18-34 the backward cell, 35-38 their states, 39 an auxiliary input,
40-47 its weights. Without these weights the backward cell reads the auxiliary input instead (stacked layers that are
not cross-linked).
"""

import numpy as np

from litecl.interpreter.arithmetic import hybrid
from litecl.interpreter.arithmetic.hybrid import NO_SCALES, Scales
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import KEEPS_STATES
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.recurrent import lstm_cell
from litecl.interpreter.recurrent.lstm_cell import Layout
from litecl.interpreter.schema import ActivationFunctionType

FORWARD = Layout(
    input_weights=1,
    recurrent_weights=5,
    peephole=9,
    bias=12,
    projection=16,
    output_state=35,
    cell_state=36,
    aux_weights=40,
)
BACKWARD = Layout(
    input_weights=18,
    recurrent_weights=22,
    peephole=26,
    bias=29,
    projection=33,
    output_state=37,
    cell_state=38,
    aux_weights=44,
)
_AUX = 39
_AUX_WEIGHTS = range(40, 48)
_AUX_TO_FORGET = 41


@dataclass(frozen=True)
class BidirectionalSequenceLSTMOptions:
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    cell_clip: float = 0.0
    proj_clip: float = 0.0
    merge_outputs: bool = False
    time_major: bool = True
    asymmetric_quantize_inputs: bool = False


def _infer(options: BidirectionalSequenceLSTMOptions, inputs: Specs) -> list[TensorSpec]:
    if len(inputs) != 48:
        raise ShapeError(f"expected 48 inputs, got {len(inputs)}")
    (x,) = require.present(inputs, 1)
    require.types(x, types.FLOAT)
    require.rank(x, exactly=3)
    lead, depth = x.static_shape[:2], x.static_shape[2]
    batch = lead[1 if options.time_major else 0]
    aux = inputs[_AUX]
    if aux is not None and aux.static_shape[:-1] != lead:
        raise ShapeError(f"expected an auxiliary input {[*lead, 'n']}, got {list(aux.static_shape)}")
    _check_aux_weights(inputs)
    backward_depth = depth if aux is None or inputs[_AUX_TO_FORGET] is not None else aux.static_shape[2]
    forward = lstm_cell.check(inputs, depth, batch, FORWARD)
    backward = lstm_cell.check(inputs, backward_depth, batch, BACKWARD)
    sizes = [forward + backward] if options.merge_outputs else [forward, backward]
    return [TensorSpec(x.type, (*lead, size)) for size in sizes]


def _check_aux_weights(inputs: Specs) -> None:
    aux = inputs[_AUX]
    for position in _AUX_WEIGHTS:
        spec = inputs[position]
        if spec is None:
            continue
        depth = None if aux is None else aux.static_shape[-1]
        if len(spec.static_shape) != 2 or spec.static_shape[1] != depth:
            raise ShapeError(f"expected weights [cells, {depth}] as input {position}, got {list(spec.static_shape)}")


def _run(options: BidirectionalSequenceLSTMOptions, inputs: Inputs, scales: Scales = NO_SCALES) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    aux = inputs[_AUX]
    steps = _time_major(options, x)
    aux_steps = None if aux is None else _time_major(options, aux)
    linked = inputs[_AUX_TO_FORGET] is not None
    linked_aux = aux_steps if linked else None
    backward_steps = steps if aux_steps is None or linked else aux_steps

    outputs, states = [], []
    for layout, sequence in ((FORWARD, steps), (BACKWARD, backward_steps)):
        h, c = lstm_cell.states(inputs, layout, steps.shape[1])
        cell = lstm_cell.cell(options, inputs, layout, scales)
        output, h, c = cell.run(sequence, linked_aux, h, c, reverse=layout is BACKWARD)
        outputs.append(_time_major(options, output))
        states += lstm_cell.like_states(inputs, layout, h, c)
    return [*([np.concatenate(outputs, axis=2)] if options.merge_outputs else outputs), *states]


def _time_major(options: BidirectionalSequenceLSTMOptions, x: Array) -> Array:
    """Swap between the model's order of dimensions and [time, batch, n]."""
    return x if options.time_major else x.swapaxes(0, 1)


BIDIRECTIONAL_SEQUENCE_LSTM = Op(
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    versions=range(1, 4),
    options=BidirectionalSequenceLSTMOptions,
    infer=_infer,
    run=_run,
    bind=hybrid.bind(_run),
    states=(FORWARD.output_state, FORWARD.cell_state, BACKWARD.output_state, BACKWARD.cell_state),
    integers=KEEPS_STATES,
)
