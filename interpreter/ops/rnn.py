"""RNN, UNIDIRECTIONAL_SEQUENCE_RNN, BIDIRECTIONAL_SEQUENCE_RNN: h = activation(W x + W_aux aux + R h + b)."""

import numpy as np

from litecl.interpreter import limits
from litecl.interpreter.arithmetic import hybrid
from litecl.interpreter.arithmetic.hybrid import NO_SCALES, Matrix, Scales
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import KEEPS_STATES
from litecl.interpreter.kit import activation, lowest, require, types
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.schema import ActivationFunctionType


@dataclass(frozen=True)
class RNNOptions:
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    asymmetric_quantize_inputs: bool = False


@dataclass(frozen=True)
class SequenceRNNOptions:
    time_major: bool = False
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    asymmetric_quantize_inputs: bool = False


@dataclass(frozen=True)
class BidirectionalSequenceRNNOptions:
    time_major: bool = False
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE
    merge_outputs: bool = False
    asymmetric_quantize_inputs: bool = False


Options = RNNOptions | SequenceRNNOptions | BidirectionalSequenceRNNOptions

# Positions of a cell's weights, recurrent weights, bias and state, and of the auxiliary input's weights.
_FORWARD, _BACKWARD = slice(1, 5), slice(5, 9)
_AUX, _AUX_WEIGHTS = 9, (10, 11)


def _check(inputs: Specs, operands: slice, depth: int, batch: int) -> int:
    weights, recurrent, bias, state = require.at(inputs, range(operands.start, operands.stop))
    units = weights.static_shape[0]
    expected = ((units, depth), (units, units), (units,), (batch, units))
    for name, spec, shape in zip(
        ("weights", "recurrent weights", "a bias", "a state"), (weights, recurrent, bias, state), expected, strict=True
    ):
        if spec.static_shape != shape:
            raise ShapeError(f"expected {name} of shape {list(shape)}, got {list(spec.static_shape)}")
    return units


def _over_time(
    of_input: Array, recurrent: Matrix, operands: Inputs, function: ActivationFunctionType, reverse: bool = False
) -> tuple[Array, Array]:
    """Return outputs [time, batch, units] and the last state. of_input: the inputs' share of every step."""
    _, _, bias, h = require.arrays(operands, 4)
    outputs = np.empty_like(of_input)
    steps = range(len(of_input))
    for t in reversed(steps) if reverse else steps:
        limits.tick()
        h = activation.apply(function, of_input[t] + recurrent(h) + bias)
        outputs[t] = h
    return outputs, h


