"""Lowers Keras' recurrent layers to one fused operator each.

TFLite's kernel keeps its state in variable tensors between invocations, which is wrong for a layer that starts anew on
every sequence. But a node may write a variable tensor before the LSTM reads and overwrites it. So FILL writes an
initial state of zeros, and TILE any other: unlike ADD or RESHAPE, no common delegate claims TILE, and its result never
shares memory with its operand.
"""

from collections.abc import Sequence

import numpy as np

from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder
from litecl.converter.records import Dims
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.bidirectional_sequence_lstm import (
    BIDIRECTIONAL_SEQUENCE_LSTM,
    BidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.ops.broadcast_to import BROADCAST_TO
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.fill import FILL
from litecl.interpreter.ops.pack import PACK
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.rnn import UNIDIRECTIONAL_SEQUENCE_RNN, SequenceRNNOptions
from litecl.interpreter.ops.shape import SHAPE, ShapeOptions
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE, StridedSliceOptions
from litecl.interpreter.ops.tile import TILE
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.schema import ActivationFunctionType, TensorType

_ACTIVATIONS = {"tanh": ActivationFunctionType.TANH, "relu": ActivationFunctionType.RELU}


def lower_lstm(b: Builder) -> Sequence[Value]:
    """Lower to UNIDIRECTIONAL_SEQUENCE_LSTM."""
    x, h, c, *_ = (b.node.input(i) for i in range(len(b.node.inputs)))
    weights = tuple(b.known(i, operand) for i, operand in ((3, "kernel"), (4, "recurrent kernel"), (5, "bias")))
    attrs = b.node.attrs
    return lstm_layer(b, x, h, c, weights, attrs["activation"], attrs["go_backwards"], b.node.output.shape)


def lstm_layer(
    b: Builder,
    x: Value,
    h: Value,
    c: Value,
    weights: Sequence[Array],
    activation: str,
    go_backwards: bool,
    shape: Dims | None,
    axis: int = 1,
) -> tuple[Value, Value, Value]:
    """Return the sequence [B,T,U], of this ``shape``, its last step, and the last cell state.

    weights: kernel [F,4U], recurrent kernel [U,4U] and bias [4U], gates in Keras' order. axis: of time, 0 for sequences
    [T,B,F].
    """
    if go_backwards:
        x = b.reverse(x, axis)
    state, cell = _initial(b, h), _initial(b, c)
    absent = [None] * 3
    kernel, recurrent, bias = (_per_gate(b, part) for part in weights)
    operands = [x, *kernel, *recurrent, *absent, *bias, None, None, state, cell, *absent, None]
    options = UnidirectionalSequenceLSTMOptions(_ACTIVATIONS[activation], time_major=axis == 0)
    sequence = b.op(UNIDIRECTIONAL_SEQUENCE_LSTM, operands, options, type=x.type, shape=shape)
    last = _step(b, sequence, -1, None if shape is None else (shape[1 - axis], shape[2]), axis)
    return sequence, last, _after(b, cell, last)


def _per_gate(b: Builder, joined: Array) -> list[Value]:
    """Split Keras' joined input, forget, cell and output gates; matrices are transposed."""
    return [b.const(np.ascontiguousarray(part.T)) for part in np.split(joined, 4, axis=-1)]


def zero_state(b: Builder, shape: Sequence[int]) -> Value:
    """Return a variable tensor that is zeroed at every run."""
    return _initial(b, b.const(np.zeros(tuple(shape), np.float32)))


def _initial(b: Builder, value: Value) -> Value:
    """Return a variable tensor that is set to ``value`` at every run."""
    state = Value(value.type, value.shape, f"{b.node.name}/state", is_state=True)
    fill = value.producer if value.producer is not None and value.producer.op is FILL else None
    if value.data is not None and not value.data.any():
        dims = b.const(value.data.shape, np.int32)
        b.ops(FILL, [dims, b.const(0, value.data.dtype)], None, [state])
    elif fill is not None:
        shape, zero = fill.inputs
        assert shape is not None
        b.ops(FILL, [_joined(b, shape), zero], None, [state])
    else:
        b.ops(TILE, [value, b.const([1, 1], np.int32)], None, [state])
    return state


def _joined(b: Builder, dims: Value) -> Value:
    """Replace the PACK of dimensions by a CONCATENATION, which, like SHAPE, LiteRT computes when it allocates tensors.

    So it knows the shape of a state, whose memory it otherwise refuses to reset (``reset_all_variables``).
    """
    pack = dims.producer
    if pack is None or pack.op is not PACK:
        return dims
    parts = [_vector(b, number) for number in pack.inputs if number is not None]
    return b.op(CONCATENATION, parts, ConcatenationOptions(0), type=dims.type, shape=dims.shape)


def _vector(b: Builder, number: Value) -> Value:
    """Return a scalar as a vector of one element; if it is sliced from a vector, by keeping the dimension."""
    if number.data is not None:
        return b.const(number.data.reshape(1))
    taken = number.producer
    if taken is not None and taken.op is STRIDED_SLICE and taken.options == StridedSliceOptions(shrink_axis_mask=1):
        vector, begin, *_ = taken.inputs
        at = None if begin is None or begin.data is None else int(begin.data[0])
        if at is not None and at >= 0:
            bounds = [b.const([bound], np.int32) for bound in (at, at + 1, 1)]
            return b.op(STRIDED_SLICE, [vector, *bounds], StridedSliceOptions(), type=number.type, shape=(1,))
    return b.op(RESHAPE, [number, b.const([1], np.int32)], ReshapeOptions((1,)), type=number.type, shape=(1,))


def _step(b: Builder, sequence: Value, at: int, shape: Dims | None, axis: int = 1) -> Value:
    """Return the first or last step of [B, T, U], or of [T, B, U] with axis 0."""
    begin, end = ([*[0] * axis, bound, *[0] * (2 - axis)] for bound in (at, at + 1))
    bounds = [b.const(bound, np.int32) for bound in (begin, end, [1, 1, 1])]
    time = 1 << axis
    options = StridedSliceOptions(begin_mask=0b111 - time, end_mask=0b111, shrink_axis_mask=time)
    return b.op(STRIDED_SLICE, [sequence, *bounds], options, type=sequence.type, shape=shape)


def _after(b: Builder, state: Value, result: Value) -> Value:
    """Return a copy of a state after the LSTM has run.

    The copy depends on the shape of the LSTM's result, so no runtime reads the state before the LSTM has run.
    """
    shape = b.op(SHAPE, [result], ShapeOptions(TensorType.INT32), type=TensorType.INT32, shape=(2,))
    return b.op(BROADCAST_TO, [state, shape], type=state.type, shape=state.shape)


def lower_rnn(b: Builder) -> Sequence[Value]:
    """Lower to UNIDIRECTIONAL_SEQUENCE_RNN."""
    x, h, *_ = (b.node.input(i) for i in range(len(b.node.inputs)))
    weights = [*(b.const(np.ascontiguousarray(b.known(i, "weights").T)) for i in (2, 3)), b.node.input(4)]
    return rnn_layer(b, x, h, weights, b.node.attrs["activation"], b.node.attrs["go_backwards"], b.node.output.shape)


def rnn_layer(
    b: Builder,
    x: Value,
    h: Value,
    weights: Sequence[Value],
    activation: str,
    go_backwards: bool,
    shape: Dims | None,
    axis: int = 1,
) -> tuple[Value, Value]:
    """Return the sequence [B,T,U], of this ``shape``, and its last step.

    weights: kernel [U,F], recurrent kernel [U,U] and bias [U]. axis: of time, 0 for sequences [T,B,F].
    """
    if go_backwards:
        x = b.reverse(x, axis)
    options = SequenceRNNOptions(axis == 0, _ACTIVATIONS[activation])
    operands = [x, *weights, _initial(b, h)]
    sequence = b.op(UNIDIRECTIONAL_SEQUENCE_RNN, operands, options, type=x.type, shape=shape)
    return sequence, _step(b, sequence, -1, None if shape is None else (shape[1 - axis], shape[2]), axis)


def lower_bidirectional(b: Builder) -> Sequence[Value]:
    """Lower to BIDIRECTIONAL_SEQUENCE_LSTM.

    Of 48 operands, 18 are absent: peepholes, projections, an auxiliary input and its weights.
    """
    operands: list[Value | None] = [b.node.input(0)]
    states: list[Value] = []
    for first in (1, 6):
        kernel, recurrent, bias = (_per_gate(b, b.known(first + i, "weights")) for i in (2, 3, 4))
        operands += [*kernel, *recurrent, *[None] * 3, *bias, None, None]
        states += [_initial(b, b.node.input(first)), _initial(b, b.node.input(first + 1))]
    options = BidirectionalSequenceLSTMOptions(_ACTIVATIONS[b.node.attrs["activation"]], time_major=False)
    like = b.like()
    forward, backward = b.ops(
        BIDIRECTIONAL_SEQUENCE_LSTM, [*operands, *states, *[None] * 9], options, [like[0], like[3]]
    )
    shape = b.node.outputs[1].shape
    lasts = _step(b, forward, -1, shape), _step(b, backward, 0, shape)
    cells = [_after(b, state, last) for state, last in zip(states[1::2], lasts, strict=True)]
    return forward, lasts[0], cells[0], backward, lasts[1], cells[1]
