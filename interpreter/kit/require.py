"""Guards that operators share: each returns the value that it checked, or raises ShapeError with expected and got."""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

import numpy as np

from litecl.interpreter.errors import ModelError, ShapeError, UnsupportedOp
from litecl.interpreter.graph import Array, Shape, TensorSpec
from litecl.interpreter.op import Inputs, Specs
from litecl.interpreter.schema import TensorType

QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT4, TensorType.INT2, TensorType.UINT4)
"""Integer types that represent real numbers if they have a scale."""

COUNTS = (TensorType.INT32, TensorType.INT64, TensorType.INT16)
"""Types of operands that give a shape, an axis or a count."""

_T = TypeVar("_T")


def present(inputs: Specs, count: int) -> list[TensorSpec]:
    """Return the first ``count`` specs, none of them absent."""
    if len(inputs) < count:
        raise ShapeError(f"expected {count} inputs, got {len(inputs)}")
    specs = [spec for spec in inputs[:count] if spec is not None]
    if len(specs) < count:
        missing = [i for i, spec in enumerate(inputs[:count]) if spec is None]
        raise ShapeError(f"input {missing[0]} is required and absent")
    return specs


def at(inputs: Specs, positions: Iterable[int]) -> list[TensorSpec]:
    """Return the specs at some positions, none of them absent."""
    specs = []
    for position in positions:
        spec = inputs[position] if position < len(inputs) else None
        if spec is None:
            raise ShapeError(f"input {position} is required and absent")
        specs.append(spec)
    return specs


def arrays(inputs: Inputs, count: int) -> list[Array]:
    """Return the first ``count`` arrays, none of them absent (inference ensures that)."""
    values = [value for value in inputs[:count] if value is not None]
    if len(values) < count:
        raise ShapeError(f"expected {count} inputs, got {len(values)}")
    return values


def optional(inputs: Sequence[_T | None], position: int) -> _T | None:
    """Return an operand that may be absent or beyond the given ones."""
    return inputs[position] if position < len(inputs) else None


def bias(inputs: Specs, position: int, channels: int) -> None:
    """Raise ShapeError unless a bias, if given, has one element per output channel."""
    spec = optional(inputs, position)
    if spec is not None and spec.size != channels:
        raise ShapeError(f"expected a bias of {channels} elements, got {list(spec.static_shape)}")


def plain(*specs: TensorSpec) -> None:
    """Raise UnsupportedOp for integers that represent real numbers, on which integer arithmetic is wrong."""
    for spec in specs:
        if spec.quantization is not None and spec.quantization.scale.size and spec.type != TensorType.FLOAT32:
            raise UnsupportedOp(f"no kernel for quantized {spec.type.name}")


def is_quantized(spec: TensorSpec) -> bool:
    """Return whether a tensor's integers represent real numbers."""
    scaled = spec.quantization is not None and bool(spec.quantization.scale.size)
    return scaled and spec.type in QUANTIZED


def types_or_quantized(spec: TensorSpec, allowed: Collection[TensorType], stored: Collection[TensorType]) -> TensorType:
    """Return the type of a tensor: one of ``allowed``, or one of ``stored`` with quantization parameters."""
    if is_quantized(spec):
        if spec.type not in stored:
            raise UnsupportedOp(f"no kernel for quantized {spec.type.name}")
        return spec.type
    if spec.type in stored and spec.type not in allowed:
        raise ModelError(f"expected quantization parameters of {spec.name!r} ({spec.type.name}), got none")
    return types(spec, tuple(dict.fromkeys((*allowed, *stored))))


def rank(spec: TensorSpec, *, at_least: int = 0, at_most: int = 8, exactly: int | None = None) -> int:
    """Return the rank of a tensor, within bounds."""
    got = len(spec.static_shape)
    low, high = (at_least, at_most) if exactly is None else (exactly, exactly)
    if not low <= got <= high:
        expected = f"rank {low}" if low == high else f"rank {low} to {high}"
        raise ShapeError(f"expected {expected}, got {got} (shape {list(spec.static_shape)})")
    return got


def filled(spec: TensorSpec, axes: Iterable[int]) -> None:
    """Refuse a tensor without elements along one of some axes, counted from the front."""
    for index in axes:
        if spec.static_shape[index] == 0:
            raise ShapeError(f"expected at least one element along axis {index}, got shape {list(spec.static_shape)}")


