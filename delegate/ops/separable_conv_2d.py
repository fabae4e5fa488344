"""A depthwise convolution and its only reader, a 1x1 convolution, as one GPU kernel.

No model file contains this operator; the pass ``separable`` creates it. Where a GPU cannot fuse it, two nodes run.
"""

from typing import TypeVar

from litecl.delegate.cl_op import Activation, Call, CallOn, ClOp, Pads, Step, Target, or_else
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.composed import composed, first_and_rest
from litecl.delegate.ops import conv_2d, depthwise_conv_2d
from litecl.delegate.ops.gpu import fused
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.conv_2d import Conv2DOptions
from litecl.interpreter.ops.depthwise_conv_2d import DepthwiseConv2DOptions

(_POINTWISE,), (_DEPTHWISE,) = conv_2d.CL_OPS, depthwise_conv_2d.CL_OPS
_Target = TypeVar("_Target", bound=Target)


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


def _parts(call: CallOn[_Target]) -> tuple[CallOn[_Target], CallOn[_Target]]:
    """Return the calls of both convolutions, with a tensor between them."""
    o = call.options
    return first_and_rest(call, o.depthwise, o.pointwise, o.middle, o.activation, o.pads)


def _lower(call: Call) -> list[Step]:
    first, second = _parts(call)
    return [*_DEPTHWISE.steps(first), *_POINTWISE.steps(second)]


SEPARABLE = ClOp(
    composed("SEPARABLE_CONV_2D", SeparableOptions),
    claim=takes(*FLOAT),
    lower=_lower,
    gpu=or_else(lambda call: fused.separable(*_parts(call)), _lower),
    writes_rows=True,
)
