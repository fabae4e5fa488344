"""Lowers Lingvo's LSTM cells to LSTM: one step from a state of zeros.

Operands: input [B, n_in], weights [n_in + n_out, gates * n_cell], bias [gates * n_cell], projection [n_cell, n_out] (of
another rank if there is none); with layer normalization also its scales [gates * n_cell]. Gates are in the order cell,
input, forget, output; with ``,CoupleInputForgetGates`` after the name there is no input gate.
Source of contract and clip (10): tensorflow/compiler/mlir/lite/utils/lstm_utils.cc.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from litecl.converter.composites import Composite
from litecl.converter.fusions.fusion import Fusion, expect, expect_constants, expect_rank
from litecl.converter.graph import Value
from litecl.converter.lower.builder import Builder
from litecl.converter.lower.lstm import zero_state
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.lstm import LSTM, LSTMOptions
from litecl.interpreter.schema import ActivationFunctionType

_SIMPLE = ("LSTMCellSimple",)
_NORMALIZED = ("LayerNormalizedLstmCellSimple", "LayerNormalizedLSTMCellSimple")
_COUPLED = "CoupleInputForgetGates"
_CELL_CLIP = 10.0


def _parts(name: str) -> tuple[str, bool]:
    """Return the cell's name without prefix, and whether input and forget gates are coupled."""
    cell, *tokens = name.split(",")
    return cell.strip().removeprefix("lingvo."), _COUPLED in (token.strip() for token in tokens)


def _matches(name: str, attrs: Mapping[str, Any]) -> bool:
    return _parts(name)[0] in _SIMPLE + _NORMALIZED


def _check(composite: Composite) -> str | None:
    cell, coupled = _parts(composite.name)
    normalized = cell in _NORMALIZED
    least = 5 if normalized else 4
    wrong = (
        expect(composite, range(least, least + 8), range(1, 2))
        or expect_rank(composite, 0, 2, "an input")
        or expect_rank(composite, 1, 2, "weights")
        or expect_constants(composite, weights=1, bias=2, projection=3)
        or (expect_constants(composite, layer_norm_scale=4) if normalized else None)
    )
    if wrong is not None:
        return wrong
    x, weights, bias = (value.shape for value in composite.inputs[:3])
    gates = 3 if coupled else 4
    assert x is not None and weights is not None and weights[0] is not None and weights[1] is not None
    if x[0] is None or x[1] is None:
        return f"expected an input of known shape, got {x}"
    if weights[1] % gates or bias != (weights[1],):
        return f"expected weights and bias for {gates} gates, got {weights} and {bias}"
    units = _projected(composite, weights[1] // gates)
    if weights[0] != x[1] + units:
        return f"expected weights of {x[1]} + {units} rows, got {weights[0]}"
    return None


def _projected(composite: Composite, cells: int) -> int:
    """Return the number of results of a cell."""
    projection = composite.inputs[3].shape
    return int(projection[1] or 0) if projection is not None and len(projection) == 2 else cells


def _rewrite(b: Builder, composite: Composite) -> Value:
    cell, coupled = _parts(composite.name)
    x, weights, bias, projection = composite.inputs[:4]
    assert x.static_shape is not None and weights.data is not None and bias.data is not None
    batch, depth = x.static_shape
    gates = 3 if coupled else 4
    cells = bias.data.size // gates
    by_gate = _reordered(np.split(weights.data, gates, axis=1), coupled)
    of_input = [None if w is None else b.const(np.ascontiguousarray(w[:depth].T)) for w in by_gate]
    recurrent = [None if w is None else b.const(np.ascontiguousarray(w[depth:].T)) for w in by_gate]
    projected = projection.rank == 2
    down = b.const(np.ascontiguousarray(projection.data.T)) if projected and projection.data is not None else None
    scales: list[Value | None] = [None] * 4
    if cell in _NORMALIZED:
        scales = _vectors(b, composite.inputs[4].data, coupled)
    operands = [
        x,
        *of_input,
        *recurrent,
        *[None] * 3,
        *_vectors(b, bias.data, coupled),
        down,
        None,
        zero_state(b, (batch, _projected(composite, cells))),
        zero_state(b, (batch, cells)),
        *scales,
    ]
    options = LSTMOptions(ActivationFunctionType.TANH, cell_clip=_CELL_CLIP)
    return b.op(LSTM, operands, options, shape=(batch, _projected(composite, cells)))


def _vectors(b: Builder, joined: Array | None, coupled: bool) -> list[Value | None]:
    assert joined is not None
    parts = _reordered(np.split(joined, 3 if coupled else 4), coupled)
    return [None if part is None else b.const(np.ascontiguousarray(part)) for part in parts]


def _reordered(gates: list[Array], coupled: bool) -> list[Array | None]:
    """Reorder gates from Lingvo's (cell, input, forget, output) to TFLite's (input, forget, cell, output)."""
    cell, *rest = gates
    accept, forget, output = (None, *rest) if coupled else rest
    return [accept, forget, cell, output]


LSTM_CELL_SIMPLE = Fusion("LSTMCellSimple", _rewrite, _check, _matches)
