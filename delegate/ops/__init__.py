"""The device operators, one file an operator or a family, and the table of them all."""

from litecl.delegate.cl_op import ClOp, DeviceOp, Variants
from litecl.delegate.ops import (
    arg_max,
    batch_matmul,
    bidirectional_sequence_lstm,
    binary,
    cast,
    concatenation,
    conv_2d,
    depthwise_conv_2d,
    dilate,
    fill,
    fully_connected,
    gather,
    hybrid,
    lstm,
    pad,
    pool_2d,
    quantized,
    reduce,
    reshape,
    resize,
    select,
    slice,
    softmax,
    space_to_batch_nd,
    split,
    topk_v2,
    transpose,
    transpose_conv,
    unary,
    unidirectional_sequence_lstm,
)
from litecl.delegate.quantized import hybrid as hybrid_weights
from litecl.delegate.quantized import integers
from litecl.interpreter.op import Op

_LIGHT: tuple[ClOp, ...] = (
    *arg_max.CL_OPS,
    *binary.CL_OPS,
    *cast.CL_OPS,
    *concatenation.CL_OPS,
    *dilate.CL_OPS,
    *fill.CL_OPS,
    *gather.CL_OPS,
    *pad.CL_OPS,
    *pool_2d.CL_OPS,
    *reduce.CL_OPS,
    *reshape.CL_OPS,
    *resize.CL_OPS,
    *select.CL_OPS,
    *slice.CL_OPS,
    *softmax.CL_OPS,
    *space_to_batch_nd.CL_OPS,
    *split.CL_OPS,
    *topk_v2.CL_OPS,
    *transpose.CL_OPS,
    *unary.CL_OPS,
)
_HEAVY: tuple[ClOp, ...] = (
    *batch_matmul.CL_OPS,
    *bidirectional_sequence_lstm.CL_OPS,
    *conv_2d.CL_OPS,
    *depthwise_conv_2d.CL_OPS,
    *fully_connected.CL_OPS,
    *lstm.CL_OPS,
    *transpose_conv.CL_OPS,
    *unidirectional_sequence_lstm.CL_OPS,
)


def _table() -> dict[Op, DeviceOp]:
    """Return every operator, as variants where quantized tensors or integer weights have their own kernels."""
    general = {cl_op.op: cl_op for cl_op in (*_LIGHT, *_HEAVY)}
    table: dict[Op, DeviceOp] = {**general}
    for op in dict.fromkeys(cl_op.op for cl_op in (*quantized.CL_OPS, *hybrid.CL_OPS)):
        special = [
            (applies, cl_op)
            for applies, variants in ((integers.applies, quantized.CL_OPS), (hybrid_weights.applies, hybrid.CL_OPS))
            for cl_op in variants
            if cl_op.op is op
        ]
        table[op] = Variants(op, tuple(special), general[op]) if op in general else special[0][1]
    return table


CL_OPS: dict[Op, DeviceOp] = _table()
