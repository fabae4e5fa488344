"""RESHAPE, SQUEEZE and EXPAND_DIMS: the same memory under another shape."""

from litecl.delegate.cl_op import Alias, Call, ClOp, Step
from litecl.delegate.claims import moves
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE, SQUEEZE


def _lower(call: Call) -> list[Step]:
    return [Alias(call.outputs[0], call.input(0))]


CL_OPS = tuple(ClOp(op, claim=moves, lower=_lower) for op in (RESHAPE, SQUEEZE, EXPAND_DIMS))
