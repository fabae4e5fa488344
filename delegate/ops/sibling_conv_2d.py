"""Convolutions that read the same image, as one: its columns are those of all, and are copied to each one's result.

No file has this operator: the pass ``siblings`` finds it.
"""

import math

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Operand, Scratch, Step
from litecl.delegate.kit.claims import FLOAT, bits, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.kit.strided import box, copy, view, view_of
from litecl.delegate.matmul.geometry import geometry
from litecl.delegate.ops.conv_2d import known, window_product
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.ops.conv_2d import Conv2DOptions


@dataclass(frozen=True)
class SiblingOptions:
    """The options of each of the convolutions. Inputs: the image, then the filter and the bias of each, constants."""

    each: Conv2DOptions


def _lower(call: Call) -> list[Step]:
    x, filters, biases = call.input(0), call.inputs[1::2], call.inputs[2::2]
    weights = np.concatenate([filter_.value for filter_ in filters if filter_ is not None])
    added = np.concatenate([_bias(out, bias) for out, bias in zip(call.outputs, biases, strict=True)])
    shape = (*call.outputs[0].shape[:-1], len(weights))
    g = geometry(call.options.each, x.shape, weights.shape[1:3], weights.shape[3], shape, call.pads)
    whole, columns = Scratch(4 * math.prod(shape)), view(shape)
    steps, first = window_product(call, g, x, known(weights), known(added), whole), 0
    for out in call.outputs:
        last = first + out.shape[-1]
        part = box(columns, [*(slice(n) for n in shape[:-1]), slice(first, last)])
        steps.append(copy(whole, part, out, view_of(out), bits(out.spec), call.target))
        first = last
    return steps


def _bias(out: Operand, bias: Operand | None) -> np.ndarray:
    return np.zeros(out.shape[-1], np.float32) if bias is None else bias.value


SIBLINGS = ClOp(composed("SIBLING_CONV_2D", SiblingOptions), claim=takes(*FLOAT), lower=_lower, writes_rows=True)
