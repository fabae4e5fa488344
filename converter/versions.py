"""The lowest version of an operator that has what a node uses.

Source: tensorflow/lite/tools/versioning/op_version.cc, as far as a converter meets it.
"""

from collections.abc import Callable, Sequence

from litecl.interpreter.graph import Node, TensorSpec
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.arg_max import ARG_MAX, ARG_MIN
from litecl.interpreter.ops.batch_matmul import BATCH_MATMUL
from litecl.interpreter.ops.binary import ADD, DIV, FLOOR_DIV, MAXIMUM, MINIMUM, MUL, SQUARED_DIFFERENCE, SUB
from litecl.interpreter.ops.broadcast_to import BROADCAST_TO
from litecl.interpreter.ops.compare import EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, NOT_EQUAL
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.conv_2d import CONV_2D
from litecl.interpreter.ops.depthwise_conv_2d import DEPTHWISE_CONV_2D
from litecl.interpreter.ops.embedding_lookup import EMBEDDING_LOOKUP
from litecl.interpreter.ops.fill import FILL
from litecl.interpreter.ops.fully_connected import FULLY_CONNECTED
from litecl.interpreter.ops.gather import GATHER, GATHER_ND
from litecl.interpreter.ops.gelu import GELU
from litecl.interpreter.ops.l2_normalization import L2_NORMALIZATION
from litecl.interpreter.ops.leaky_relu import LEAKY_RELU
from litecl.interpreter.ops.log_softmax import LOG_SOFTMAX
from litecl.interpreter.ops.lstm import LSTM
from litecl.interpreter.ops.pack import PACK, UNPACK
from litecl.interpreter.ops.pad import MIRROR_PAD, PAD, PADV2
from litecl.interpreter.ops.pool_2d import AVERAGE_POOL_2D, MAX_POOL_2D
from litecl.interpreter.ops.quantize import DEQUANTIZE, QUANTIZE
from litecl.interpreter.ops.reduce import MEAN, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, SUM
from litecl.interpreter.ops.resize import RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR
from litecl.interpreter.ops.reverse import REVERSE_V2
from litecl.interpreter.ops.rnn import BIDIRECTIONAL_SEQUENCE_RNN, RNN, UNIDIRECTIONAL_SEQUENCE_RNN
from litecl.interpreter.ops.select import SELECT
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.softmax import SOFTMAX
from litecl.interpreter.ops.space_to_batch_nd import BATCH_TO_SPACE_ND, SPACE_TO_BATCH_ND
from litecl.interpreter.ops.space_to_depth import DEPTH_TO_SPACE, SPACE_TO_DEPTH
from litecl.interpreter.ops.sparse_to_dense import SPARSE_TO_DENSE
from litecl.interpreter.ops.split import SPLIT, SPLIT_V
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE
from litecl.interpreter.ops.svdf import SVDF
from litecl.interpreter.ops.tile import TILE
from litecl.interpreter.ops.topk_v2 import TOPK_V2
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.ops.transpose_conv import TRANSPOSE_CONV
from litecl.interpreter.ops.unary import ABS, EXP, LOG, LOGISTIC, RELU, RELU6, RSQRT, TANH
from litecl.interpreter.ops.unidirectional_sequence_lstm import UNIDIRECTIONAL_SEQUENCE_LSTM
from litecl.interpreter.schema import TensorType

Specs = Sequence[TensorSpec | None]
_Rule = Callable[[Node, Specs], int]


def version_of(node: Node, inputs: Specs) -> int:
    """Return the version to write, for a node whose operands are ``inputs``."""
    rule = _RULES.get(node.op)
    lowest = node.op.versions.start if rule is None else rule(node, inputs)
    of_integers = _INTEGERS.get(node.op, {})
    return max((lowest, *(of_integers.get(spec.type, 0) for spec in inputs if spec is not None)))


def _type(inputs: Specs, position: int = 0) -> TensorType | None:
    spec = inputs[position] if position < len(inputs) else None
    return None if spec is None else spec.type


def _rank(inputs: Specs) -> int:
    return max((len(spec.shape) for spec in inputs if spec is not None and spec.shape is not None), default=0)


