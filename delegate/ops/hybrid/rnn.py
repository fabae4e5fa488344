"""RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN of floats with integer weights: the operators of
floats, on cells whose weights are integers.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from litecl.delegate.cl_op import Refusal
from litecl.delegate.kit import claims
from litecl.delegate.ops import rnn
from litecl.delegate.recurrent.operands import claim_integers
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.rnn import BIDIRECTIONAL_SEQUENCE_RNN


def _claim(options: Any, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claim_integers(options, inputs, rnn.MATRICES, rnn.STATES)


def _claim_both(options: Any, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    return claim_integers(options, inputs, rnn.BOTH_MATRICES, rnn.BOTH_STATES)


CL_OPS = tuple(
    replace(cl_op, claim=_claim_both if cl_op.op is BIDIRECTIONAL_SEQUENCE_RNN else _claim) for cl_op in rnn.CL_OPS
)
