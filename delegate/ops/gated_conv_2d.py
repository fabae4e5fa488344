"""A 1x1 convolution of an image whose channels are multiplied by gates, as one kernel of a GPU.

No file has this operator: the pass ``gates`` finds it. To the kernel the gates are a depthwise convolution of one tap,
whose weights are computed. Where a GPU cannot run it at once, it is two launches.
"""

from dataclasses import dataclass, replace

import numpy as np

from litecl.delegate.cl_op import Activation, Call, ClOp, Operand, Step
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.matmul.geometry import Geometry
from litecl.delegate.matmul.local_product import ByWindow
from litecl.delegate.ops import binary, conv_2d
from litecl.delegate.ops.gpu import products
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.binary import MUL, MulOptions
from litecl.interpreter.ops.conv_2d import Conv2DOptions

(_POINTWISE,) = conv_2d.CL_OPS
(_MUL,) = (cl_op for cl_op in binary.CL_OPS if cl_op.op is MUL)


@dataclass(frozen=True)
class GatedOptions:
    """The options of the convolution, and the spec of what it reads. Inputs: image, gates, filter and bias."""

    pointwise: Conv2DOptions
    gated: TensorSpec


def _parts(call: Call) -> tuple[Call, Call]:
    """Return the calls of the multiplication and of the convolution, with a tensor between them."""
    middle = Operand(call.options.gated)
    first = replace(call, options=MulOptions(), inputs=call.inputs[:2], outputs=[middle], activation=Activation())
    return replace(first, residual=None), replace(
        call, options=call.options.pointwise, inputs=[middle, *call.inputs[2:]]
    )


def _lower(call: Call) -> list[Step]:
    first, second = _parts(call)
    own = _POINTWISE.on_gpu(second) if _POINTWISE.on_gpu is not None and call.target.kind == "gpu" else None
    return [*_MUL.lower(first), *(_POINTWISE.lower(second) if own is None else own)]


def _on_gpu(call: Call) -> list[Step] | None:
    x, gates = call.input(0), call.input(1)
    _, height, width, channels = x.shape
    sizes = {"height": height, "width": width, "out_height": height, "out_width": width}
    window = Geometry(images=1, channels=channels, group_channels=1, columns=channels, group_columns=1, **sizes)
    gated = ByWindow(x, window, gates, np.zeros(channels, np.float32), Activation())
    return products.convolution(_parts(call)[1], gated)


GATED = ClOp(
    composed("GATED_CONV_2D", GatedOptions), claim=takes(*FLOAT), lower=_lower, on_gpu=_on_gpu, writes_rows=True
)
