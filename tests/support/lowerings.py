"""Single nodes, lowered without a device, for tests of lowerings."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Operand, Target
from litecl.delegate.cpu.target import CpuTarget
from litecl.delegate.gpu.target import GpuTarget
from litecl.delegate.ops import CL_OPS
from litecl.interpreter.graph import Shape, TensorSpec
from litecl.interpreter.op import Op
from litecl.interpreter.ops.conv_2d import CONV_2D, Conv2DOptions
from litecl.interpreter.schema import TensorType

CPU = CpuTarget(vector_width=16, compute_units=4)
GPU = GpuTarget(vector_width=4, compute_units=20, max_work_group_size=256)


def floats(*shape: int, known: bool = False) -> TensorSpec:
    """Return a tensor of floats. known: whether it is a constant."""
    return TensorSpec(TensorType.FLOAT32, shape, data=np.ones(shape, np.float32) if known else None)


def node(op: Op, options: Any, inputs: Sequence[TensorSpec], target: Target) -> tuple[ClOp, Call]:
    """Return a node's device record, and the call to lower."""
    outputs = op.infer(options, inputs)
    operands = [Operand(spec) for spec in inputs]
    return CL_OPS[op].select(inputs, outputs), Call(options, operands, [Operand(spec) for spec in outputs], target)


def convolution(x: Shape, filter_: Shape, stride: int, target: Target, *, known: bool = True) -> tuple[ClOp, Call]:
    """Return a CONV_2D of floats with a bias. known: whether filters and bias are constants."""
    inputs = [floats(*x), floats(*filter_, known=known), floats(filter_[0], known=known)]
    return node(CONV_2D, Conv2DOptions(stride_w=stride, stride_h=stride), inputs, target)
