"""The converter's internal operators: passes and traces emit them, and ``lower`` turns them into TFLite operators.

Sequences are [B,T,F], states [B,U], kernels [F,4U], recurrent kernels [U,4U] and biases [4U], with gates in Keras'
order: input, forget, cell, output.
"""

from collections.abc import Sequence

from litecl.converter.lower import composites, control, elementwise, lstm, matmul
from litecl.converter.records import Dims, OwnOp

Shapes = Sequence[Dims | None]


def _like_first(shapes: Shapes) -> Shapes:
    return shapes[:1]


def _sequence(x: Dims | None, state: Dims | None) -> Dims | None:
    return None if x is None or state is None else (*x[:2], state[-1])


def _lstm(shapes: Shapes) -> Shapes:
    x, h, c, *_ = shapes
    return [_sequence(x, h), h, c]


def _bidirectional_lstm(shapes: Shapes) -> Shapes:
    x, *layers = shapes
    return [*_lstm([x, *layers[:5]]), *_lstm([x, *layers[5:]])]


def _rnn(shapes: Shapes) -> Shapes:
    x, h, *_ = shapes
    return [_sequence(x, h), h]


def _dense(shapes: Shapes) -> Shapes:
    x, weights = shapes
    return [None if x is None or weights is None else (*x[:-1], weights[0])]


LSTM = OwnOp("litecl.lstm", _lstm, lstm.lower_lstm)
"""An LSTM layer, from (x, h, c, kernel, recurrent kernel, bias) to (sequence, final h, final c).

Attributes: ``activation``, "tanh" or "relu", and ``go_backwards``.
"""

BIDIRECTIONAL_LSTM = OwnOp("litecl.bidirectional_lstm", _bidirectional_lstm, lstm.lower_bidirectional)
"""Forward and backward LSTM layers over one sequence.

From (x, then h, c, kernel, recurrent kernel and bias of the forward, then of the backward layer) to (sequence, final h,
final c) of both; the backward sequence is in time order. Attribute: ``activation``.
"""

RNN = OwnOp("litecl.rnn", _rnn, lstm.lower_rnn)
"""A simple recurrent layer, from (x, h, kernel [F,U], recurrent kernel [U,U], bias [U]) to (sequence, final h).

Attributes: those of ``LSTM``.
"""

DENSE_OF_BYTES = OwnOp("litecl.dense_of_bytes", _dense, matmul.lower_dense_of_bytes)
"""A product of floats [..., depth] with constant INT8 weights [units, depth], whose ``grid`` holds their scales."""

COMPOSITE = OwnOp("litecl.composite", None, composites.lower_composite)
"""A call that a fusion converts. Attributes: ``name``, ``attrs`` and ``fusion``."""

UPDATE_SLICE = OwnOp("litecl.update_slice", _like_first, control.lower_update_slice)
"""Replaces part of a tensor, from (tensor, part, begin)."""

GATED = OwnOp("litecl.gated", _like_first)
"""Operand 0, live only if operand 1 is: TensorFlow 1 expresses this by a control edge from a branch's pivot."""

GELU = OwnOp("litecl.gelu", _like_first, elementwise.lower_gelu)
"""Gaussian error linear unit. Attribute: ``approximate``, whether to use tanh."""

HARD_SWISH = OwnOp("litecl.hard_swish", _like_first, elementwise.lower_hard_swish)
"""x * relu6(x + 3) / 6"""

PRELU = OwnOp("litecl.prelu", _like_first, elementwise.lower_prelu)
"""relu(x) + slope * relu(-x), from (x, slope)."""

LOG_SIGMOID = OwnOp("litecl.log_sigmoid", _like_first, elementwise.lower_log_sigmoid)
"""log(sigmoid(x))"""

TANH_OF_SOFTPLUS = OwnOp("litecl.tanh_of_softplus", _like_first, elementwise.lower_tanh_of_softplus)
"""tanh(log(1 + exp(x))), the main part of Mish."""

RELU_N1_TO_1 = OwnOp("litecl.relu_n1_to_1", _like_first, elementwise.lower_relu_n1_to_1)
"""min(max(x, -1), 1)"""

L2_NORMALIZATION = OwnOp("litecl.l2_normalization", _like_first, elementwise.lower_l2_normalization)
"""x / max(sqrt(sum(x * x)), 1e-6), over the last dimension."""

OWN_OPS = (
    LSTM,
    BIDIRECTIONAL_LSTM,
    RNN,
    DENSE_OF_BYTES,
    COMPOSITE,
    UPDATE_SLICE,
    GATED,
    GELU,
    HARD_SWISH,
    PRELU,
    LOG_SIGMOID,
    TANH_OF_SOFTPLUS,
    RELU_N1_TO_1,
    L2_NORMALIZATION,
)
