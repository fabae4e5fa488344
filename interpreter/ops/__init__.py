"""The operators, one file an operator or a family, and the table of them all.

``BUILTINS`` maps the schema's BuiltinOperator names to records, ``CUSTOMS`` maps custom codes.
"""

from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops import (
    batch_matmul,
    bidirectional_sequence_lstm,
    conv_2d,
    conv_3d,
    depthwise_conv_2d,
    embedding_lookup,
    fully_connected,
    l2_normalization,
    local_response_normalization,
    log_softmax,
    lstm,
    pool_2d,
    resize,
    rnn,
    softmax,
    svdf,
    transpose_conv,
    unidirectional_sequence_lstm,
)

OPS: tuple[Op | ControlOp, ...] = (
    softmax.SOFTMAX,
    batch_matmul.BATCH_MATMUL,
    bidirectional_sequence_lstm.BIDIRECTIONAL_SEQUENCE_LSTM,
    conv_2d.CONV_2D,
    conv_3d.CONV_3D,
    depthwise_conv_2d.DEPTHWISE_CONV_2D,
    embedding_lookup.EMBEDDING_LOOKUP,
    fully_connected.FULLY_CONNECTED,
    l2_normalization.L2_NORMALIZATION,
    local_response_normalization.LOCAL_RESPONSE_NORMALIZATION,
    log_softmax.LOG_SOFTMAX,
    lstm.LSTM,
    pool_2d.AVERAGE_POOL_2D,
    pool_2d.MAX_POOL_2D,
    pool_2d.L2_POOL_2D,
    resize.RESIZE_BILINEAR,
    resize.RESIZE_NEAREST_NEIGHBOR,
    rnn.RNN,
    rnn.UNIDIRECTIONAL_SEQUENCE_RNN,
    rnn.BIDIRECTIONAL_SEQUENCE_RNN,
    svdf.SVDF,
    transpose_conv.TRANSPOSE_CONV,
    transpose_conv.CONVOLUTION_2D_TRANSPOSE_BIAS,
    unidirectional_sequence_lstm.UNIDIRECTIONAL_SEQUENCE_LSTM,
)

BUILTINS: dict[str, Op | ControlOp] = {op.name: op for op in OPS if not op.custom}
CUSTOMS: dict[str, Op | ControlOp] = {op.name: op for op in OPS if op.custom}