def _by_type(versions: dict[TensorType, int], position: int = 0) -> _Rule:
    return lambda node, inputs: versions.get(_type(inputs, position) or TensorType.FLOAT32, 1)


def _broadcast_beyond_4(version: int, versions: dict[TensorType, int] | None = None) -> _Rule:
    def rule(node: Node, inputs: Specs) -> int:
        a, b = inputs[0], inputs[1]
        assert a is not None and b is not None
        typed = (versions or {}).get(a.type, 1)
        return max(typed, version) if a.shape != b.shape and _rank(inputs) > 4 else typed

    return rule


def _beyond_4(version: int, versions: dict[TensorType, int] | None = None) -> _Rule:
    def rule(node: Node, inputs: Specs) -> int:
        return version if _rank(inputs[:1]) > 4 else (versions or {}).get(_type(inputs) or TensorType.FLOAT32, 1)

    return rule


def _is_hybrid(inputs: Specs) -> bool:
    return _type(inputs) == TensorType.FLOAT32 and _type(inputs, 1) in (TensorType.INT8, TensorType.INT4)


def _hybrid(version: int) -> _Rule:
    """Return the version for integer weights with float activations."""
    return lambda node, inputs: version if _is_hybrid(inputs) else 1


def _fully_connected(node: Node, inputs: Specs) -> int:
    if _is_hybrid(inputs):
        return 12  # a scale for every row of the weights
    if len(inputs) == 2:
        return 6
    return 5 if node.options.keep_num_dims else 1


def _depthwise(node: Node, inputs: Specs) -> int:
    if _is_hybrid(inputs):
        return 6
    return 2 if (node.options.dilation_w_factor, node.options.dilation_h_factor) != (1, 1) else 1


def _dequantize(node: Node, inputs: Specs) -> int:
    spec = inputs[0]
    return 5 if spec is not None and spec.quantization is not None and spec.quantization.scale.size > 1 else 1


def _resize(node: Node, inputs: Specs) -> int:
    aligned = node.op is RESIZE_NEAREST_NEIGHBOR and node.options.align_corners
    return 3 if node.options.half_pixel_centers or aligned else 1


_BYTES = {TensorType.INT8: 2}
_BOTH = {TensorType.INT8: 2, TensorType.INT16: 2}
_APART = {TensorType.INT8: 2, TensorType.INT16: 3}
_LATE = {TensorType.INT8: 2, TensorType.INT16: 4}

# By type of quantized operands, of which all activations have the same.
_INTEGERS: dict[Op | ControlOp, dict[TensorType, int]] = {
    CONV_2D: {TensorType.INT8: 3, TensorType.INT16: 4},
    DEPTHWISE_CONV_2D: {TensorType.INT8: 3, TensorType.INT16: 5},
    FULLY_CONNECTED: {TensorType.INT8: 4, TensorType.INT16: 7},
    BATCH_MATMUL: _APART,
    ADD: _APART,
    SUB: {TensorType.INT8: 2, TensorType.INT16: 5},
    MUL: {TensorType.INT8: 3, TensorType.INT16: 4},  # 3 for products of scales beyond the result's
    BROADCAST_TO: {TensorType.INT8: 3, TensorType.INT16: 3},
    GATHER: _LATE,
    GATHER_ND: {TensorType.INT16: 3},
    TILE: {TensorType.INT8: 3},
    REVERSE_V2: {TensorType.INT8: 3},
    TRANSPOSE: {TensorType.INT8: 2, TensorType.INT16: 5},
    EQUAL: _LATE,
    LEAKY_RELU: {TensorType.INT16: 2},
    QUANTIZE: {TensorType.INT16: 2},
    DEQUANTIZE: {TensorType.INT8: 2, TensorType.INT16: 3, TensorType.FLOAT16: 3},
    **dict.fromkeys((EXP, LOG, REDUCE_PROD), _BOTH),
    **dict.fromkeys((MAX_POOL_2D, AVERAGE_POOL_2D, PAD, PADV2, CONCATENATION, PACK, TOPK_V2, LOGISTIC, TANH), _APART),
    **dict.fromkeys((SOFTMAX, MEAN, MIRROR_PAD, REDUCE_MAX, REDUCE_MIN, RELU, RELU6, RSQRT, ABS), _APART),
    **dict.fromkeys((LESS, GREATER_EQUAL), _APART),
    **dict.fromkeys((SPLIT, SLICE, UNPACK, RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR, MAXIMUM, MINIMUM), _LATE),
    **dict.fromkeys((SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND), _LATE),
    **dict.fromkeys((L2_NORMALIZATION, STRIDED_SLICE, NOT_EQUAL, ARG_MAX, ARG_MIN, SELECT, SPACE_TO_DEPTH), _BYTES),
    **dict.fromkeys((DEPTH_TO_SPACE, SPLIT_V, SUM, LOG_SOFTMAX, GREATER, LESS_EQUAL, SQUARED_DIFFERENCE), _BYTES),
    **dict.fromkeys((GELU, TRANSPOSE_CONV), _BYTES),
    FILL: {TensorType.INT8: 3, TensorType.INT16: 3},
    SPARSE_TO_DENSE: {TensorType.INT8: 3},
}

