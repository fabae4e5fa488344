"""SHAPE and RANK: a tensor's dimensions, and their number."""

import numpy as np

from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import TELLING
from litecl.interpreter.kit import require, types
from litecl.interpreter.op import Inputs, NoOptions, Op, Specs
from litecl.interpreter.schema import TensorType


@dataclass(frozen=True)
class ShapeOptions:
    out_type: TensorType = TensorType.FLOAT32


def _infer_shape(options: ShapeOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    if options.out_type not in types.INDEX:
        raise ShapeError(f"expected out_type INT32 or INT64, got {options.out_type.name}")
    value = np.array(x.static_shape, options.out_type.dtype)
    return [TensorSpec(options.out_type, value.shape, data=value)]


def _run_shape(options: ShapeOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    return [np.array(x.shape, options.out_type.dtype)]


def _infer_rank(options: NoOptions, inputs: Specs) -> list[TensorSpec]:
    (x,) = require.present(inputs, 1)
    return [TensorSpec(TensorType.INT32, (), data=np.array(len(x.static_shape), np.int32))]


def _run_rank(options: NoOptions, inputs: Inputs) -> list[Array]:
    (x,) = require.arrays(inputs, 1)
    return [np.array(x.ndim, np.int32)]


SHAPE = Op("SHAPE", options=ShapeOptions, infer=_infer_shape, run=_run_shape, integers=TELLING)
RANK = Op("RANK", options=NoOptions, infer=_infer_rank, run=_run_rank)