def _infer_rnn(options: RNNOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.types(x, types.FLOAT)
    require.rank(x, exactly=2)
    batch, depth = x.static_shape
    return [TensorSpec(x.type, (batch, _check(inputs, _FORWARD, depth, batch)))]


def _run_rnn(options: RNNOptions, inputs: Inputs, scales: Scales = NO_SCALES) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    weights, recurrent = (_matrix(options, inputs, scales, position) for position in (1, 2))
    (output,), h = _over_time(weights(x)[None], recurrent, inputs[_FORWARD], options.fused_activation_function)
    return [output, h]


def _infer_sequence(options: SequenceRNNOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.types(x, types.FLOAT)
    require.rank(x, exactly=3)
    lead = x.static_shape[:2]
    units = _check(inputs, _FORWARD, x.static_shape[2], lead[1 if options.time_major else 0])
    return [TensorSpec(x.type, (*lead, units))]


def _run_sequence(options: SequenceRNNOptions, inputs: Inputs, scales: Scales = NO_SCALES) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    weights, recurrent = (_matrix(options, inputs, scales, position) for position in (1, 2))
    steps = _time_major(options.time_major, x)
    outputs, h = _over_time(weights(steps), recurrent, inputs[_FORWARD], options.fused_activation_function)
    return [_time_major(options.time_major, outputs), h]


def _infer_bidirectional(options: BidirectionalSequenceRNNOptions, inputs: Specs) -> list[TensorSpec]:
    if len(inputs) != 12:
        raise ShapeError(f"expected 12 inputs, got {len(inputs)}")
    (x,) = require.present(inputs, 1)
    require.types(x, types.FLOAT)
    require.rank(x, exactly=3)
    lead, depth, aux = x.static_shape[:2], x.static_shape[2], inputs[_AUX]
    batch = lead[1 if options.time_major else 0]
    if aux is not None and aux.static_shape[:-1] != lead:
        raise ShapeError(f"expected an auxiliary input {[*lead, 'n']}, got {list(aux.static_shape)}")
    linked = inputs[_AUX_WEIGHTS[0]] is not None
    backward_depth = depth if aux is None or linked else aux.static_shape[2]
    forward = _check(inputs, _FORWARD, depth, batch)
    backward = _check(inputs, _BACKWARD, backward_depth, batch)
    sizes = [forward + backward] if options.merge_outputs else [forward, backward]
    return [TensorSpec(x.type, (*lead, size)) for size in sizes]


def _run_bidirectional(
    options: BidirectionalSequenceRNNOptions, inputs: Inputs, scales: Scales = NO_SCALES
) -> list[Array]:
    """Run both directions. An auxiliary input with weights adds to both; without, the backward one reads it instead."""
    (x,) = require.arrays(inputs, 1)
    steps = _time_major(options.time_major, x)
    aux = None if inputs[_AUX] is None else _time_major(options.time_major, *require.arrays(inputs[_AUX:], 1))
    linked = inputs[_AUX_WEIGHTS[0]] is not None
    outputs, states = [], []
    for operands, aux_position in ((_FORWARD, _AUX_WEIGHTS[0]), (_BACKWARD, _AUX_WEIGHTS[1])):
        reverse = operands is _BACKWARD
        weights, recurrent = (_matrix(options, inputs, scales, operands.start + i) for i in range(2))
        of_input = weights(aux if reverse and aux is not None and not linked else steps)
        if aux is not None and linked:
            of_input += _matrix(options, inputs, scales, aux_position)(aux)
        output, h = _over_time(of_input, recurrent, inputs[operands], options.fused_activation_function, reverse)
        outputs.append(_time_major(options.time_major, output))
        states.append(h)
    return [*([np.concatenate(outputs, axis=2)] if options.merge_outputs else outputs), *states]


def _matrix(options: Options, inputs: Inputs, scales: Scales, position: int) -> Matrix:
    (values,) = require.arrays(inputs[position:], 1)
    return Matrix(values, scales.get(position), options.asymmetric_quantize_inputs)


def _time_major(already: bool, x: Array) -> Array:
    """Swap between the model's order of dimensions and [time, batch, n]."""
    return x if already else x.swapaxes(0, 1)


RNN = Op(
    "RNN",
    versions=range(1, 4),
    options=RNNOptions,
    infer=_infer_rnn,
    run=_run_rnn,
    bind=hybrid.bind(_run_rnn),
    states=(4,),
    integers=KEEPS_STATES,
    lowest=lowest.hybrid(2),
)
UNIDIRECTIONAL_SEQUENCE_RNN = Op(
    "UNIDIRECTIONAL_SEQUENCE_RNN",
    versions=range(1, 4),
    options=SequenceRNNOptions,
    infer=_infer_sequence,
    run=_run_sequence,
    bind=hybrid.bind(_run_sequence),
    states=(4,),
    integers=KEEPS_STATES,
    lowest=lowest.hybrid(2),
)
BIDIRECTIONAL_SEQUENCE_RNN = Op(
    "BIDIRECTIONAL_SEQUENCE_RNN",
    versions=range(1, 4),
    options=BidirectionalSequenceRNNOptions,
    infer=_infer_bidirectional,
    run=_run_bidirectional,
    bind=hybrid.bind(_run_bidirectional),
    states=(4, 8),
    integers=KEEPS_STATES,
    lowest=lowest.hybrid(2),
)
