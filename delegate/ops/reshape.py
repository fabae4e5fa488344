"""RESHAPE, SQUEEZE and EXPAND_DIMS: the same memory under another shape."""

from collections.abc import Sequence
from typing import Any

from litecl.delegate.cl_op import Alias, Call, ClOp, Step
from litecl.delegate.kit.claims import Specs, given, moves
from litecl.interpreter.graph import Array
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE, SQUEEZE


def _lower(call: Call) -> list[Step]:
    return [Alias(call.outputs[0], call.input(0))]


def _joins(options: Any, inputs: Specs, whole: Array) -> Sequence[Array]:
    return [whole.reshape(given(inputs, 0).static_shape)]


CL_OPS = tuple(ClOp(op, claim=moves, lower=_lower, joins=_joins) for op in (RESHAPE, SQUEEZE, EXPAND_DIMS))
