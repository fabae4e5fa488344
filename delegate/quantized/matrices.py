"""The operands of a batch of integer products, as kernels read them: consecutive matrices."""

import math

import numpy as np

from litecl.delegate.cl_op import Call, Launch, Operand, Scratch
from litecl.delegate.kit import claims
from litecl.delegate.kit.strided import Memory, copy, is_dense, view
from litecl.interpreter.graph import Shape

Batch = tuple[Memory, list[Launch]]
"""Matrices in memory, and the launches that write them."""


def count(shape: Shape) -> int:
    """Return the number of matrices in a tensor."""
    return math.prod(shape[:-2])


def matrices(call: Call, operand: Operand, *, swapped: bool) -> Batch:
    """Return an operand as one matrix for all products or one for each, the last two dimensions swapped if ``swapped``.

    Operands already in this layout are not copied.
    """
    batch = call.outputs[0].shape[:-2]
    at = np.swapaxes(view(operand.shape), -1, -2) if swapped else view(operand.shape)
    if count(operand.shape) not in (1, math.prod(batch)):
        at = np.broadcast_to(at, (*batch, *at.shape[-2:]))
    if is_dense(at):
        return operand, []
    into = Scratch(at.size * operand.spec.dtype.itemsize)
    return into, [copy(operand, at, into, view(at.shape), claims.bits(operand.spec), call.target)]
