"""A 1x1 convolution of an image whose channels are multiplied by gates, as one GPU kernel.

No model file contains this operator; the pass ``gates`` creates it. Where a GPU cannot fuse it, two nodes run.
"""

from dataclasses import replace
from typing import TypeVar

from litecl.delegate.cl_op import Activation, Call, CallOn, ClOp, Operand, Step, Target, or_else
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.ops import binary, conv_2d
from litecl.delegate.ops.gpu import fused
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.binary import MUL, MulOptions
from litecl.interpreter.ops.conv_2d import Conv2DOptions

(_POINTWISE,) = conv_2d.CL_OPS
(_MUL,) = (cl_op for cl_op in binary.CL_OPS if cl_op.op is MUL)
_Target = TypeVar("_Target", bound=Target)


@dataclass(frozen=True)
class GatedOptions:
    """The options of the convolution, and the spec of its input. Inputs: image, gates, filter and bias."""

    pointwise: Conv2DOptions
    gated: TensorSpec


def _parts(call: CallOn[_Target]) -> tuple[CallOn[_Target], CallOn[_Target]]:
    """Return the calls of the multiplication and of the convolution, with a tensor between them."""
    middle = Operand(call.options.gated)
    first = replace(call, options=MulOptions(), inputs=call.inputs[:2], outputs=[middle], activation=Activation())
    return replace(first, residual=None), replace(
        call, options=call.options.pointwise, inputs=[middle, *call.inputs[2:]]
    )


def _lower(call: Call) -> list[Step]:
    first, second = _parts(call)
    return [*_MUL.steps(first), *_POINTWISE.steps(second)]


GATED = ClOp(
    composed("GATED_CONV_2D", GatedOptions),
    claim=takes(*FLOAT),
    lower=_lower,
    gpu=or_else(lambda call: fused.gated(*_parts(call)), _lower),
    writes_rows=True,
)
