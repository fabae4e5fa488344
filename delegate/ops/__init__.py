"""The device operators, one file an operator or a family, and the table of them all."""

from litecl.delegate.cl_op import ClOp
from litecl.interpreter.op import Op

_LIGHT: tuple[ClOp, ...] = ()
_HEAVY: tuple[ClOp, ...] = ()

CL_OPS: dict[Op, ClOp] = {cl_op.op: cl_op for cl_op in (*_LIGHT, *_HEAVY)}
