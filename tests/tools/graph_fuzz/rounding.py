"""How operators err in floats: not at all, relative to the sum of their terms, or to 1."""

SUMS = {
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "TRANSPOSE_CONV",
    "CONV_3D",
    "CONV_3D_TRANSPOSE",
    "Convolution2DTransposeBias",
    "FULLY_CONNECTED",
    "BATCH_MATMUL",
    "SUM",
    "MEAN",
    "CUMSUM",
    "AVERAGE_POOL_2D",
    "ADD_N",
    "RESIZE_BILINEAR",
    "ADD",
    "SUB",
}
"""Operators whose error is relative to the sum of their terms' magnitudes."""

EXACT = {
    "ABS",
    "NEG",
    "RELU",
    "RELU6",
    "RELU_0_TO_1",
    "RELU_N1_TO_1",
    "MAXIMUM",
    "MINIMUM",
    "MAX_POOL_2D",
    "REDUCE_MAX",
    "REDUCE_MIN",
    "RESHAPE",
    "SQUEEZE",
    "EXPAND_DIMS",
    "TRANSPOSE",
    "REVERSE_V2",
    "TILE",
    "BROADCAST_TO",
    "PAD",
    "PADV2",
    "MIRROR_PAD",
    "DILATE",
    "SPACE_TO_DEPTH",
    "DEPTH_TO_SPACE",
    "SPACE_TO_BATCH_ND",
    "BATCH_TO_SPACE_ND",
    "SPLIT",
    "SPLIT_V",
    "UNPACK",
    "PACK",
    "CONCATENATION",
    "SLICE",
    "STRIDED_SLICE",
    "DYNAMIC_UPDATE_SLICE",
    "GATHER",
    "GATHER_ND",
    "EMBEDDING_LOOKUP",
    "ONE_HOT",
    "FILL",
    "ZEROS_LIKE",
    "SELECT",
    "SELECT_V2",
    "TOPK_V2",
    "SIGN",
    "FLOOR",
    "CEIL",
    "ROUND",
    "CAST",
    "RESIZE_NEAREST_NEIGHBOR",
}
"""Operators that hand elements on, or round to integers: these have no error of their own."""

OF_SUMS = {
    *("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM", "LOG_SOFTMAX"),
    *("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN", "SVDF"),
}
"""Operators that apply functions to sums: off as with operands slightly different, and by errors relative to 1."""

IN_FLOATS = {"BATCH_MATMUL", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"}
"""Operators whose hybrid products the device computes in floats, of rows and weights that it makes real numbers."""
