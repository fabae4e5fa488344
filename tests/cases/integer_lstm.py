"""Cases of LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF on quantized activations."""

from typing import Any

import numpy as np

from litecl.cases import Case, rng
from litecl.cases.integers import Integers, T, affine
from litecl.interpreter.graph import Array, Quantization, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.lstm import BASIC_LSTM, LSTM, LSTMOptions
from litecl.interpreter.ops.svdf import SVDF, SVDFOptions
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.schema import ActivationFunctionType, LSTMKernelType

_random = rng(54)
_TANH = ActivationFunctionType.TANH
_INPUT, _STATE, _CELL = 0.02, 0.008, 2.0**-13


def _integers(dtype: Any, *shape: int) -> Array:
    top = np.iinfo(dtype).max
    return np.asarray(_random.integers(-top, top + 1, shape)).astype(dtype)


class _Operands:
    """The operands of a cell in the FULL layout, with their quantization."""

    def __init__(self, depth: int, cells: int, outputs: int, batch: int, zero_points: tuple[int, int]) -> None:
        self.cells, self.outputs = cells, outputs
        self.inputs: list[Array | None] = [None] * 24
        self.quantization: dict[int, Quantization] = {}
        for gate in range(4):
            self.add(1 + gate, _integers(np.int8, cells, depth), 0.01)
            self.add(5 + gate, _integers(np.int8, cells, outputs), 0.01)
            self.add(12 + gate, _integers(np.int16, cells).astype(np.int32) * 2, 0.01 * _INPUT)
        self.add(18, np.zeros((batch, outputs), np.int8), _STATE, zero_points[1])
        self.add(19, np.zeros((batch, cells), np.int16), _CELL)

    def add(self, position: int, value: Array, scale: float, zero_point: int = 0) -> None:
        self.inputs[position] = value
        self.quantization[position] = affine(scale, zero_point)

    def drop(self, *positions: int) -> None:
        for position in positions:
            self.inputs[position] = None
            self.quantization.pop(position, None)


def _cell(
    x: Array,
    cells: int,
    outputs: int | None,
    batch: int,
    *,
    cifg: bool,
    peephole: bool,
    norm: bool,
    bias: bool,
    zero_points: tuple[int, int],
) -> _Operands:
    operands = _Operands(x.shape[-1], cells, cells if outputs is None else outputs, batch, zero_points)
    operands.add(0, x, _INPUT, zero_points[0])
    if peephole:
        for position in (9, 10, 11):
            operands.add(position, _integers(np.int16, cells), 2.0**-15)
    if outputs is not None:
        operands.add(16, _integers(np.int8, outputs, cells), 0.004)
        if bias:
            operands.add(17, _integers(np.int16, outputs).astype(np.int32), 0.004 * _STATE)
    if norm:
        for gate in range(4):
            operands.add(20 + gate, np.abs(_integers(np.int16, cells)), 2.0**-14)
            operands.add(12 + gate, _integers(np.int16, cells).astype(np.int32) * 100, 2.0**-24)
    if cifg:
        operands.drop(1, 5, 9, 12, 20)
    return operands


def _lstm(
    name: str,
    op: Op,
    shape: tuple[int, ...],
    cells: int,
    outputs: int | None = None,
    *,
    cifg: bool = False,
    peephole: bool = False,
    norm: bool = False,
    bias: bool = False,
    hidden: int = 0,
    zero_points: tuple[int, int] = (3, -4),
    version: int,
    **options: Any,
) -> Case:
    """hidden, zero_points: zero points of the hidden state, of input and of output."""
    x = _integers(np.int8, *shape)
    batch = shape[-2] if options.get("time_major", True) else shape[0]
    operands = _cell(
        x, cells, outputs, batch, cifg=cifg, peephole=peephole, norm=norm, bias=bias, zero_points=zero_points
    )
    chosen = (LSTMOptions if op is LSTM else UnidirectionalSequenceLSTMOptions)(_TANH, **options)
    constants = frozenset(range(1, 24)) - {18, 19}
    # Without a projection the hidden state is the output.
    last = affine(_STATE, zero_points[1]) if outputs is None else affine(0.006, hidden)
    intermediates = [TensorSpec(T.INT16, (), quantization=affine(0.003 + 0.001 * gate)) for gate in range(4)]
    return Case(
        name,
        op,
        chosen,
        operands.inputs,
        constants,
        {},
        operands.quantization,
        [TensorSpec(T.INT8, None, quantization=affine(_STATE, zero_points[1]))],
        version,
        [*intermediates, TensorSpec(T.INT8, (), quantization=last)],
    )


def _step(name: str, batch: int, depth: int, cells: int, outputs: int | None = None, **chosen: Any) -> Case:
    return _lstm(name, LSTM, (batch, depth), cells, outputs, version=4, **chosen)


def _sequence(name: str, shape: tuple[int, ...], cells: int, outputs: int | None = None, **chosen: Any) -> Case:
    chosen = {"time_major": True} | chosen
    return _lstm(name, UNIDIRECTIONAL_SEQUENCE_LSTM, shape, cells, outputs, version=3, **chosen)


