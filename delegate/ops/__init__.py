"""The device operators, one file an operator or a family, and the table of them all."""

from litecl.delegate.cl_op import ClOp
from litecl.delegate.ops import batch_matmul, conv_2d, depthwise_conv_2d, fully_connected, transpose_conv
from litecl.interpreter.op import Op

_LIGHT: tuple[ClOp, ...] = ()
_HEAVY: tuple[ClOp, ...] = (
    batch_matmul.BATCH_MATMUL_CL,
    conv_2d.CONV_2D_CL,
    depthwise_conv_2d.DEPTHWISE_CONV_2D_CL,
    fully_connected.FULLY_CONNECTED_CL,
    transpose_conv.CONVOLUTION_2D_TRANSPOSE_BIAS_CL,
    transpose_conv.TRANSPOSE_CONV_CL,
)

CL_OPS: dict[Op, ClOp] = {cl_op.op: cl_op for cl_op in (*_LIGHT, *_HEAVY)}
