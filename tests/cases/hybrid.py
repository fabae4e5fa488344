"""Cases of operators with float inputs and integer weights."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.cases import Case, rng
from litecl.interpreter.graph import Array, Quantization
from litecl.interpreter.op import Op
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.bidirectional_sequence_lstm import (
    BIDIRECTIONAL_SEQUENCE_LSTM,
    BidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.rnn import (
    BIDIRECTIONAL_SEQUENCE_RNN,
    RNN,
    UNIDIRECTIONAL_SEQUENCE_RNN,
    BidirectionalSequenceRNNOptions,
    RNNOptions,
    SequenceRNNOptions,
)
from litecl.interpreter.ops.svdf import SVDF, SVDFOptions
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV, TransposeConvOptions
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.schema import ActivationFunctionType, Padding, TensorType

_random = rng(35)
_RELU, _TANH = ActivationFunctionType.RELU, ActivationFunctionType.TANH


_TYPES = {8: TensorType.INT8, 4: TensorType.INT4, 2: TensorType.INT2}


def _f(*shape: int) -> Array:
    return _random.standard_normal(shape).astype(np.float32)


def _zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def _integers(*shape: int, bits: int = 8) -> Array:
    top = 2 ** (bits - 1) - 1
    return _random.integers(-top, top + 1, shape).astype(np.int8)


def _case(
    name: str,
    op: Op,
    options: Any,
    inputs: Sequence[Array | None],
    *,
    axis: int | None = None,
    bits: int = 8,
    version: int,
) -> Case:
    """Integer inputs are weights, with one scale, or one for every index along ``axis``; the others fed or constant."""
    weights = [i for i, value in enumerate(inputs) if value is not None and value.dtype == np.int8]
    quantization = {}
    for i in weights:
        value = inputs[i]
        assert value is not None
        scales = _random.uniform(0.005, 0.02, 1 if axis is None else value.shape[axis]).astype(np.float32)
        quantization[i] = Quantization(scales, np.zeros(len(scales), np.int64), axis or 0)
    constants = frozenset(range(1, len(inputs))) - frozenset(op.states)
    types = dict.fromkeys(weights, _TYPES[bits])
    return Case(name, op, options, inputs, constants, types, quantization, version=version)


def _fully_connected(
    name: str, x: Array, units: int, axis: int | None = 0, bits: int = 8, bias: bool = True, **options: Any
) -> Case:
    inputs = [x, _integers(units, x.shape[-1], bits=bits), *([_f(units)] if bias else [])]
    return _case(name, FULLY_CONNECTED, FullyConnectedOptions(**options), inputs, axis=axis, bits=bits, version=9)


def _blocks(name: str, rows: int, depth: int, units: int, block: int) -> Case:
    """FULLY_CONNECTED with weights of 4 bits and a scale for every block of them, in halves."""
    scales = _random.uniform(0.005, 0.02, (units, depth // block)).astype(np.float16)
    by = Quantization(scales, np.zeros(scales.shape, np.int64), 1, block_size=block)
    x = _f(rows, depth) + 1
    x[1:2] = 0  # a row whose result is the bias
    inputs = [x, _integers(units, depth, bits=4), _f(units)]
    # LiteRT's reference kernel does not know these scales.
    return Case(
        name,
        FULLY_CONNECTED,
        FullyConnectedOptions(asymmetric_quantize_inputs=True),
        inputs,
        frozenset({1, 2}),
        {1: _TYPES[4]},
        {1: by},
        version=13,
        kernels="optimised",
    )


def _conv(
    name: str,
    x: tuple[int, ...],
    filter_: tuple[int, ...],
    axis: int | None = 0,
    bits: int = 8,
    scale: float = 1,
    **options: Any,
) -> Case:
    chosen = Conv2DOptions(**{"stride_w": 1, "stride_h": 1} | options)
    inputs: list[Array | None] = [_f(*x) * np.float32(scale), _integers(*filter_, bits=bits), _f(filter_[0])]
    return _case(name, CONV_2D, chosen, inputs, axis=axis, bits=bits, version=7 if bits == 4 else 5)


def _depthwise(name: str, x: tuple[int, ...], filter_: tuple[int, ...], axis: int | None = 3, **options: Any) -> Case:
    chosen = DepthwiseConv2DOptions(**{"stride_w": 1, "stride_h": 1, "depth_multiplier": filter_[3] // x[3]} | options)
    return _case(name, DEPTHWISE_CONV_2D, chosen, [_f(*x), _integers(*filter_), _f(filter_[3])], axis=axis, version=6)


def _transposed(name: str, x: tuple[int, ...], filter_: tuple[int, ...], size: tuple[int, int]) -> Case:
    shape = np.array([x[0], *size, filter_[0]], np.int32)
    scales = _random.uniform(0.005, 0.02, filter_[0]).astype(np.float32)
    return Case(
        name,
        TRANSPOSE_CONV,
        TransposeConvOptions(Padding.SAME, 2, 2),
        [shape, _integers(*filter_), _f(*x), _f(filter_[0])],
        constants=frozenset({0, 1, 3}),
        quantization={1: Quantization(scales, np.zeros(len(scales), np.int64))},
        version=3,
    )


def _rows_and_zeros() -> Array:
    x = _f(4, 32)
    x[2] = 0
    return x


def _halves() -> Array:
    """Numbers half-way between two of those that the integers represent, as exactly as floats can say it."""
    halves = (np.arange(-127, 127) + np.float32(0.5)) * np.float32(1 / 127)
    return np.stack([halves, halves * 3, halves + 0.3, np.abs(halves)]).astype(np.float32)


# Numbers half-way between two integers, in rows whose scale is 1 and whose zero point is not 0.
_TIES = np.array([[255, *np.arange(0.5, 41)], [-255, *-np.arange(0.5, 41)]], np.float32)
# Depths and columns of one row, which is summed up across.
_FEW = ((1000, 1), (257, 2), (63, 5), (640, 16))
# Output channels and depths that fill no vector, one, and several.
_SHAPES = ((1, 16), (3, 17), (5, 24), (16, 33), (33, 5), (96, 1), (64, 130))


def _lstm(name: str, time_major: bool, asymmetric: bool, projection: bool) -> Case:
    """Peepholes have integer weights too."""
    steps, batch, depth, cells = 5, 2, 6, 8
    outputs = 3 if projection else cells
    inputs: list[Array | None] = [
        _f(*((steps, batch) if time_major else (batch, steps)), depth),
        *(_integers(cells, depth) for _ in range(4)),
        *(_integers(cells, outputs) for _ in range(4)),
        *(_integers(cells) for _ in range(3)),
        *(_f(cells) for _ in range(4)),
        _integers(outputs, cells) if projection else None,
        None,
        _zeros(batch, outputs),
        _zeros(batch, cells),
    ]
    options = UnidirectionalSequenceLSTMOptions(_TANH, time_major=time_major, asymmetric_quantize_inputs=asymmetric)
    return _case(name, UNIDIRECTIONAL_SEQUENCE_LSTM, options, inputs, version=3)


def _cell(depth: int, units: int, batch: int) -> list[Array | None]:
    return [_integers(units, depth), _integers(units, units), _f(units), _zeros(batch, units)]


def _both_ways(name: str, projection: int | None = None, aux: int | None = None, **options: bool) -> Case:
    """BIDIRECTIONAL_SEQUENCE_LSTM; ``aux`` is the depth of an auxiliary input with weights of its own."""
    steps, batch, depth, cells = 5, 2, 6, 8
    outputs = cells if projection is None else projection
    cell = [
        *(_integers(cells, depth) for _ in range(4)),
        *(_integers(cells, outputs) for _ in range(4)),
        *([None] * 3),
        *(_f(cells) for _ in range(4)),
        None if projection is None else _integers(outputs, cells),
        None,
    ]
    states = [_zeros(batch, outputs), _zeros(batch, cells)] * 2
    linked = [None] * 9 if aux is None else [_f(steps, batch, aux), *(_integers(cells, aux) for _ in range(8))]
    inputs = [_f(steps, batch, depth), *cell, *cell, *states, *linked]
    chosen = BidirectionalSequenceLSTMOptions(_TANH, time_major=True, **options)
    return _case(name, BIDIRECTIONAL_SEQUENCE_LSTM, chosen, inputs, version=3)


_ALL = (
    _fully_connected("8 bits, one scale", _f(4, 32), 8, axis=None),
    _fully_connected("8 bits", _f(4, 32), 8),
    _fully_connected("8 bits, a row of zeros", _rows_and_zeros(), 8, asymmetric_quantize_inputs=True),
    _fully_connected("8 bits, asymmetric", _f(4, 32) + 2, 8, asymmetric_quantize_inputs=True),
    _fully_connected("8 bits, all positive", np.abs(_f(4, 32)) + 1, 8, axis=None, asymmetric_quantize_inputs=True),
    _fully_connected(
        "8 bits, RELU, no bias", _f(2, 3, 16), 8, bias=False, fused_activation_function=_RELU, keep_num_dims=True
    ),
    _fully_connected("4 bits, one scale", _f(4, 32), 8, axis=None, bits=4),
    _fully_connected("4 bits", _f(4, 34), 7, bits=4),
    _fully_connected("4 bits, asymmetric", _f(4, 32), 8, bits=4, asymmetric_quantize_inputs=True),
    _fully_connected("2 bits", _f(4, 32), 8, bits=2),
    _blocks("4 bits, blocks", 1, 96, 37, 32),
    _blocks("4 bits, blocks, rows", 9, 128, 20, 64),
    _blocks("4 bits, many blocks", 3, 288, 11, 32),
    _fully_connected("8 bits, deep", _f(2, 2000), 4, asymmetric_quantize_inputs=True),
    _conv("4 bits", (2, 6, 6, 5), (8, 3, 3, 5), bits=4),
    _conv("8 bits, deep", (1, 3, 3, 600), (4, 3, 3, 600)),
    _conv("8 bits, one scale", (2, 6, 6, 5), (8, 3, 3, 5), axis=None),
    _conv("8 bits", (2, 6, 6, 5), (8, 3, 3, 5)),
    _conv(
        "8 bits, VALID, stride 2, RELU",
        (1, 7, 7, 4),
        (6, 3, 3, 4),
        padding=Padding.VALID,
        stride_w=2,
        stride_h=2,
        fused_activation_function=_RELU,
    ),
    _conv("8 bits, one column", (2, 20, 1, 5), (8, 3, 1, 5)),
    _conv("8 bits, groups", (1, 6, 6, 8), (6, 3, 3, 4)),
    _depthwise("8 bits", (2, 6, 6, 5), (1, 3, 3, 5)),
    _depthwise("8 bits, multiplier 2, stride 2", (1, 7, 7, 4), (1, 3, 3, 8), stride_w=2, stride_h=2),
    *(_conv(f"8 bits, 3x3, {c} to {n}", (3, 5, 6, c), (n, 3, 3, c)) for c, n in _SHAPES),
    _conv("8 bits, blocks of lines, each image with its own zero", (3, 9, 29, 12), (13, 3, 3, 12)),
    *(_conv(f"8 bits, 1x1, {c} to {n}", (3, 5, 3, c), (n, 1, 1, c)) for c, n in _SHAPES),
    *(_fully_connected(f"8 bits, {rows} x {c} to {n}", _f(rows, c), n) for rows in (1, 9) for c, n in _SHAPES),
    _conv("8 bits, large images", (2, 60, 50, 7), (4, 3, 3, 7), dilation_w_factor=2, dilation_h_factor=2),
    _conv("8 bits, of zeros", (2, 3, 3, 4), (4, 3, 3, 4), scale=0),
    _fully_connected("8 bits, long rows", _f(2, 20001), 5, asymmetric_quantize_inputs=True),
    _fully_connected("8 bits, halves", _halves(), 9),
    _fully_connected("8 bits, halves, asymmetric", _halves(), 9, asymmetric_quantize_inputs=True),
    _fully_connected("8 bits, all negative", -np.abs(_f(4, 32)) - 1, 8, asymmetric_quantize_inputs=True),
    _fully_connected("8 bits, saturates", _f(4, 32) * 1e30, 8, fused_activation_function=ActivationFunctionType.RELU6),
    _depthwise("8 bits, large images", (2, 60, 50, 7), (1, 3, 3, 7)),
    _transposed("8 bits", (2, 4, 4, 3), (5, 3, 3, 3), (8, 8)),
    _case("8 bits", BATCH_MATMUL, BatchMatMulOptions(), [_f(2, 3, 8), _integers(2, 8, 4)], version=4),
    _case(
        "8 bits, adjoint rows",
        BATCH_MATMUL,
        BatchMatMulOptions(True, False),
        [_f(2, 8, 3), _integers(2, 8, 4)],
        version=4,
    ),
    _case(
        "8 bits, asymmetric, adjoint",
        BATCH_MATMUL,
        BatchMatMulOptions(False, True, True),
        [_f(2, 3, 8) + 1, _integers(2, 4, 8)],
        version=4,
    ),
    _lstm("8 bits", time_major=True, asymmetric=False, projection=False),
    _lstm("8 bits, projection, batch first", time_major=False, asymmetric=False, projection=True),
    _lstm("8 bits, asymmetric", time_major=True, asymmetric=True, projection=False),
    _case("8 bits", RNN, RNNOptions(_TANH), [_f(2, 5), *_cell(5, 4, 2)], version=3),
    _case(
        "8 bits, asymmetric",
        UNIDIRECTIONAL_SEQUENCE_RNN,
        SequenceRNNOptions(True, _TANH, True),
        [_f(6, 2, 5), *_cell(5, 4, 2)],
        version=3,
    ),
    # With integer weights and time first, LiteRT runs the whole sequence anew for every step of it: batch first.
    _case(
        "8 bits, asymmetric",
        BIDIRECTIONAL_SEQUENCE_RNN,
        BidirectionalSequenceRNNOptions(False, _TANH, False, True),
        [_f(2, 6, 5), *_cell(5, 4, 2), *_cell(5, 3, 2), None, None, None],
        version=3,
    ),
    _both_ways("8 bits"),
    _both_ways("8 bits, asymmetric, merged", merge_outputs=True, asymmetric_quantize_inputs=True),
    _both_ways("8 bits, projection, auxiliary input", projection=3, aux=4),
    _case(
        "8 bits", SVDF, SVDFOptions(2), [_f(2, 6), _integers(8, 6), _integers(8, 10), _f(4), _zeros(2, 80)], version=3
    ),
    _conv("8 bits, 1x2 in groups, one line", (1, 1, 40, 8), (6, 1, 2, 4), padding=Padding.VALID),
    *(_conv(f"{n} bits, whole images", (3, 4, 5, 7), (37, 4, 5, 7), bits=n, padding=Padding.VALID) for n in (8, 4)),
    *(_fully_connected(f"8 bits, {n} of one row", _f(1, c) + 1, n, asymmetric_quantize_inputs=n < 3) for c, n in _FEW),
    _fully_connected("8 bits, halves beside a zero point", _TIES, 9, asymmetric_quantize_inputs=True),
    *(_fully_connected(f"{bits} bits, two rows, {n}", _f(2, 40), n, bits=bits) for bits in (4, 8) for n in (9, 130)),
)

_BY_COLUMNS = BatchMatMulOptions(True, False)
CASES = tuple(
    replace(case, device="the rows that are quantized are columns of the input")
    if case.options == _BY_COLUMNS
    else case
    for case in _ALL
)
