"""UPDATE_ALONG on a GPU."""

import math

import numpy as np

from litecl.delegate.cl_op import Arg, Step
from litecl.delegate.gpu.target import GpuCall
from litecl.delegate.kit.schedule import elements
from litecl.delegate.ops.slice import UpdateOptions, macros_of


def at_once(call: GpuCall) -> list[Step] | None:
    """Lower UPDATE_ALONG to one launch that copies old and new elements, if the update spans all other axes."""
    o: UpdateOptions = call.options
    x, update, position, (y,) = call.input(0), call.input(1), call.input(2), call.outputs
    axis = o.starts.index(None)
    whole, part = ((*shape[:axis], *shape[axis + 1 :]) for shape in (x.shape, update.shape))
    if x is y or whole != part:
        return None
    share, inner = elements("update", y.spec.size, call.target), math.prod(x.shape[axis + 1 :])
    sizes = np.int32(x.shape[axis]), np.int32(update.shape[axis]), np.int32(inner)
    args: tuple[Arg, ...] = (x, update, y, position, *share.args, *sizes)
    return [share.launch("update", args, macros_of(x, position))]
