"""ARG_MAX and ARG_MIN: the first position of the largest or smallest element along one axis."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from litecl.interpreter.arithmetic import halves
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.integers import TELLING_OF_BYTES
from litecl.interpreter.kit import lowest, require, types
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.schema import TensorType

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT32, TensorType.BOOL)


@dataclass(frozen=True)
class ArgMaxOptions:
    output_type: TensorType = TensorType.FLOAT32


@dataclass(frozen=True)
class ArgMinOptions:
    output_type: TensorType = TensorType.FLOAT32


def _of_numbers(function: Callable[..., Any], lost: float, x: Array, axis: int) -> Any:
    """Return the first position of the largest or smallest number, or of NaN if there is no number.

    lost: a number that loses to every other.
    """
    if not np.issubdtype(x.dtype, np.floating) or not (strange := np.isnan(x)).any():
        return function(x, axis=axis)
    best = function(np.where(strange, x.dtype.type(lost), x), axis=axis)
    is_strange = np.take_along_axis(strange, np.expand_dims(best, axis), axis).squeeze(axis)
    return np.where(is_strange, np.argmax(~strange, axis=axis), best)


def _arg(name: str, options: type, function: Callable[..., Any], lost: float) -> Op:
    def infer(options: Any, inputs: Specs) -> list[TensorSpec]:
        x, axis = require.present(inputs, 2)
        require.types(x, _TYPES)
        if options.output_type not in types.INDEX:
            raise ShapeError(f"expected output_type INT32 or INT64, got {options.output_type.name}")
        value = require.integer(axis)
        if value is None:
            return [TensorSpec(options.output_type, None)]
        dropped = require.axis(value, require.rank(x, at_least=1))
        require.filled(x, (dropped,))
        return [TensorSpec(options.output_type, x.static_shape[:dropped] + x.static_shape[dropped + 1 :])]

    def run(options: Any, inputs: Inputs) -> list[Array]:
        x, axis = require.arrays(inputs, 2)
        return [np.asarray(_of_numbers(function, lost, x, int(axis.item())), options.output_type.dtype)]

    op = Op(name, options=options, infer=infer, run=run, versions=range(1, 4))
    return halves.also(replace(op, lowest=lowest.integers(2), integers=TELLING_OF_BYTES))


ARG_MAX = _arg("ARG_MAX", ArgMaxOptions, np.argmax, -np.inf)
ARG_MIN = _arg("ARG_MIN", ArgMinOptions, np.argmin, np.inf)
