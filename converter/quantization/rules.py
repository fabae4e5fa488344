"""Which operators compute with integers that represent real numbers, and what that requires of their tensors. A rule
says what TensorFlow Lite's integer kernels require: scales that operands and results share, results of a fixed scale,
weights with a scale for every output channel, a bias in the scale of the sums.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops import binary, compare, reduce, unary
from litecl.interpreter.ops.arg_max import ARG_MAX, ARG_MIN
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL
from litecl.interpreter.ops.bidirectional_sequence_lstm import BIDIRECTIONAL_SEQUENCE_LSTM
from litecl.interpreter.ops.broadcast_to import BROADCAST_TO
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from litecl.interpreter.ops.dilate import DILATE
from litecl.interpreter.ops.dynamic_update_slice import DYNAMIC_UPDATE_SLICE
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.fill import FILL
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.ops.gather import GATHER, GATHER_ND
from litecl.interpreter.ops.gelu import GELU
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU
from litecl.interpreter.ops.log_softmax import LOG_SOFTMAX
from litecl.interpreter.ops.lstm import BASIC_LSTM, LSTM
from litecl.interpreter.ops.matrix_diag import MATRIX_DIAG, MATRIX_SET_DIAG
from litecl.interpreter.ops.numeric_verify import NUMERIC_VERIFY
from litecl.interpreter.ops.one_hot import ONE_HOT
from litecl.interpreter.ops.pack import PACK, UNPACK
from litecl.interpreter.ops.pad import MIRROR_PAD, PAD, PADV2
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D
from litecl.interpreter.ops.prelu import PRELU
from litecl.interpreter.ops.quantize import DEQUANTIZE, QUANTIZE
from litecl.interpreter.ops.reduce import SUM
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE, SQUEEZE
from litecl.interpreter.ops.resize import RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR
from litecl.interpreter.ops.reverse import REVERSE_SEQUENCE, REVERSE_V2
from litecl.interpreter.ops.rnn import BIDIRECTIONAL_SEQUENCE_RNN, RNN, UNIDIRECTIONAL_SEQUENCE_RNN
from litecl.interpreter.ops.scatter_nd import SCATTER_ND
from litecl.interpreter.ops.select import SELECT, SELECT_V2, WHERE
from litecl.interpreter.ops.shape import SHAPE
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.softmax import SOFTMAX
from litecl.interpreter.ops.space_to_batch_nd import BATCH_TO_SPACE_ND, SPACE_TO_BATCH_ND
from litecl.interpreter.ops.space_to_depth import DEPTH_TO_SPACE, SPACE_TO_DEPTH
from litecl.interpreter.ops.sparse_lookup import HASHTABLE_LOOKUP
from litecl.interpreter.ops.sparse_to_dense import SPARSE_TO_DENSE
from litecl.interpreter.ops.split import SPLIT, SPLIT_V
from litecl.interpreter.ops.stablehlo import STABLEHLO_GATHER, STABLEHLO_PAD
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE
from litecl.interpreter.ops.svdf import SVDF
from litecl.interpreter.ops.tile import TILE
from litecl.interpreter.ops.topk_v2 import TOPK_V2
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV
from litecl.interpreter.ops.unary import NEG
from litecl.interpreter.ops.unidirectional_sequence_lstm import UNIDIRECTIONAL_SEQUENCE_LSTM
from litecl.interpreter.ops.unique import UNIQUE
from litecl.interpreter.schema import TensorType

INT8, INT16 = TensorType.INT8, TensorType.INT16
_BOTH = (INT8, INT16)
_BYTES = (INT8,)


@dataclass(frozen=True)
class Rule:
    """How an operator computes with integers. All operands in float32 that are not named here are activations.

    types: of the activations that its kernels take.
    shared: True if all activations, operands and results, have one scale and zero point.
    clips: True if constants may be clipped to that scale's range, because what they add to it is never a result.
    weights: positions of constants that are stored as symmetric int8, with the axis of their output channels or None
        for one scale.
    bias: the position of the constant that is added to the sums, in their scale.
    biases: positions of such constants where there are several, with those of the weights of their sums.
    states: positions of what the operator keeps from step to step.
    fixed: scale and zero point that the results must have, by type of activations.
    moves: True if the operator only moves or compares elements: then it stays in float if all its neighbours do.
    options: fields of the node's options that the integer kernels need otherwise.
    """

    types: tuple[TensorType, ...] = _BOTH
    shared: bool = False
    clips: bool = False
    weights: Mapping[int, int | None] = field(default_factory=dict)
    bias: int | None = None
    biases: Mapping[int, int] = field(default_factory=dict)
    states: tuple[int, ...] = ()
    fixed: Mapping[TensorType, tuple[float, int]] = field(default_factory=dict)
    moves: bool = False
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def sums(self) -> Mapping[int, int]:
        """The position of each constant that is added to sums, and of the weights of these."""
        return self.biases if self.bias is None else {self.bias: next(iter(self.weights))}


def _all(operators: Iterable[Op], rule: Rule) -> dict[Op | ControlOp, Rule]:
    return dict.fromkeys(operators, rule)


_OF_UNIT = {INT8: (1 / 256, -128), INT16: (1 / 32768, 0)}  # values from 0 to 1
_OF_SIGNED_UNIT = {INT8: (1 / 128, 0), INT16: (1 / 32768, 0)}  # values from -1 to 1

_WEIGHTED: dict[Op | ControlOp, Rule] = {
    CONV_2D: Rule(weights={1: 0}, bias=2),
    DEPTHWISE_CONV_2D: Rule(weights={1: 3}, bias=2),
    FULLY_CONNECTED: Rule(weights={1: 0}, bias=2),
    TRANSPOSE_CONV: Rule(weights={1: 0}, bias=3),
    PRELU: Rule(weights={1: None}),
}
_FIXED: dict[Op | ControlOp, Rule] = {
    SOFTMAX: Rule(fixed=_OF_UNIT),
    unary.LOGISTIC: Rule(fixed=_OF_UNIT),
    unary.TANH: Rule(fixed=_OF_SIGNED_UNIT),
    L2_NORMALIZATION: Rule(_BYTES, fixed=_OF_SIGNED_UNIT),
    LOG_SOFTMAX: Rule(_BYTES, fixed={INT8: (16 / 256, 127)}),
}
_SUMS = Rule(options={"pot_scale_int16": False})

_OWN = (
    *(binary.MUL, binary.DIV, BATCH_MATMUL),
    *(reduce.MEAN, reduce.REDUCE_PROD),
    *(unary.ABS, unary.SQRT, unary.RSQRT, unary.EXP, unary.LOG, unary.RELU, unary.RELU6, GELU, LEAKY_RELU),
)

_RECURRENT = "its states stay in float"
_ZERO = "it adds integers of 0, which are not zeros where there is a zero point"

STAY: Mapping[Op | ControlOp, str] = {
    **dict.fromkeys((LSTM, BASIC_LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM, BIDIRECTIONAL_SEQUENCE_LSTM), _RECURRENT),
    **dict.fromkeys((RNN, UNIDIRECTIONAL_SEQUENCE_RNN, BIDIRECTIONAL_SEQUENCE_RNN, SVDF), _RECURRENT),
    **dict.fromkeys((SCATTER_ND, HASHTABLE_LOOKUP), _ZERO),
    WHERE: "it looks for zeros, and small numbers would be rounded to zero",
    **dict.fromkeys((NEG, SUM, EMBEDDING_LOOKUP), "other operators take its place where they can"),
    **dict.fromkeys((QUANTIZE, DEQUANTIZE), "it is where floats begin or end"),
    NUMERIC_VERIFY: "it compares integers with floats",
}
"""The reasons why operators with kernels for quantized tensors stay in float."""

_OWN_BYTES = (unary.RELU_0_TO_1, unary.RELU_N1_TO_1, unary.HARD_SWISH, unary.ELU, binary.SQUARED_DIFFERENCE)
# LiteRT compares integers of 16 bits as they are, whatever their scales.
_ORDERED = (compare.GREATER, compare.GREATER_EQUAL, compare.LESS, compare.LESS_EQUAL)
_MOVING = (
    *(RESHAPE, SQUEEZE, EXPAND_DIMS, TRANSPOSE, SLICE, STRIDED_SLICE, GATHER, GATHER_ND, SPLIT, SPLIT_V, UNPACK, PACK),
    *(CONCATENATION, TILE, BROADCAST_TO, REVERSE_V2, SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND, PAD, PADV2, MIRROR_PAD),
    *(SELECT, SELECT_V2, DYNAMIC_UPDATE_SLICE, TOPK_V2, DILATE, FILL, UNIQUE, MATRIX_SET_DIAG),
    *(STABLEHLO_GATHER, STABLEHLO_PAD),
)
_SHARING = (
    *(RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR, MAX_POOL_2D, AVERAGE_POOL_2D),
    *(reduce.REDUCE_MAX, reduce.REDUCE_MIN),
)

RULES: Mapping[Op | ControlOp, Rule] = {
    **_WEIGHTED,
    **_FIXED,
    **_all((binary.ADD, binary.SUB), _SUMS),
    **_all(_OWN, Rule()),
    **_all(_OWN_BYTES, Rule(_BYTES)),
    **_all((compare.EQUAL, compare.NOT_EQUAL, SHAPE), Rule(moves=True)),
    **_all((*_ORDERED, ARG_MAX, ARG_MIN), Rule(_BYTES, moves=True)),
    **_all(_MOVING, Rule(shared=True, moves=True)),
    **_all((SPACE_TO_DEPTH, DEPTH_TO_SPACE, ONE_HOT, SPARSE_TO_DENSE), Rule(_BYTES, shared=True, moves=True)),
    # Zeros are added as integers of 0, which are zeros where there is no zero point.
    **_all((REVERSE_SEQUENCE, MATRIX_DIAG), Rule((INT16,), shared=True, moves=True)),
    **_all(_SHARING, Rule(shared=True)),
    **_all((binary.MAXIMUM, binary.MINIMUM), Rule(shared=True, clips=True)),
}
