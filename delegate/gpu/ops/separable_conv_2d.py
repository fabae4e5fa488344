"""A depthwise convolution and its only reader, a 1x1 convolution, as one GPU kernel.

No model file contains this operator; the pass ``separable`` creates it. Where a GPU cannot fuse it, two nodes run.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Activation, ClOp, Operand, Pads, Step
from litecl.delegate.gpu.local_product import ByWindow
from litecl.delegate.gpu.ops import products
from litecl.delegate.gpu.target import GpuCall
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.matmul.geometry import geometry
from litecl.delegate.ops import conv_2d, depthwise_conv_2d
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.conv_2d import Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DepthwiseConv2DOptions

(_POINTWISE,), (_DEPTHWISE,) = conv_2d.CL_OPS, depthwise_conv_2d.CL_OPS


@dataclass(frozen=True)
class SeparableOptions:
    """The options of both convolutions, the zeros around the image, and the tensor and activation between them.

    middle: the spec of the tensor between them. Inputs: the image, filter and bias of the first, then of the second.
    """

    depthwise: DepthwiseConv2DOptions
    pointwise: Conv2DOptions
    middle: TensorSpec
    activation: Activation
    pads: Pads


def _lower(call: GpuCall) -> list[Step]:
    """Lower both convolutions as one launch, or else one after the other."""
    o = call.options
    depthwise, pointwise = first_and_rest(call, o.depthwise, o.pointwise, o.middle, o.activation, o.pads)
    x, filter_, bias = depthwise.weighted
    window = geometry(o.depthwise, x.shape, filter_.shape[1:3], 1, depthwise.outputs[0].shape, o.pads)
    added = np.zeros(window.columns, np.float32) if bias is None else bias.value
    steps = products.convolution(pointwise, ByWindow(x, window, filter_.value, added, o.activation))
    return [*_DEPTHWISE.steps(depthwise), *_POINTWISE.steps(pointwise)] if steps is None else steps


def first_and_rest(
    call: GpuCall,
    first: Any,
    rest: Any,
    between: TensorSpec,
    activation: Activation,
    pads: Pads | None = None,
) -> tuple[GpuCall, GpuCall]:
    """Split the call of a fused operator into its first convolution and the rest. The call's inputs are the image,
    filter and bias of the first, then those of the rest.

    first, rest: their options. between: the spec of the tensor between them. activation, pads: the first one's.
    """
    middle, inputs = Operand(between), call.inputs
    before = replace(
        call,
        options=first,
        inputs=inputs[:3],
        outputs=[middle],
        activation=activation,
        pads=pads or Pads(),
        residual=None,
    )
    return before, replace(call, options=rest, inputs=[middle, *inputs[3:]])


SEPARABLE = ClOp(composed("SEPARABLE_CONV_2D", SeparableOptions), claim=takes(*FLOAT), lower=_lower, writes_rows=True)
