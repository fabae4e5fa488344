"""Convolutions of one image, merged into one with the columns of all; or their sums with as many convolutions of a
second image, as in the cell of a ConvLSTM.

No model file contains this operator; the pass ``siblings`` creates it.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litecl.delegate.cl_op import Activation, Call, ClOp, Move, Operand, Pads, Step
from litecl.delegate.cpu.lines import Lines, lines_of
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.kit.strided import box, view, view_of
from litecl.delegate.matmul.geometry import Geometry, Placement, geometry
from litecl.delegate.matmul.product import packed, packed_weights
from litecl.delegate.ops.conv_2d import known, window_product
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.conv_2d import Conv2DOptions
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class Sibling:
    """The convolutions of one image: the options that they share, and additional zeros around the image."""

    options: Conv2DOptions
    pads: Pads


@dataclass(frozen=True)
class SiblingOptions:
    """The convolutions of one image, or of two whose results are added. Inputs: the images; then the filter and the
    bias, constants, of every convolution of the first image, and of the second.
    """

    images: tuple[Sibling, ...]


@dataclass(frozen=True, eq=False)
class _Whole:
    """The convolutions of an image as one: its window, its filters and its biases."""

    image: Operand
    window: Geometry
    filters: Operand
    biases: Operand


def _lower(call: Call) -> list[Step]:
    wholes = _wholes(call)
    first, *others = (whole.window for whole in wholes)
    shape = (*call.outputs[0].shape[:-1], first.columns)
    out = Operand(TensorSpec(TensorType.FLOAT32, shape))
    lines = None if first.is_product else lines_of(first, call.target, *others)
    if lines is not None:
        by_vectors = all(part.shape[-1] == lines.tile.width for part in call.outputs)
        return [*_by_lines(call, lines, wholes, out, by_vectors), *_parts(call, out, by_vectors)]
    steps, added = list[Step](), None
    for whole in wholes:
        last = whole is wholes[-1]
        one = replace(call, residual=added, activation=call.activation if last else Activation())
        added = out if last else Operand(out.spec)
        steps += window_product(one, whole.window, whole.image, whole.filters, whole.biases, added)
    return [*steps, *_parts(call, out, False)]


def _by_lines(call: Call, lines: Lines, wholes: Sequence[_Whole], out: Operand, by_vectors: bool) -> list[Step]:
    """Return the launch of all convolutions. by_vectors: their columns are [columns / vector, pixels, vector]."""
    g, target, panel = wholes[0].window, call.target, lines.tile.panel
    filters = np.concatenate([whole.filters.value.reshape(g.columns, -1) for whole in wholes], axis=1)
    biases = np.sum([whole.biases.value for whole in wholes], axis=0)
    weights = packed_weights(known(filters), 1, g.columns, panel, target)
    added = packed(known(biases), 1, g.columns, panel, target)
    step, vector_step = (lines.tile.width, g.pixels * lines.tile.width) if by_vectors else (g.columns, None)
    place = Placement(height=g.out_height, width=g.out_width, pixel_step=step)
    images = [whole.image for whole in wholes]
    return [lines.launch(target, images, weights, added, out, place, call.activation, vector_step=vector_step)]


def _wholes(call: Call) -> list[_Whole]:
    images, count = call.options.images, 2 * len(call.outputs)
    wholes = []
    for i, image in enumerate(images):
        x, first = call.input(i), len(images) + i * count
        filters, biases = call.inputs[first : first + count : 2], call.inputs[first + 1 : first + count : 2]
        weights = np.concatenate([filter_.value for filter_ in filters if filter_ is not None])
        added = np.concatenate([_bias(out, bias) for out, bias in zip(call.outputs, biases, strict=True)])
        shape = (*call.outputs[0].shape[:-1], len(weights))
        g = geometry(image.options, x.shape, weights.shape[1:3], weights.shape[3], shape, image.pads)
        wholes.append(_Whole(x, g, known(weights), known(added)))
    return wholes


def _parts(call: Call, whole: Operand, by_vectors: bool) -> list[Step]:
    """Return the moves of each result from its part of the whole: columns, or one of several consecutive images."""
    shape, steps, first = whole.shape, list[Step](), 0
    for number, out in enumerate(call.outputs):
        last = first + out.shape[-1]
        if by_vectors:
            part = view((len(call.outputs), *out.shape))[number]
        else:
            part = box(view(shape), [*(slice(n) for n in shape[:-1]), slice(first, last)])
        steps.append(Move(whole, part, out, view_of(out)))
        first = last
    return steps


def _bias(out: Operand, bias: Operand | None) -> np.ndarray:
    return np.zeros(out.shape[-1], np.float32) if bias is None else bias.value


SIBLINGS = ClOp(composed("SIBLING_CONV_2D", SiblingOptions), claim=takes(*FLOAT), lower=_lower, writes_rows=True)
