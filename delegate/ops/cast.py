"""CAST: elements converted to another type by value."""

import numpy as np

from litecl.delegate.cl_op import Call, ClOp, Step
from litecl.delegate.kit.claims import C_TYPES, of, stored, takes
from litecl.delegate.kit.schedule import elements
from litecl.interpreter.kit.types import limits
from litecl.interpreter.ops.cast import CAST
from litecl.interpreter.schema import TensorType


def _lower(call: Call) -> list[Step]:
    x, (y,) = call.input(0), call.outputs
    share = elements("cast", y.spec.size, call.target)
    least, most = limits(stored(y.spec.type))
    args = (x, y, *share.args, np.float32(float(most) + 1), of(y.spec.type, least), of(y.spec.type, most))
    defines = {"T": C_TYPES[x.spec.type], "R": C_TYPES[y.spec.type], "OP": _conversion(x.spec.type, y.spec.type)}
    return [share.launch("cast", args, defines)]


def _conversion(from_: TensorType, to: TensorType) -> str:
    if to == TensorType.BOOL:
        return "TRUTH"
    return "SATURATE" if from_ == TensorType.FLOAT32 and to != TensorType.FLOAT32 else "CONVERT_TO"


CL_OPS = (ClOp(CAST, claim=takes(*C_TYPES), lower=_lower),)
