"""LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM of floats with integer weights: the operators of
floats, on cells whose weights are integers.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from litecl.delegate.cl_op import Refusal
from litecl.delegate.kit import claims
from litecl.delegate.ops import bidirectional_sequence_lstm, lstm, unidirectional_sequence_lstm
from litecl.delegate.recurrent.operands import claim_hybrid
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.bidirectional_sequence_lstm import BACKWARD, FORWARD
from litecl.interpreter.ops.lstm import LSTM
from litecl.interpreter.recurrent.lstm_cell import FULL, Layout

_Claim = Callable[[Any, claims.Specs, Sequence[TensorSpec]], Refusal | None]


def _claims(layouts: Sequence[Layout], *fed: int) -> _Claim:
    return lambda options, inputs, outputs: claim_hybrid(options, inputs, layouts, *fed)


_AUX = bidirectional_sequence_lstm.AUX
_STEP = next(cl_op for cl_op in lstm.CL_OPS if cl_op.op is LSTM)

CL_OPS = (
    *(replace(cl_op, claim=_claims((FULL,), 0)) for cl_op in (_STEP, *unidirectional_sequence_lstm.CL_OPS)),
    *(replace(cl_op, claim=_claims((FORWARD, BACKWARD), 0, _AUX)) for cl_op in bidirectional_sequence_lstm.CL_OPS),
)
