"""Lowers Keras 2's (tf_keras') LSTM layer, marked ``api_implements: "lstm_..."``, to UNIDIRECTIONAL_SEQUENCE_LSTM.

Operands: input, initial h and c, kernel [F,4U], recurrent kernel [U,4U], bias [4U]; a seventh would be a mask. Results:
last output, sequence, h, c, and a number that tells which implementation ran.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from litecl.converter.composites import Composite
from litecl.converter.fusions.fusion import Fusion, expect, expect_constants, expect_rank
from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder
from litecl.converter.lower.lstm import lstm_layer


def _matches(name: str, attrs: Mapping[str, Any]) -> bool:
    return name.startswith("lstm_")


def _check(composite: Composite) -> str | None:
    if len(composite.inputs) == 7:
        return "it has a mask, which the fused operator does not know"
    wrong = (
        expect(composite, range(6, 7), range(5, 6))
        or expect_rank(composite, 0, 3, "an input")
        or expect_constants(composite, kernel=3, recurrent_kernel=4, bias=5)
    )
    if wrong is not None:
        return wrong
    return "it tells which implementation ran" if composite.outputs[4].users else None


def _rewrite(b: Builder, composite: Composite) -> Sequence[Value]:
    x, h, c, *weights = composite.inputs
    time_major = bool(composite.attrs.get("time_major"))
    by_batch = b.transpose(x, (1, 0, 2)) if time_major else x
    kernel, recurrent, bias = (value.data for value in weights)
    assert kernel is not None and recurrent is not None and bias is not None
    backwards = bool(composite.attrs.get("go_backwards"))
    shape = None if by_batch.shape is None else (*by_batch.shape[:2], recurrent.shape[0])
    sequence, last, cell = lstm_layer(b, by_batch, h, c, (kernel, recurrent, bias), "tanh", backwards, shape)
    sequence = b.transpose(sequence, (1, 0, 2)) if time_major else sequence
    return [last, sequence, last, cell, b.const(0, np.float32)]


KERAS_2_LSTM = Fusion("lstm_*", _rewrite, _check, _matches)
