"""Operators on floats with constant integer weights; the table of them all."""

from litecl.delegate.cl_op import ClOp
from litecl.delegate.ops.hybrid import conv_2d, lstm, rnn, rounded, svdf

CL_OPS: tuple[ClOp, ...] = (*conv_2d.CL_OPS, *lstm.CL_OPS, *rnn.CL_OPS, *rounded.CL_OPS, *svdf.CL_OPS)
