"""A depthwise convolution and the 1x1 convolution that alone reads it, as one kernel of a GPU.

No file has this operator: the pass ``separable`` finds it. Where a GPU cannot run it at once, it is two launches.
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
    """The options of both convolutions, what lies around the image, and what lies between them.

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
