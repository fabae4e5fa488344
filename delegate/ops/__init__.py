"""The device operators, one file per operator or family, and the table of them all: every module's ``CL_OPS``."""

from litecl.delegate.cl_op import DeviceOp, Variants
from litecl.delegate.kit.found import device_ops
from litecl.delegate.ops import hybrid, quantized
from litecl.delegate.quantized import hybrid as hybrid_weights
from litecl.delegate.quantized import integers
from litecl.interpreter.op import Op


def _table() -> dict[Op, DeviceOp]:
    """Return every operator, as variants where quantized tensors or integer weights have their own kernels."""
    general = {cl_op.op: cl_op for cl_op in device_ops(__name__, __path__)}
    table: dict[Op, DeviceOp] = {**general}
    for op in dict.fromkeys(cl_op.op for cl_op in (*quantized.CL_OPS, *hybrid.CL_OPS)):
        special = [
            (applies, cl_op)
            for applies, variants in ((integers.applies, quantized.CL_OPS), (hybrid_weights.applies, hybrid.CL_OPS))
            for cl_op in variants
            if cl_op.op is op
        ]
        table[op] = Variants(op, tuple(special), general[op]) if op in general else special[0][1]
    return table


CL_OPS: dict[Op, DeviceOp] = _table()
