"""Two or three convolutions on a CPU (the second depthwise, the third 1x1), computed in bands of rows.

Intermediate results are read while they are in the second-level cache, and take the memory of two bands. Rows that the
next band also reads are copied. No model file contains this operator; the pass ``bands`` creates it.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

from litecl.delegate.cl_op import Activation, Alias, Call, ClOp, Move, Operand, Pads, Step
from litecl.delegate.cpu.target import bands
from litecl.delegate.kit.claims import FLOAT, takes
from litecl.delegate.kit.composed import composed
from litecl.delegate.kit.strided import view_of
from litecl.delegate.matmul.geometry import Geometry, geometry
from litecl.delegate.ops import conv_2d, depthwise_conv_2d
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.ops.conv_2d import Conv2DOptions

(_CONVOLUTION,) = conv_2d.CL_OPS
(_DEPTHWISE,) = depthwise_conv_2d.CL_OPS


@dataclass(frozen=True)
class Banded:
    """A convolution before the last: its options, its activation, the zeros around its image, and its result."""

    options: Any
    activation: Activation
    pads: Pads
    result: TensorSpec


@dataclass(frozen=True)
class BandedOptions:
    """Inputs: the image, filter and bias of the first convolution, then filters and biases of the others. last: of the
    third, if there is one.
    """

    first: Banded
    depthwise: Banded
    last: Conv2DOptions | None


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows [first, last) of an image, in memory of their own."""

    operand: Operand
    first: int
    last: int

    def part(self, first: int, last: int) -> tuple[Operand, Alias]:
        """Return the rows [first, last) of the image, and the step that places them in this memory."""
        rows = _rows_of(self.operand.spec, last - first)
        row_bytes = self.operand.size_bytes // (self.last - self.first)
        return rows, Alias(rows, self.operand, (first - self.first) * row_bytes)


def _lower(call: Call) -> list[Step]:
    o: BandedOptions = call.options
    x, out = _whole(call.input(0)), _whole(call.outputs[0])
    residual = None if call.residual is None else _whole(call.residual)
    windows = [_window(call, o.first, x.operand.spec, 1), _window(call, o.depthwise, o.first.result, 3)]
    steps, before = list[Step](), None
    for first, last in _bands(call, windows):
        seen, pads = _seen(windows[1], first, last)
        hidden = _Rows(_rows_of(o.first.result, seen[1] - seen[0]), *seen)
        steps += _kept(before, hidden)
        fresh = hidden.first if before is None else max(hidden.first, before.last)
        if fresh < hidden.last:
            steps += _first(call, windows[0], x, hidden, fresh)
        band, alias = out.part(first, last)
        steps.append(alias)
        between = band if o.last is None else _rows_of(o.depthwise.result, last - first)
        steps += _DEPTHWISE.steps(_part(call, o.depthwise, 3, hidden.operand, between, pads))
        before = hidden
        if o.last is None:
            continue
        one = replace(call, options=o.last, inputs=[between, *call.inputs[5:7]], outputs=[band], residual=None)
        if residual is not None:
            added, added_alias = residual.part(first, last)
            steps.append(added_alias)
            one = replace(one, residual=added)
        steps += _CONVOLUTION.steps(one)
    return steps


def _first(call: Call, window: Geometry, x: _Rows, hidden: _Rows, fresh: int) -> list[Step]:
    """Return the steps that compute the rows of the first result from ``fresh`` on."""
    new, new_alias = hidden.part(fresh, hidden.last)
    seen, pads = _seen(window, fresh, hidden.last)
    image, image_alias = x.part(*seen)
    return [new_alias, image_alias, *_CONVOLUTION.steps(_part(call, call.options.first, 1, image, new, pads))]


def _kept(before: _Rows | None, hidden: _Rows) -> list[Step]:
    """Return the copy of those rows of the first result that the previous band has computed."""
    if before is None or before.last <= hidden.first:
        return []
    (old, old_alias), (new, new_alias) = (rows.part(hidden.first, before.last) for rows in (before, hidden))
    return [old_alias, new_alias, Move(old, view_of(old), new, view_of(new))]


def _part(call: Call, part: Banded, first: int, x: Operand, out: Operand, pads: Pads) -> Call:
    """Return the call of one of the convolutions for a band. first: the position of its filter."""
    return replace(
        call,
        options=part.options,
        inputs=[x, *call.inputs[first : first + 2]],
        outputs=[out],
        activation=part.activation,
        residual=None,
        pads=pads,
        fresh=True,
    )


def _window(call: Call, part: Banded, x: TensorSpec, filter_: int) -> Geometry:
    weights, depth = call.input(filter_).shape, 1 if part is call.options.depthwise else x.static_shape[3]
    return geometry(part.options, x.static_shape, weights[1:3], depth, part.result.static_shape, part.pads)


def _bands(call: Call, windows: list[Geometry]) -> Iterator[tuple[int, int]]:
    """Yield the bands of rows of the last result, as equal as possible."""
    hidden, rows = call.options.first.result, windows[1].out_height
    count = bands(call.target, rows, 4 * prod(hidden.static_shape))
    for i in range(count):
        yield rows * i // count, rows * (i + 1) // count


def _seen(g: Geometry, first: int, last: int) -> tuple[tuple[int, int], Pads]:
    """Return the rows of the image that rows [first, last) of the result depend on, and the zeros around them."""
    top = first * g.stride_y - g.pad_y
    bottom = (last - 1) * g.stride_y - g.pad_y + (g.kernel_height - 1) * g.dilation_y + 1
    right = (g.out_width - 1) * g.stride_x - g.pad_x + (g.kernel_width - 1) * g.dilation_x + 1
    pads = Pads(max(0, -top), max(0, bottom - g.height), g.pad_x, max(0, right - g.width))
    return (max(0, top), min(bottom, g.height)), pads


def _whole(operand: Operand) -> _Rows:
    return _Rows(operand, 0, operand.shape[1])


def _rows_of(spec: TensorSpec, rows: int) -> Operand:
    """Return memory for ``rows`` rows of an image."""
    images, _, *row = spec.static_shape
    return Operand(replace(spec, shape=(images, rows, *row), data=None))


BANDED = ClOp(
    composed("BANDED_CONVS", BandedOptions),
    claim=takes(*FLOAT),
    lower=_lower,
    fuses_activation=True,
    fuses_residual=True,
)
