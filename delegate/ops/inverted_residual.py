"""Consecutive 1x1, depthwise and 1x1 convolutions as one GPU kernel.

No model file contains this operator; the pass ``inverted`` creates it. Where a GPU is faster without it, two nodes run.
"""

from typing import TypeVar

from litecl.delegate.cl_op import Activation, Call, CallOn, ClOp, Step, Target, or_else
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.composed import composed, first_and_rest
from litecl.delegate.ops import conv_2d
from litecl.delegate.ops.gpu import inverted_residual as gpu
from litecl.delegate.ops.separable_conv_2d import SEPARABLE, SeparableOptions
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.conv_2d import Conv2DOptions

(_POINTWISE,) = conv_2d.CL_OPS
_Target = TypeVar("_Target", bound=Target)


@dataclass(frozen=True)
class InvertedOptions:
    """The options of the first convolution and of the two after it, and the tensor and activation between them.

    hidden: the spec of the tensor between them. Inputs: image, filter and bias of the first, then filters and biases.
    """

    expand: Conv2DOptions
    separable: SeparableOptions
    hidden: TensorSpec
    activation: Activation


def _parts(call: CallOn[_Target]) -> tuple[CallOn[_Target], CallOn[_Target]]:
    """Return the calls of the first convolution and of the two after it, with a tensor between them."""
    o = call.options
    return first_and_rest(call, o.expand, o.separable, o.hidden, o.activation)


def _lower(call: Call) -> list[Step]:
    first, second = _parts(call)
    return [*_POINTWISE.steps(first), *SEPARABLE.steps(second)]


INVERTED_RESIDUAL = ClOp(
    composed("INVERTED_RESIDUAL", InvertedOptions),
    claim=takes(*FLOAT),
    lower=_lower,
    gpu=or_else(gpu.inverted_residual, _lower),
    writes_rows=True,
)
