"""CONCATENATION: tensors one after another along an axis."""

from dataclasses import dataclass

import numpy as np

from litecl.interpreter.errors import ShapeError
from litecl.interpreter.graph import Array, TensorSpec
from litecl.interpreter.op import Inputs, Op, Specs
from litecl.interpreter.ops import activation, require
from litecl.interpreter.schema import ActivationFunctionType


@dataclass(frozen=True)
class ConcatenationOptions:
    axis: int = 0
    fused_activation_function: ActivationFunctionType = ActivationFunctionType.NONE


def _infer(options: ConcatenationOptions, inputs: Specs) -> list[TensorSpec]:
    parts = require.present("CONCATENATION", inputs, max(1, len(inputs)))
    type_ = require.same_type("CONCATENATION", *parts)
    first = parts[0].static_shape
    axis = require.axis("CONCATENATION", options.axis, len(first))
    for part in parts[1:]:
        shape = part.static_shape
        if len(shape) != len(first) or shape[:axis] + shape[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise ShapeError(f"CONCATENATION: shapes {list(first)} and {list(shape)} differ beyond axis {axis}")
    length = sum(part.static_shape[axis] for part in parts)
    return [TensorSpec(type_, (*first[:axis], length, *first[axis + 1 :]))]


def _run(options: ConcatenationOptions, inputs: Inputs) -> list[Array]:
    parts = require.arrays(inputs, len(inputs))
    return [activation.apply(options.fused_activation_function, np.concatenate(parts, options.axis))]


CONCATENATION = Op(
    "CONCATENATION", options=ConcatenationOptions, infer=_infer, run=_run, versions=range(1, 6)
)
