"""Checks that claims share: each returns a Refusal, or None if it has no objection."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from litecl.delegate.cl_op import Activation, Refusal
from litecl.delegate.cl_op import Specs as Specs
from litecl.interpreter.graph import TensorSpec
from litecl.interpreter.schema import ActivationFunctionType, TensorType

Claim = Callable[[Any, Specs, Sequence[TensorSpec]], Refusal | None]

FLOAT = (TensorType.FLOAT32,)
NUMBERS = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)

BYTES = (TensorType.INT8, TensorType.UINT8)
QUANTIZED = (*BYTES, TensorType.INT16)

C_TYPES = {
    TensorType.FLOAT32: "float",
    TensorType.INT32: "int",
    TensorType.INT64: "long",
    TensorType.BOOL: "uchar",
    TensorType.UINT8: "uchar",
    TensorType.INT8: "char",
    TensorType.INT16: "short",
}
"""OpenCL C's names of the types that tensors have on the device."""

_FUSED = {
    ActivationFunctionType.NONE: Activation(),
    ActivationFunctionType.RELU: Activation(low=0.0),
    ActivationFunctionType.RELU_N1_TO_1: Activation(low=-1.0, high=1.0),
    ActivationFunctionType.RELU6: Activation(low=0.0, high=6.0),
    ActivationFunctionType.TANH: Activation("TANH"),
}

BITS = {1: "uchar", 2: "ushort", 4: "int", 8: "long"}
"""For kernels that only move elements: the integer type for the size of an element in bytes."""


def stored(type_: TensorType) -> np.dtype[Any]:
    """Return the numpy type of the elements on the device: a boolean is a byte."""
    return np.dtype(np.uint8) if type_ == TensorType.BOOL else type_.dtype


def of(type_: TensorType, value: float) -> np.generic:
    """Return a number as a kernel argument of a tensor's element type."""
    result: np.generic = stored(type_).type(value)
    return result


def bits(spec: TensorSpec) -> str:
    """Return the integer type that kernels move a tensor's elements as."""
    return BITS[spec.dtype.itemsize]


def given(inputs: Specs, position: int) -> TensorSpec:
    """Return an input that shape inference has checked to be present."""
    spec = inputs[position]
    assert spec is not None, f"input {position} is absent"
    return spec


def typed(specs: Specs, allowed: Collection[TensorType], *, quantized: bool = False) -> Refusal | None:
    """Refuse tensors of other types; unless ``quantized``, also integers that represent real numbers."""
    wrong = [spec.type.name for spec in specs if spec is not None and spec.type not in allowed]
    if wrong:
        return Refusal(f"type {wrong[0]}")
    if not quantized and any(is_quantized(spec) for spec in specs):
        return Refusal("quantized")
    return None


def is_quantized(spec: TensorSpec | None) -> bool:
    """Return whether a tensor's integers represent real numbers."""
    return spec is not None and spec.quantization is not None and spec.type in QUANTIZED


def constant(inputs: Specs, **positions: int) -> Refusal | None:
    """Refuse inputs that are not constants. positions: of the inputs, by name."""
    unknown = [name for name, position in positions.items() if given(inputs, position).data is None]
    return Refusal(f"{unknown[0]} is not a constant") if unknown else None


def activated(options: Any, type_: TensorType) -> Refusal | None:
    """Refuse a fused activation that the device does not apply to elements of this type."""
    function = options.fused_activation_function
    if function == ActivationFunctionType.SIGN_BIT:
        return Refusal("fused activation SIGN_BIT")
    if function == ActivationFunctionType.TANH and type_ != TensorType.FLOAT32:
        return Refusal(f"fused activation TANH of {type_.name}")
    return None


def fused_activation(options: Any) -> Activation:
    """Return the fused activation of an operator's options; NONE without such an option, or if it is one that claims
    refuse wherever it applies (integer LSTMs have activations of their own).
    """
    return _FUSED.get(getattr(options, "fused_activation_function", ActivationFunctionType.NONE), Activation())


def takes(*allowed: TensorType) -> Claim:
    """Return a claim that accepts any inputs of these types."""
    return lambda options, inputs, outputs: typed(inputs, allowed)


def moves(options: Any, inputs: Specs, outputs: Sequence[TensorSpec]) -> Refusal | None:
    """Refuse types that the device does not hold: the claim of operators that only move elements."""
    return typed(outputs, C_TYPES, quantized=True)


def moves_by(**positions: int) -> Claim:
    """Return the claim of an operator that moves elements and needs these inputs constant."""
    return lambda options, inputs, outputs: constant(inputs, **positions) or moves(options, inputs, outputs)


def integers(data: Any) -> list[int]:
    """Return a constant's elements as integers."""
    return [int(value) for value in np.ravel(data)]
