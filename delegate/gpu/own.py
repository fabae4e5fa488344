"""What a GPU does in its own way: shared functions, each with the one that takes its place (``Target.own``)."""

from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

from litecl.delegate.cl_op import Lowering, Step
from litecl.delegate.gpu import one_group
from litecl.delegate.gpu.ops import (
    attention,
    cells,
    depthwise_conv_2d,
    integer_products,
    products,
    reduce,
    rows,
    transpose,
    update,
)
from litecl.delegate.gpu.pipeline import GPU_PASSES
from litecl.delegate.kit import strided
from litecl.delegate.ops import arg_max, batch_matmul, conv_2d, fully_connected, resize, softmax
from litecl.delegate.ops import depthwise_conv_2d as shared_depthwise
from litecl.delegate.ops import reduce as shared_reduce
from litecl.delegate.ops.attention import ATTENTION
from litecl.delegate.ops.layer_norm import LAYER_NORM, RMS_NORM
from litecl.delegate.ops.quantized import conv_2d as quantized_conv_2d
from litecl.delegate.ops.quantized import depthwise_conv_2d as quantized_depthwise
from litecl.delegate.ops.quantized import requantize
from litecl.delegate.ops.quantized import softmax as quantized_softmax
from litecl.delegate.ops.slice import UPDATE_ALONG
from litecl.delegate.plan import grouping, pipeline
from litecl.delegate.recurrent import lstm_cell
from litecl.delegate.target import Own


def _shared(module: ModuleType, name: str) -> Lowering:
    """Return the shared lowering of an operator."""
    lower: Lowering = next(cl_op.lower for cl_op in module.CL_OPS if cl_op.op.name == name)
    return lower


def _or_else(suited: Callable[[Any], list[Step] | None], otherwise: Callable[[Any], list[Step]]) -> Lowering:
    """Return a lowering that tries ``suited``, and uses ``otherwise`` if that returns None."""

    def lower(call: Any) -> list[Step]:
        steps = suited(call)
        return otherwise(call) if steps is None else steps

    return lower


# Lowerings that return None for shapes that they don't suit; the shared one takes those.
_SUITED: Mapping[Lowering, Callable[[Any], list[Step] | None]] = {
    _shared(arg_max, "ARG_MAX"): partial(rows.arg, comparison="GREATER"),
    _shared(arg_max, "ARG_MIN"): partial(rows.arg, comparison="LESS"),
    _shared(batch_matmul, "BATCH_MATMUL"): products.batch_matmul,
    _shared(softmax, "SOFTMAX"): rows.softmax,
    _shared(softmax, "LOG_SOFTMAX"): rows.log_softmax,
    _shared(quantized_conv_2d, "CONV_2D"): integer_products.convolution,
    _shared(quantized_conv_2d, "FULLY_CONNECTED"): integer_products.dense,
    _shared(quantized_softmax, "SOFTMAX"): rows.quantized_softmax,
    LAYER_NORM.lower: partial(rows.norm, centred=True),
    RMS_NORM.lower: partial(rows.norm, centred=False),
    UPDATE_ALONG.lower: update.at_once,
}

OWN: Own = {
    **{shared: _or_else(suited, shared) for shared, suited in _SUITED.items()},
    _shared(conv_2d, "CONV_2D"): _or_else(products.convolution, conv_2d.lower),
    _shared(fully_connected, "FULLY_CONNECTED"): _or_else(products.dense, fully_connected.lower),
    _shared(resize, "RESIZE_BILINEAR"): partial(resize.lower_bilinear, by_lines=False),
    ATTENTION.lower: _or_else(attention.attention, attention.one_by_one),
    # Parts of lowerings
    lstm_cell.plain: cells.run,
    quantized_depthwise.share_of: depthwise_conv_2d.quantized_share_of,
    requantize.shifted_bytes: requantize.shifted,
    shared_depthwise.share_of: depthwise_conv_2d.share_of,
    shared_reduce.launch: reduce.launch,
    shared_reduce.parts_of: reduce.parts_of,
    strided.transposed: transpose.transposed,
    # Planning
    grouping.gathered: one_group.gathered,
    grouping.narrowed: one_group.narrowed,
    pipeline.fused: partial(pipeline.fused, passes=GPU_PASSES),
}