def types(spec: TensorSpec, allowed: Collection[TensorType]) -> TensorType:
    """Return the type of a tensor, one of ``allowed``."""
    if spec.type not in allowed:
        names = ", ".join(t.name for t in allowed)
        raise ShapeError(f"expected type {names}, got {spec.type.name}")
    return spec.type


def factors(x: TensorSpec, weights: TensorSpec, allowed: Collection[TensorType]) -> None:
    """Check the types of a kernel's factors: floats take weights of up to 8 bits or floats, integers take integers.

    allowed: the types of weights.
    """
    types(weights, allowed)
    pair = f"no kernel multiplies {x.type.name} {x.name!r} by {weights.type.name} {weights.name!r}"
    if x.type in QUANTIZED and weights.type in (TensorType.FLOAT32, TensorType.FLOAT16):
        raise UnsupportedOp(
            f"{pair}: integers go second, as weights of floats; widen {x.name!r} with a DEQUANTIZE, or exchange and "
            "transpose the operands"
        )
    if x.type == TensorType.FLOAT32 and weights.type == TensorType.INT16:
        raise UnsupportedOp(f"{pair}: weights of floats have 8 bits or less; widen {weights.name!r} with a DEQUANTIZE")


def same_type(*specs: TensorSpec) -> TensorType:
    """Return the one type that all tensors share."""
    kinds = {spec.type for spec in specs}
    if len(kinds) > 1:
        raise ShapeError(f"types differ: {', '.join(spec.type.name for spec in specs)}")
    return specs[0].type


def axis(value: int, rank_: int) -> int:
    """Return an axis counted from the front; the given one may be negative."""
    if not -rank_ <= value < rank_:
        raise ShapeError(f"axis {value} out of range for rank {rank_}")
    return value + rank_ if value < 0 else value


def broadcast(*specs: TensorSpec) -> Shape:
    """Return the shape that the tensors broadcast to."""
    try:
        return tuple(np.broadcast_shapes(*(spec.static_shape for spec in specs)))
    except ValueError:
        shapes = ", ".join(str(list(spec.static_shape)) for spec in specs)
        raise ShapeError(f"shapes {shapes} do not broadcast") from None


def integers(spec: TensorSpec, allowed: Collection[TensorType] = COUNTS) -> list[int] | None:
    """Return the elements of an operand that gives a shape, an axis or a count; None if they are not constant."""
    types(spec, allowed)
    return None if spec.data is None else [int(value) for value in spec.data.ravel()]


def integer(spec: TensorSpec) -> int | None:
    """Return the only element of such an operand; None if it is not constant."""
    if spec.size != 1:
        raise ShapeError(f"expected one element, got shape {list(spec.static_shape)}")
    values = integers(spec)
    return None if values is None else values[0]


def indices(values: Array, limit: int) -> Array:
    """Return indices of a dimension, none of them negative or past its end."""
    if values.size and not 0 <= values.min() <= values.max() < limit:
        raise ModelError(f"index {values.min()} to {values.max()} out of range for dimension {limit}")
    return values


def elements(shape: Sequence[int]) -> int:
    """Return the number of elements of a shape. Raises ShapeError for more than an int32 counts, as TFLite does."""
    count = math.prod(shape)
    if count >= 1 << 31:
        raise ShapeError(f"shape {list(shape)} has more than {(1 << 31) - 1} elements")
    return count


def unbound(options: object, inputs: Inputs) -> list[Array]:
    """Refuse to run: the ``run`` of an operator whose kernel only ``bind`` can make, from types and quantization."""
    raise ModelError("runs only when bound to its tensors")


def typed(inputs: Specs, *expected: TensorType) -> list[TensorSpec]:
    """Return the first specs, each of its expected type."""
    specs = present(inputs, len(expected))
    for spec, type_ in zip(specs, expected, strict=True):
        types(spec, (type_,))
    return specs


def bits(**values: int) -> None:
    """Refuse shifts and bit counts, given by name, outside 0 to 31."""
    for name, value in values.items():
        if not 0 <= value < 32:
            raise ShapeError(f"expected {name} of 0 to 31, got {value}")
