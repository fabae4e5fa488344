"""The device operators, one file an operator or a family, and the table of them all."""

from litecl.delegate import hybrid, quantized
from litecl.delegate.cl_op import ClOp
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
    hybrid_conv_2d,
    hybrid_rounded,
    lstm,
    pad,
    pool_2d,
    quantized_batch_matmul,
    quantized_binary,
    quantized_conv_2d,
    quantized_depthwise_conv_2d,
    quantized_pool_2d,
    quantized_reduce,
    quantized_softmax,
    quantized_transpose_conv,
    reduce,
    requantize,
    reshape,
    resize,
    select,
    slice,
    softmax,
    space_to_batch_nd,
    split,
    table,
    topk_v2,
    transpose,
    transpose_conv,
    unary,
    unidirectional_sequence_lstm,
)
from litecl.delegate.quantized import by_type
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

_QUANTIZED: tuple[ClOp, ...] = (
    *quantized_batch_matmul.CL_OPS,
    *quantized_binary.CL_OPS,
    *quantized_conv_2d.CL_OPS,
    *quantized_depthwise_conv_2d.CL_OPS,
    *quantized_pool_2d.CL_OPS,
    *quantized_reduce.CL_OPS,
    *quantized_softmax.CL_OPS,
    *quantized_transpose_conv.CL_OPS,
    *requantize.CL_OPS,
    *table.CL_OPS,
)
_HYBRID: tuple[ClOp, ...] = (*hybrid_conv_2d.CL_OPS, *hybrid_rounded.CL_OPS)


def _table() -> dict[Op, ClOp]:
    """Every operator; for integer weights and for quantized tensors the one of its name in the tables of these."""
    table = {cl_op.op: cl_op for cl_op in (*_LIGHT, *_HEAVY)}
    for special, applies in ((_HYBRID, hybrid.applies), (_QUANTIZED, quantized.applies)):
        for cl_op in special:
            table[cl_op.op] = by_type(table[cl_op.op], cl_op, applies) if cl_op.op in table else cl_op
    return table


CL_OPS: dict[Op, ClOp] = _table()
