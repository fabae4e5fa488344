"""LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM of 8-bit activations with 16-bit states."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Refusal, Step
from litecl.delegate.kit import claims
from litecl.delegate.quantized.integers import Scale
from litecl.delegate.recurrent.integer_cell import IntegerCell, IntegerGate, run_integer_cell, scale_from
from litecl.delegate.recurrent.time_loop import time_loop
from litecl.interpreter.arithmetic.integer_sums import Sums
from litecl.interpreter.errors import UnsupportedOp
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.ops.lstm import LSTM
from litecl.interpreter.ops.unidirectional_sequence_lstm import UNIDIRECTIONAL_SEQUENCE_LSTM
from litecl.interpreter.recurrent import integer_lstm, integer_lstm_8
from litecl.interpreter.recurrent.lstm_cell import FULL
from litecl.interpreter.schema import TensorType

_STATES = (FULL.output_state, FULL.cell_state)
_BIASES = (*range(FULL.bias, FULL.bias + 4), FULL.projection + 1)
_PEEPHOLES, _NORMS = range(FULL.peephole, FULL.peephole + 3), range(20, 24)
_MOST_OUTPUTS = 6  # with the intermediates of the form with 16-bit products
_MOST_SHIFT = 30


def _claim(options: Any, inputs: claims.Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    """Refuse operands that are not constant weights of bytes, biases of 32 bits, peepholes and norms of 16 bits."""
    for position, spec in enumerate(inputs):
        if spec is not None and spec.type != _type_at(position):
            return Refusal(f"input {position} has type {spec.type.name} beside quantized activations")
        if spec is not None and spec.data is None and position not in (0, *_STATES):
            return Refusal(f"input {position} is not a constant")
    if len({spec is None for spec in inputs[_NORMS.start + _is_coupled(inputs) : _NORMS.stop]}) > 1:
        return Refusal("some of the gates are normalized")
    try:
        cell = cell_of(options, inputs, outputs, 1)
    except UnsupportedOp as error:
        return Refusal(str(error))
    return None if 0 <= cell.added_shift <= _MOST_SHIFT else Refusal("a cell state whose scale is out of range")


def _type_at(position: int) -> TensorType:
    if position in _BIASES:
        return TensorType.INT32
    return TensorType.INT16 if position in (*_PEEPHOLES, *_NORMS, FULL.cell_state) else TensorType.INT8


def _is_coupled(inputs: claims.Specs) -> bool:
    return inputs[FULL.input_weights] is None


def _has_8_bit_products(outputs: Sequence[TensorSpec]) -> bool:
    """Return whether the intermediates after an output are those of the form with 8-bit products."""
    return len(outputs) > _MOST_OUTPUTS


def cell_of(options: Any, inputs: claims.Specs, outputs: Sequence[TensorSpec], together: int) -> IntegerCell:
    """Return the cell of a node, whose intermediates follow its output. together: rows that peepholes join."""
    if _has_8_bit_products(outputs):
        return _cell_8(integer_lstm_8.cell_of(options, inputs, outputs))
    cell = integer_lstm.cell_of(options, inputs, outputs)
    gates = [gate for gate in (cell.input, cell.forget, cell.cell, cell.output) if gate is not None]
    norms = [gate.norm for gate in gates if gate.norm is not None]
    identity = np.arange(1 << 16).astype(np.int16)
    return IntegerCell(
        of_input=cell.of_input,
        of_output=cell.of_output,
        gates=[_gate(gate) for gate in gates],
        peephole=_peephole(cell, together),
        norm=np.array([[norm.weights for norm in norms], [norm.bias for norm in norms]]) if norms else None,
        tables=np.stack([cell.forget.table, cell.cell.table, identity if cell.table is None else cell.table]),
        projection=cell.projection,
        products_8=False,
        added_shift=30 + cell.state_bits,
        cell_clip=cell.cell_clip,
        projection_clip=cell.proj_clip,
        hidden=scale_from(cell.hidden),
        hidden_zero=cell.hidden_zero_point,
        output_zero=cell.output_zero_point,
    )


def _gate(gate: integer_lstm.Gate) -> IntegerGate:
    nothing = IntegerGate()
    return IntegerGate(
        peephole=nothing.peephole if gate.peephole is None else scale_from(gate.peephole.multiplier),
        norm=nothing.norm if gate.norm is None else scale_from(gate.norm.multiplier),
        guard=nothing.guard if gate.norm is None else gate.norm.guard,
    )


def _peephole(cell: integer_lstm.IntegerCell, together: int) -> Array | None:
    """Return weights [rows, 3, units], laid out as in ``integer_lstm.Peephole``: with a projection rows differ."""
    peepholes = [None if gate is None else gate.peephole for gate in (cell.input, cell.forget, cell.output)]
    given = [peephole for peephole in peepholes if peephole is not None]
    if not given:
        return None
    units, outputs = cell.forget.units, len(given[0].weights)
    rows = together if outputs < units else 1
    weights = np.zeros((rows, len(peepholes), units), np.int16)
    for i, peephole in enumerate(peepholes):
        if peephole is not None:
            flat = np.zeros(rows * units, np.int16)
            flat[: rows * outputs] = np.tile(peephole.weights, rows)
            weights[:, i] = flat.reshape(rows, units)
    return weights


def _cell_8(cell: integer_lstm_8.IntegerCell8) -> IntegerCell:
    gates = (cell.forget, cell.cell, cell.output)
    numbers = np.arange(1 << 16).astype(np.int16)
    return IntegerCell(
        of_input=_side_by_side([gate.of_input.sums for gate in gates]),
        of_output=_side_by_side([gate.of_output.sums for gate in gates]),
        gates=[_gate_8(gate) for gate in gates],
        peephole=None,
        norm=np.array([[gate.weights for gate in gates], [gate.bias for gate in gates]]),
        tables=np.stack([integer_lstm_8.sigmoid(numbers), *(integer_lstm_8.tanh(numbers, bits) for bits in (12, 15))]),
        projection=cell.projection,
        products_8=True,
        added_shift=15,
        cell_clip=cell.cell_clip,
        projection_clip=cell.proj_clip,
        hidden=Scale(0, 0, 0),
        hidden_zero=0,
        output_zero=cell.output_zero_point,
    )


def _side_by_side(parts: Sequence[Sums]) -> Sums:
    weights, bias, factors = (
        np.concatenate(arrays)
        for arrays in zip(*((part.weights, part.bias, part.factors) for part in parts), strict=True)
    )
    return replace(parts[0], weights=weights, bias=bias, factors=factors)


def _gate_8(gate: integer_lstm_8.Gate) -> IntegerGate:
    return IntegerGate(
        input_zero=gate.of_input.zero_point,
        input=scale_from(gate.of_input.multiplier),
        output_zero=gate.of_output.zero_point,
        output=scale_from(gate.of_output.multiplier),
        norm_scale=float(gate.scale),
        bias_scale=float(gate.bias_scale),
    )


def _lower(call: Call) -> list[Step]:
    x, (out, *after) = call.input(0), call.outputs
    time_major = getattr(call.options, "time_major", True)
    steps, batch = (1, x.shape[0]) if len(x.shape) == 2 else x.shape[:2] if time_major else x.shape[1::-1]
    specs = [out.spec, *call.intermediates]
    cell = cell_of(call.options, call.specs, specs, batch if time_major else 1)
    way = time_loop(steps, batch, cell.outputs, time_major=time_major)
    before = [call.input(position) for position in _STATES]
    return [*run_integer_cell(cell, way, x, before, after, out, call.target)]


CL_OPS = tuple(ClOp(op, claim=_claim, lower=_lower) for op in (LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM))
