"""A depthwise convolution and the 1x1 convolution that alone reads it, as one kernel of a GPU.

No file has this operator: the pass ``separable`` finds it. Where a GPU cannot run it at once, it is two launches.
"""

from dataclasses import dataclass

import numpy as np

from litecl.delegate.cl_op import Activation, Call, ClOp, Pads, Step
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.composed import composed, first_and_rest
from litecl.delegate.matmul.geometry import geometry
from litecl.delegate.matmul.local_product import ByWindow
from litecl.delegate.ops import conv_2d, depthwise_conv_2d
from litecl.delegate.ops.gpu import products
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.conv_2d import Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DepthwiseConv2DOptions

(_POINTWISE,), (_DEPTHWISE,) = conv_2d.CL_OPS, depthwise_conv_2d.CL_OPS


@dataclass(frozen=True)
class SeparableOptions:
    """The options of both convolutions, what lies around the image, and what lies between them.

    middle: the spec of the tensor between them. Inputs: the image, filter and bias of the first, then of the second.
    """

    depthwise: DepthwiseConv2DOptions
    pointwise: Conv2DOptions
    middle: TensorSpec
    activation: Activation
    pads: Pads


def _parts(call: Call) -> tuple[Call, Call]:
    """Return the calls of both convolutions, with a tensor between them."""
    o = call.options
    return first_and_rest(call, o.depthwise, o.pointwise, o.middle, o.activation, o.pads)


def _lower(call: Call) -> list[Step]:
    first, second = _parts(call)
    own = _POINTWISE.on_gpu(second) if _POINTWISE.on_gpu is not None and call.target.kind == "gpu" else None
    return [*_DEPTHWISE.lower(first), *(_POINTWISE.lower(second) if own is None else own)]


def _on_gpu(call: Call) -> list[Step] | None:
    first, second = _parts(call)
    filter_, bias, out = first.input(1), first.inputs[2], first.outputs[0]
    window = geometry(first.options, first.input(0).shape, filter_.shape[1:3], 1, out.shape, first.pads)
    added = np.zeros(window.columns, np.float32) if bias is None else bias.value
    by_window = ByWindow(first.input(0), window, filter_.value, added, first.activation)
    return products.convolution(second, by_window)


SEPARABLE = ClOp(
    composed("SEPARABLE_CONV_2D", SeparableOptions),
    claim=takes(*FLOAT),
    lower=_lower,
    on_gpu=_on_gpu,
    writes_rows=True,
)
