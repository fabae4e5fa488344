"""UNIQUE: the distinct elements of a vector in order of appearance, and each element's index among them."""

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import MOVING
from litecl.interpreter.kit import require
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class UniqueOptions:
    idx_out_type: TensorType = TensorType.INT32


def _infer(options: UniqueOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    require.rank(x, exactly=1)
    return [TensorSpec(x.type, None), TensorSpec(options.idx_out_type, x.shape)]


def _run(options: UniqueOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    _, first, which = np.unique(x, return_index=True, return_inverse=True)
    order = np.argsort(first)
    ranks = np.argsort(order)
    return [x[first[order]], ranks[which].astype(options.idx_out_type.dtype)]


UNIQUE = Op("UNIQUE", options=UniqueOptions, infer=_infer, run=_run, integers=MOVING)
