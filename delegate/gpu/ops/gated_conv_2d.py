"""A 1x1 convolution of an image whose channels are multiplied by gates, as one GPU kernel.

No model file contains this operator; the pass ``gates`` creates it. Where a GPU cannot fuse it, two nodes run.
"""

from dataclasses import replace

import numpy as np

from litecl.delegate.cl_op import Activation, ClOp, Operand, Step
from litecl.delegate.gpu.local_product import ByWindow
from litecl.delegate.gpu.ops import products
from litecl.delegate.gpu.target import GpuCall
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.matmul.geometry import Geometry
from litecl.delegate.ops import binary, conv_2d
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.binary import MUL, MulOptions
from litecl.interpreter.ops.conv_2d import Conv2DOptions

(_POINTWISE,) = conv_2d.CL_OPS
(_MUL,) = (cl_op for cl_op in binary.CL_OPS if cl_op.op is MUL)


@dataclass(frozen=True)
class GatedOptions:
    """The options of the convolution, and the spec of its input. Inputs: image, gates, filter and bias."""

    pointwise: Conv2DOptions
    gated: TensorSpec


def _lower(call: GpuCall) -> list[Step]:
    """Lower the multiplication and the convolution as one launch, or else one after the other."""
    middle = Operand(call.options.gated)
    product = replace(
        call, options=MulOptions(), inputs=call.inputs[:2], outputs=[middle], activation=Activation(), residual=None
    )
    pointwise = replace(call, options=call.options.pointwise, inputs=[middle, *call.inputs[2:]])
    steps = products.convolution(pointwise, _by_window(call.input(0), call.input(1)))
    return [*_MUL.steps(product), *_POINTWISE.steps(pointwise)] if steps is None else steps


def _by_window(x: Operand, gates: Operand) -> ByWindow:
    """Return gates as the kernel knows them: a depthwise convolution of one tap, whose weights are computed."""
    _, height, width, channels = x.shape
    sizes = {"height": height, "width": width, "out_height": height, "out_width": width}
    window = Geometry(images=1, channels=channels, group_channels=1, columns=channels, group_columns=1, **sizes)
    return ByWindow(x, window, gates, np.zeros(channels, np.float32), Activation())


GATED = ClOp(composed("GATED_CONV_2D", GatedOptions), claim=takes(*FLOAT), lower=_lower, writes_rows=True)