def _products(name: str, batch: int, depth: int, cells: int, outputs: int, **options: Any) -> Case:
    """The form with 8-bit products and twelve intermediates."""
    operands = _cell(
        _integers(np.int8, batch, depth),
        cells,
        outputs,
        batch,
        cifg=True,
        peephole=False,
        norm=True,
        bias=True,
        zero_points=(3, -4),
    )
    operands.add(19, np.zeros((batch, cells), np.int16), 2.0**-15)
    intermediates = [
        TensorSpec(T.INT16, (), quantization=affine(scale, zero_point))
        for _ in range(4)
        for scale, zero_point in ((2.0**-11, 0), (0.05, 5), (0.03, -7))
    ]
    return Case(
        name,
        LSTM,
        LSTMOptions(_TANH, **options),
        operands.inputs,
        frozenset(range(1, 24)) - {18, 19},
        {},
        operands.quantization,
        [TensorSpec(T.INT8, None, quantization=affine(_STATE, -4))],
        4,
        intermediates,
    )


def _svdf(
    name: str, batch: int, depth: int, units: int, rank: int, memory: int, bias: bool = True, features: float = 0.01
) -> Case:
    """features: the scale of the feature weights, large where the states are to saturate."""
    filters = units * rank
    inputs: list[Array | None] = [
        _integers(np.int8, batch, depth),
        _integers(np.int8, filters, depth),
        _integers(np.int16, filters, memory),
        _integers(np.int16, units).astype(np.int32) * 1000 if bias else None,
        np.zeros((batch, filters * memory), np.int16),
    ]
    quantization = {0: affine(0.05, -9), 1: affine(features), 2: affine(2.0**-15), 4: affine(0.002)}
    if bias:
        quantization[3] = affine(0.002 * 2.0**-15)
    return Case(
        name,
        SVDF,
        SVDFOptions(rank, ActivationFunctionType.RELU),
        inputs,
        frozenset({1, 2, 3}),
        {},
        quantization,
        [TensorSpec(T.INT8, None, quantization=affine(0.1, 7))],
        3,
    )


def _basic(name: str, batch: int, depth: int, cells: int, weights_zero: int, scale: float = 0.02) -> Case:
    """UINT8 activations, 16-bit states; the outputs are activation, state, joined inputs and gates.

    scale: of the weights; gates are rounded once more if it is below 2**-6.
    """
    random = Integers(56)
    inputs = [
        random.full(T.UINT8, batch, depth),
        np.full((batch, cells), 128, np.uint8),
        random.full(T.UINT8, 4 * cells, depth + cells),
        _integers(np.int16, 4 * cells).astype(np.int32),
        np.zeros((batch, cells), np.int16),
    ]
    activation, state = affine(1 / 128, 128), affine(2.0**-11)
    quantization = {0: activation, 1: activation, 2: affine(scale, weights_zero), 3: affine(scale / 128), 4: state}
    outputs = [
        TensorSpec(type_, None, quantization=q)
        for type_, q in ((T.UINT8, activation), (T.INT16, state), (T.UINT8, activation), (T.INT16, affine(2.0**-12)))
    ]
    options = LSTMOptions(_TANH, kernel_type=LSTMKernelType.BASIC)
    return Case(
        name,
        BASIC_LSTM,
        options,
        inputs,
        frozenset({2, 3}),
        {},
        quantization,
        outputs,
        2,
        device="a bias with a scale below 2**-13" if scale < 2**-6 else None,
    )


CASES = (
    _basic("BASIC", 3, 5, 4, 128),
    _basic("BASIC, weights with a zero point", 2, 7, 6, 3),
    _basic("BASIC, small scale", 33, 7, 6, 99, 0.014),
    _basic("BASIC, smaller scale", 2, 17, 9, 221, 0.0045),
    _basic("BASIC, one row", 1, 30, 16, 93, 0.0082),
    _step("plain", 2, 5, 4),
    _step("zero points at the ends", 2, 5, 4, zero_points=(-128, 127)),
    _step("coupled gates", 2, 5, 4, cifg=True),
    _step("peephole", 2, 5, 4, peephole=True),
    _step("projection", 2, 5, 8, 3),
    _step("projection, zero points, bias", 3, 5, 8, 3, hidden=11, bias=True),
    _step("coupled gates, projection", 2, 5, 4, 3, cifg=True),
    _step("layer normalization", 3, 5, 8, norm=True),
    _step("everything", 3, 7, 9, 4, peephole=True, norm=True, bias=True, hidden=-5, cell_clip=0.6, proj_clip=0.5),
    _step("everything, coupled gates", 3, 7, 9, 4, cifg=True, peephole=True, norm=True, bias=True, hidden=-5),
    _sequence("plain", (6, 2, 5), 4),
    _sequence("batch first, projection", (2, 6, 5), 8, 3, hidden=11, time_major=False),
    _sequence(
        "batch first, everything",
        (3, 6, 7),
        9,
        4,
        peephole=True,
        norm=True,
        bias=True,
        hidden=-5,
        time_major=False,
        cell_clip=0.6,
        proj_clip=0.5,
    ),
    _sequence("everything", (6, 3, 7), 9, 4, peephole=True, norm=True, bias=True, hidden=-5),
    _products("8-bit products", 3, 7, 9, 4),
    _products("8-bit products, clipped", 3, 7, 9, 4, cell_clip=0.3, proj_clip=0.2),
    _svdf("rank 1", 2, 6, 4, 1, 10),
    _svdf("rank 2, no bias", 3, 6, 4, 2, 5, bias=False),
    _svdf("sums that overflow", 4, 12, 16, 2, 9, features=0.3),
)
