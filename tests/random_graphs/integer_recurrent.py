"""Families of recurrent operators of integers: 8-bit activations, 16-bit states."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from litecl.interpreter.graph import ABSENT, Array, Quantization, TensorSpec
from litecl.interpreter.ops.lstm import BASIC_LSTM, LSTM, LSTMOptions
from litecl.interpreter.ops.svdf import SVDF, SVDFOptions
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.schema import ActivationFunctionType, LSTMKernelType
from litecl.random_graphs.elementwise import is_quantized
from litecl.random_graphs.sketch import Sketch, T

_TANH = ActivationFunctionType.TANH
_SPREAD = 60.0  # of bytes
_STATE, _CELL = 0.008, 2.0**-13
MOST_ROWS = 400  # of a sequence: its steps times its batch


def _by(scale: float, zero_point: int = 0) -> Quantization:
    return Quantization(np.array([scale], np.float32), np.array([zero_point], np.int64))


def _drawn(s: Sketch, dtype: type, *shape: int) -> Array:
    top = np.iinfo(dtype).max
    return s.rng.integers(-top, top + 1, shape).astype(dtype)


@dataclass
class _Cell:
    """The operands of a cell in the full layout, drawn for an input of a scale."""

    s: Sketch
    x_scale: float
    depth: int
    cells: int
    outputs: int
    coupled: bool
    operands: list[int] = field(default_factory=lambda: [ABSENT] * 24)

    def gates(self, first: int, draw: Callable[[], int]) -> None:
        """Draws an operand for every gate."""
        for gate in range(self.coupled, 4):
            self.operands[first + gate] = draw()

    def weights(self, rows: int, depth: int, scale: float) -> int:
        """Weights with which sums spread over what gates tell apart."""
        by = _by(3.0 / (_SPREAD**2 * depth**0.5 * scale))
        return self.s.const(_drawn(self.s, np.int8, rows, depth), T.INT8, by)

    def vector(self, dtype: type, length: int, scale: float, factor: int = 1) -> int:
        """A vector of 16-bit numbers, or of larger ones."""
        values: Array = np.asarray(_drawn(self.s, np.int16, length).astype(np.int64) * factor, dtype)
        return self.s.const(values, T.of(np.dtype(dtype)), _by(scale))


def _cell(s: Sketch, x: int, cells: int, outputs: int, batch: int, zero: int, *, narrow: bool) -> list[int]:
    """All operands; narrow: of the form with 8-bit products."""
    by = s.spec(x).quantization
    assert by is not None
    coupled = narrow or s.chance(0.3)
    cell = _Cell(s, float(by.scale[0]), s.shape_of(x)[-1], cells, outputs, coupled)
    normalized, peephole = narrow or s.chance(0.3), not narrow and s.chance(0.4)
    cell.gates(1, lambda: cell.weights(cells, cell.depth, cell.x_scale))
    cell.gates(5, lambda: cell.weights(cells, outputs, _STATE))
    cell.gates(12, lambda: cell.vector(np.int32, cells, 2.0**-20, int(s.one_of(1, 100))))
    for position in range(9 + coupled, 12) if peephole else ():
        cell.operands[position] = cell.vector(np.int16, cells, 2.0**-15)
    if narrow or outputs != cells:
        cell.operands[16] = s.const(_drawn(s, np.int8, outputs, cells), T.INT8, _by(0.004))
        cell.operands[17] = cell.vector(np.int32, outputs, 2.0**-16) if narrow or s.chance(0.5) else ABSENT
    if normalized:
        cell.gates(20, lambda: cell.vector(np.int16, cells, 2.0**-14))
    states = (
        (T.INT8, (batch, outputs), _by(_STATE, zero)),
        (T.INT16, (batch, cells), _by(2.0**-15 if narrow else _CELL)),
    )
    for position, (type_, shape, quantization) in zip((18, 19), states, strict=True):
        cell.operands[position] = s.variable(shape, type_, quantization)
    cell.operands[0] = x
    return cell.operands


def _sizes(s: Sketch) -> tuple[int, int]:
    cells = int(s.one_of(1, 3, 4, 8, 17, 33))
    return cells, cells if s.chance(0.5) else int(s.one_of(1, 2, 5, 9))


def _intermediates(s: Sketch, zero: int, outputs: int, cells: int) -> list[TensorSpec]:
    """Four of the gates, and the hidden state, which is the output where nothing is projected."""
    last = _by(_STATE, zero) if outputs == cells else _by(0.006, int(s.rng.integers(-20, 20)))
    gates = [TensorSpec(T.INT16, (), quantization=_by(0.003 + 0.001 * gate)) for gate in range(4)]
    return [*gates, TensorSpec(T.INT8, (), quantization=last)]


def lstm(s: Sketch) -> None:
    """LSTM, with 16-bit and with 8-bit products, and UNIDIRECTIONAL_SEQUENCE_LSTM."""
    x = s.pick(T.INT8, rank=(2, 3), where=is_quantized)
    shape, zero, narrow = s.shape_of(x), int(s.rng.integers(-128, 128)), False
    (cells, outputs), clips = _sizes(s), (float(s.one_of(0.0, 0.0, 0.7)), float(s.one_of(0.0, 0.0, 0.6)))
    made = [TensorSpec(T.INT8, None, quantization=_by(_STATE, zero))]
    if len(shape) == 3:
        time_major = s.chance(0.5)
        if shape[0] * shape[1] > MOST_ROWS:
            return
        operands = _cell(s, x, cells, outputs, shape[1 if time_major else 0], zero, narrow=False)
        options = UnidirectionalSequenceLSTMOptions(_TANH, *clips, time_major=time_major)
        s.node(UNIDIRECTIONAL_SEQUENCE_LSTM, operands, options, made, _intermediates(s, zero, outputs, cells))
        return
    narrow = s.chance(0.4)
    operands = _cell(s, x, cells, outputs, shape[0], zero, narrow=narrow)
    inner = _intermediates(s, zero, outputs, cells)
    if narrow:
        by = (_by(2.0**-11), _by(0.05, 5), _by(0.03, -7))
        inner = [TensorSpec(T.INT16, (), quantization=q) for _ in range(4) for q in by]
    s.node(LSTM, operands, LSTMOptions(_TANH, *clips), made, inner)


def basic_lstm(s: Sketch) -> None:
    """The basic form of LSTM."""
    x = s.pick(T.UINT8, rank=2, where=is_quantized)
    batch, depth = s.shape_of(x)
    cells = _sizes(s)[0]
    activation, state = _by(1 / 128, 128), _by(2.0**-11)
    scale = 3.0 / (_SPREAD * (depth + cells) ** 0.5)
    weights = s.const(s.random(T.UINT8, (4 * cells, depth + cells)), T.UINT8, _by(scale, int(s.rng.integers(0, 256))))
    bias = s.const(_drawn(s, np.int16, 4 * cells).astype(np.int32), T.INT32, _by(scale / 128))
    h, c = s.variable((batch, cells), T.UINT8, activation), s.variable((batch, cells), T.INT16, state)
    made = [(T.UINT8, activation), (T.INT16, state), (T.UINT8, activation), (T.INT16, _by(2.0**-12))]
    outputs = [TensorSpec(type_, None, quantization=q) for type_, q in made]
    s.node(BASIC_LSTM, [x, h, weights, bias, c], LSTMOptions(_TANH, kernel_type=LSTMKernelType.BASIC), outputs)


def svdf(s: Sketch) -> None:
    """SVDF."""
    x = s.pick(T.INT8, rank=2, where=is_quantized)
    by = s.spec(x).quantization
    assert by is not None
    batch, depth = s.shape_of(x)
    rank, units, memory = int(s.one_of(1, 1, 2, 3)), _sizes(s)[0], int(s.one_of(1, 2, 5, 8, 19))
    filters, state = units * rank, 0.002
    features = state * 4000 / (_SPREAD**2 * depth**0.5 * float(by.scale[0]))
    operands = [
        s.const(_drawn(s, np.int8, filters, depth), T.INT8, _by(features)),
        s.const(_drawn(s, np.int16, filters, memory), T.INT16, _by(2.0**-15)),
        s.const(_drawn(s, np.int32, units) // 8, T.INT32, _by(state * 2.0**-15)) if s.chance(0.5) else ABSENT,
    ]
    memory_of = s.variable((batch, filters * memory), T.INT16, _by(state))
    s.scaled(SVDF, [x, *operands, memory_of], SVDFOptions(rank, ActivationFunctionType.RELU), T.INT8, least=state)


FAMILIES = {"integer recurrent": (lstm, lstm, lstm, svdf), "integer recurrent of bytes": (basic_lstm,)}
