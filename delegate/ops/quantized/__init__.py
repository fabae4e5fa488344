"""Operators on quantized tensors, in files of the same names as those of floats; the table of them all."""

from litecl.delegate.cl_op import ClOp
from litecl.delegate.ops.quantized import (
    basic_lstm,
    batch_matmul,
    binary,
    conv_2d,
    depthwise_conv_2d,
    lstm,
    pool_2d,
    reduce,
    requantize,
    softmax,
    svdf,
    table,
    transpose_conv,
)

CL_OPS: tuple[ClOp, ...] = (
    *basic_lstm.CL_OPS,
    *batch_matmul.CL_OPS,
    *binary.CL_OPS,
    *conv_2d.CL_OPS,
    *depthwise_conv_2d.CL_OPS,
    *lstm.CL_OPS,
    *pool_2d.CL_OPS,
    *reduce.CL_OPS,
    *softmax.CL_OPS,
    *svdf.CL_OPS,
    *transpose_conv.CL_OPS,
    *requantize.CL_OPS,
    *table.CL_OPS,
)