_RULES: dict[Op | ControlOp, _Rule] = {
    FULLY_CONNECTED: _fully_connected,
    DEPTHWISE_CONV_2D: _depthwise,
    CONV_2D: _hybrid(5),
    EMBEDDING_LOOKUP: _by_type({TensorType.INT8: 3, TensorType.INT4: 4}, 1),
    DEQUANTIZE: _dequantize,
    UNIDIRECTIONAL_SEQUENCE_LSTM: lambda node, inputs: 2 if _type(inputs, 2) == TensorType.INT8 else 1,
    LSTM: lambda node, inputs: 3 if _type(inputs, 2) == TensorType.INT8 else 1,
    RESIZE_BILINEAR: _resize,
    RESIZE_NEAREST_NEIGHBOR: _resize,
    TRANSPOSE_CONV: lambda node, inputs: 3 if len(inputs) == 4 else 1,
    **dict.fromkeys((RNN, UNIDIRECTIONAL_SEQUENCE_RNN, BIDIRECTIONAL_SEQUENCE_RNN, SVDF), _hybrid(2)),
    GATHER: lambda node, inputs: 5 if node.options.batch_dims else 3 if _type(inputs) == TensorType.BOOL else 1,
    GATHER_ND: _by_type({TensorType.STRING: 2}),
    BROADCAST_TO: lambda node, inputs: 2,
    MUL: _by_type({TensorType.INT64: 5}),
    ADD: _by_type({TensorType.INT64: 4}),
    SUB: _broadcast_beyond_4(3, {TensorType.INT64: 4}),
    DIV: _broadcast_beyond_4(2),
    MAXIMUM: _broadcast_beyond_4(3),
    MINIMUM: _broadcast_beyond_4(3),
    FLOOR_DIV: _by_type({TensorType.FLOAT32: 2}),
    SPLIT: _by_type({TensorType.INT32: 3}, 1),
    SLICE: _beyond_4(5, {TensorType.STRING: 3}),
    STRIDED_SLICE: _beyond_4(4, {TensorType.BOOL: 3, TensorType.STRING: 5}),
    TRANSPOSE: _beyond_4(4, {TensorType.BOOL: 3}),
    PAD: _beyond_4(4),
    PADV2: _beyond_4(4),
    UNPACK: _by_type({TensorType.BOOL: 3}),
    REVERSE_V2: _by_type({TensorType.BOOL: 2}),
    FILL: _by_type({TensorType.BOOL: 2, TensorType.STRING: 2}, 1),
    EQUAL: _by_type({TensorType.STRING: 3}),
    NOT_EQUAL: _by_type({TensorType.STRING: 3}),
    SPACE_TO_BATCH_ND: lambda node, inputs: 1 if _rank(inputs[:1]) == 4 else 3,
    BATCH_TO_SPACE_ND: lambda node, inputs: 1 if _rank(inputs[:1]) == 4 else 3,
}
