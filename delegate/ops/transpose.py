"""TRANSPOSE, REVERSE_V2, TILE, BROADCAST_TO, SPACE_TO_DEPTH and DEPTH_TO_SPACE: one strided copy each."""

from collections.abc import Callable

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Step
from litecl.delegate.kit.claims import Claim, bits, integers, moves, moves_by
from litecl.delegate.kit.strided import copy, view
from litecl.interpreter.graph import Array
from litecl.interpreter.op import Op
from litecl.interpreter.ops.broadcast_to import BROADCAST_TO
from litecl.interpreter.ops.reverse import REVERSE_V2
from litecl.interpreter.ops.space_to_depth import DEPTH_TO_SPACE, SPACE_TO_DEPTH
from litecl.interpreter.ops.tile import TILE
from litecl.interpreter.ops.transpose import TRANSPOSE


def _cl_op(op: Op, claim: Claim, source: Callable[[Call], Array]) -> ClOp:
    """Return the operator whose output holds, in order, the elements of the view ``source`` of its first input."""

    def lower(call: Call) -> list[Step]:
        (y,) = call.outputs
        at = source(call)
        return [copy(call.input(0), at, y, view(at.shape), bits(y.spec), call.target)]

    return ClOp(op, claim=claim, lower=lower)


def _transpose(call: Call) -> Array:
    return view(call.input(0).shape).transpose(integers(call.input(1).data))


def _reverse(call: Call) -> Array:
    return np.flip(view(call.input(0).shape), tuple(integers(call.input(1).data)))


def _broadcast(call: Call) -> Array:
    return np.broadcast_to(view(call.input(0).shape), call.outputs[0].shape)


def _tile(call: Call) -> Array:
    """Split every dimension into two, the outer of which repeats."""
    shape, times = call.input(0).shape, integers(call.input(1).data)
    single = [size for dimension in shape for size in (1, dimension)]
    repeated = [size for pair in zip(times, shape, strict=True) for size in pair]
    return np.broadcast_to(view(single), repeated)


def _space_to_depth(call: Call) -> Array:
    (images, rows, columns, _), block = call.outputs[0].shape, call.options.block_size
    depth = call.input(0).shape[3]
    return view((images, rows, block, columns, block, depth)).transpose(0, 1, 3, 2, 4, 5)


def _depth_to_space(call: Call) -> Array:
    (images, rows, columns, _), block = call.input(0).shape, call.options.block_size
    depth = call.outputs[0].shape[3]
    return view((images, rows, columns, block, block, depth)).transpose(0, 1, 3, 2, 4, 5)


CL_OPS = (
    _cl_op(TRANSPOSE, moves_by(permutation=1), _transpose),
    _cl_op(REVERSE_V2, moves_by(axes=1), _reverse),
    _cl_op(TILE, moves_by(multiples=1), _tile),
    _cl_op(BROADCAST_TO, moves, _broadcast),
    _cl_op(SPACE_TO_DEPTH, moves, _space_to_depth),
    _cl_op(DEPTH_TO_SPACE, moves, _depth_to_space),
)
