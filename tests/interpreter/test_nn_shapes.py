"""The inputs that neural-network operators refuse, and the messages."""

from typing import Any

import numpy as np
import pytest

from litecl.interpreter.errors import ShapeError, UnsupportedOp
from litecl.interpreter.graph import Quantization, Shape, TensorSpec
from litecl.interpreter.op import NoOptions, Op
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL, BatchMatMulOptions
from litecl.interpreter.ops.bidirectional_sequence_lstm import (
    BIDIRECTIONAL_SEQUENCE_LSTM,
    BidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.ops.conv_3d import CONV_3D, Conv3DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D, DepthwiseConv2DOptions
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED, FullyConnectedOptions
from litecl.interpreter.ops.lstm import LSTM, LSTMOptions
from litecl.interpreter.ops.pool_2d import MAX_POOL_2D, Pool2DOptions
from litecl.interpreter.ops.resize import RESIZE_BILINEAR, ResizeBilinearOptions
from litecl.interpreter.ops.rnn import RNN, RNNOptions
from litecl.interpreter.ops.svdf import SVDF, SVDFOptions
from litecl.interpreter.ops.unidirectional_sequence_lstm import (
    UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions,
)
from litecl.interpreter.schema import Padding, TensorType

_CONV, _VALID = Conv2DOptions(stride_w=1, stride_h=1), Conv2DOptions(Padding.VALID, 1, 1)
_LSTM: tuple[Shape | None, ...] = (
    (2, 5),
    *((4, 5),) * 4,
    *((4, 4),) * 4,
    *(None,) * 3,
    *((4,),) * 4,
    None,
    None,
    (2, 4),
    (2, 4),
)


def _with(shapes: tuple[Shape | None, ...], **changed: Shape | None) -> list[Shape | None]:
    """Shapes with some exchanged: ``_3=(2, 2)`` is position 3."""
    result = list(shapes)
    for key, shape in changed.items():
        result[int(key[1:])] = shape
    return result


WRONG: tuple[tuple[Op, Any, list[Shape | None], str], ...] = (
    (CONV_2D, _CONV, [(1, 4, 4), (8, 3, 3, 3)], "expected rank 4, got 3"),
    (CONV_2D, _CONV, [(1, 4, 4, 3)], "expected 2 inputs, got 1"),
    (CONV_2D, _CONV, [(1, 4, 4, 3), None], "input 1 is required"),
    (CONV_2D, _CONV, [(1, 4, 4, 3), (8, 3, 3, 2)], "got 3 channels and filters [8, 3, 3, 2]"),
    (CONV_2D, _CONV, [(1, 4, 4, 6), (7, 3, 3, 2)], "a multiple of the groups"),
    (CONV_2D, _CONV, [(1, 4, 4, 3), (8, 3, 3, 3), (7,)], "expected a bias of 8 elements, got [7]"),
    (CONV_2D, _VALID, [(1, 2, 4, 3), (8, 3, 3, 3)], "expected at least 3 elements for the window, got 2"),
    (CONV_2D, Conv2DOptions(), [(1, 4, 4, 3), (8, 3, 3, 3)], "stride and dilation of at least 1, got 3, 0, 1"),
    (DEPTHWISE_CONV_2D, DepthwiseConv2DOptions(stride_w=1, stride_h=1), [(1, 4, 4, 3), (1, 3, 3, 4)], "multiple of 3"),
    (CONV_3D, Conv3DOptions(stride_d=1, stride_w=1, stride_h=1), [(1, 4, 4, 4, 3), (2, 2, 2, 4, 5)], "3 channels"),
    (MAX_POOL_2D, Pool2DOptions(Padding.VALID, 1, 1, 5, 5), [(1, 4, 4, 3)], "at least 5 elements"),
    (RESIZE_BILINEAR, ResizeBilinearOptions(), [(1, 0, 4, 3), (2,)], "at least one element along axis 1"),
    (FULLY_CONNECTED, FullyConnectedOptions(), [(3, 7), (4, 5)], "expected a multiple of 5 elements, got shape [3, 7]"),
    (FULLY_CONNECTED, FullyConnectedOptions(keep_num_dims=True), [(5, 2), (4, 5)], "last dimension of 5"),
    (FULLY_CONNECTED, FullyConnectedOptions(), [(3, 5), (4, 5, 1)], "expected rank 2, got 3"),
    (BATCH_MATMUL, BatchMatMulOptions(), [(2, 3, 4), (2, 5, 6)], "equal inner dimensions, got [2, 3, 4]"),
    (BATCH_MATMUL, BatchMatMulOptions(), [(2, 3, 4), (3, 4, 6)], "batches that broadcast"),
    (BATCH_MATMUL, BatchMatMulOptions(), [(4,), (4, 6)], "expected rank 2 to 5, got 1"),
    (RESIZE_BILINEAR, ResizeBilinearOptions(), [(1, 4, 4, 3), (3,)], "expected type INT32"),
    (EMBEDDING_LOOKUP, NoOptions(), [(3,), (4, 5)], "expected type INT32, got FLOAT32"),
    (RNN, RNNOptions(), [(2, 5), (4, 5), (4, 4), (4,), (2, 3)], "a state of shape [2, 4], got [2, 3]"),
    (RNN, RNNOptions(), [(2, 5), (4, 5), (4, 4), None, (2, 4)], "input 3 is required"),
    (SVDF, SVDFOptions(3), [(2, 5), (4, 5), (4, 6), None, (2, 24)], "a multiple of the rank 3, got 4"),
    (SVDF, SVDFOptions(1), [(2, 5), (4, 5), (4, 6), None, (2, 23)], "expected a state [2, 24], got [2, 23]"),
    (LSTM, LSTMOptions(), [(2, 5)], "expected 20 or 24 inputs, got 1"),
    (LSTM, LSTMOptions(), _with(_LSTM, _3=(4, 6)), "input 3 of shape [4, 5], got [4, 6]"),
    (LSTM, LSTMOptions(), _with(_LSTM, _1=None), "both or neither of the input gate's weights"),
    (LSTM, LSTMOptions(), _with(_LSTM, _8=None), "input 8 is required"),
    (LSTM, LSTMOptions(), _with(_LSTM, _9=(5,)), "input 9 of shape [4], got [5]"),
    (LSTM, LSTMOptions(), _with(_LSTM, _16=(3, 4)), "input 16 of shape [4, 4], got [3, 4]"),
    (LSTM, LSTMOptions(), _with(_LSTM, _19=(3, 4)), "a state of 8 elements as input 19, got [3, 4]"),
    (LSTM, LSTMOptions(), _with(_LSTM, _18=None), "a state of 8 elements as input 18, got none"),
    (UNIDIRECTIONAL_SEQUENCE_LSTM, UnidirectionalSequenceLSTMOptions(), list(_LSTM), "expected rank 3, got 2"),
    (BIDIRECTIONAL_SEQUENCE_LSTM, BidirectionalSequenceLSTMOptions(), list(_LSTM), "expected 48 inputs, got 20"),
)


@pytest.mark.parametrize(("op", "options", "shapes", "words"), WRONG, ids=[f"{w[0].name}-{w[3]}" for w in WRONG])
def test_refused(op: Op, options: Any, shapes: list[Shape | None], words: str) -> None:
    specs = [None if shape is None else TensorSpec(TensorType.FLOAT32, shape) for shape in shapes]
    with pytest.raises(ShapeError) as caught:
        op.infer(options, specs)
    assert words in str(caught.value)


_SHAPES: dict[Op, tuple[Any, Shape, Shape]] = {
    BATCH_MATMUL: (BatchMatMulOptions(), (2, 3, 4), (2, 4, 5)),
    FULLY_CONNECTED: (FullyConnectedOptions(), (3, 4), (5, 4)),
    CONV_2D: (_CONV, (1, 4, 4, 3), (8, 3, 3, 3)),
}


@pytest.mark.parametrize("op", _SHAPES, ids=lambda op: op.name)
def test_integers_are_not_multiplied_by_floats(op: Op) -> None:
    """The message names both operands, and the way out; LiteRT refuses them too."""
    options, x, weights = _SHAPES[op]
    stored = Quantization(np.full(1, 0.1, np.float32), np.zeros(1, np.int64))
    specs = [TensorSpec(TensorType.INT8, x, "left", quantization=stored), TensorSpec(TensorType.FLOAT32, weights, "w")]
    with pytest.raises(UnsupportedOp, match=r"INT8 'left' by FLOAT32 'w': .* widen 'left' with a DEQUANTIZE"):
        op.infer(options, specs)


@pytest.mark.parametrize("op", [BATCH_MATMUL, FULLY_CONNECTED], ids=lambda op: op.name)
def test_floats_are_not_multiplied_by_sixteen_bits(op: Op) -> None:
    options, x, weights = _SHAPES[op]
    stored = Quantization(np.full(1, 0.1, np.float32), np.zeros(1, np.int64))
    specs = [TensorSpec(TensorType.FLOAT32, x, "x"), TensorSpec(TensorType.INT16, weights, "w", quantization=stored)]
    with pytest.raises(UnsupportedOp, match="weights of floats have 8 bits or less"):
        op.infer(options, specs)
