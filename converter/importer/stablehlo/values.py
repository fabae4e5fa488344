"""Common parts of rules: attributes, shapes, and lazily broadcast values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

Rule = Callable[..., Any]


@dataclass(frozen=True)
class Spread:
    """A tensor before broadcasting: ``value`` has the full rank, and size 1 where it repeats.

    Elementwise operators broadcast themselves, so most such tensors are never materialized. The shape is a tensor if it
    is computed.
    """

    value: Any
    shape: Any


def whole(value: Any) -> Any:
    """Return a value as a tensor."""
    return tf.broadcast_to(value.value, value.shape) if isinstance(value, Spread) else value


def plain(rule: Rule) -> Rule:
    """Return the rule for materialized operands."""
    return lambda op, *operands: rule(op, *map(whole, operands))


def shape_of(op: Any, result: int = 0) -> list[int]:
    """Return the shape of a result. Raises NotImplementedError if it is unknown."""
    type_ = op.results[result].type
    if not type_.has_static_shape:
        raise NotImplementedError("has a result of unknown shape: give every dimension a size")
    return [int(d) for d in type_.shape]


def attribute(op: Any, name: str) -> Any:
    """Return an attribute: a string, a number, or jaxlib's object."""
    attr = op.attributes[name]
    return getattr(attr, "value", attr)


def integers(op: Any, name: str, default: Any = None) -> list[int]:
    """Return a list of integers from an attribute."""
    if name not in op.attributes:
        return list(default)
    return [int(n) for n in np.array(op.attributes[name]).reshape(-1)]


def number(op: Any, name: str, default: int) -> int:
    """Return an integer attribute."""
    return int(attribute(op, name)) if name in op.attributes else default


def words(op: Any, name: str) -> str:
    """Return an enumeration attribute as a word, such as a direction."""
    return str(op.attributes[name]).rstrip(">").split()[-1]


def directions(op: Any) -> list[str]:
    """Return the directions of the comparisons in an operation's function."""
    operations = [inner.operation for inner in op.regions[0].blocks[0].operations]
    return [words(inner, "comparison_direction") for inner in operations if inner.name == "stablehlo.compare"]


_TYPES = {"f16": tf.float16, "bf16": tf.bfloat16, "f32": tf.float32, "f64": tf.float64, "i1": tf.bool}
_TYPES |= {f"i{bits}": tf.as_dtype(f"int{bits}") for bits in (8, 16, 32, 64)}
_TYPES |= {f"ui{bits}": tf.as_dtype(f"uint{bits}") for bits in (8, 16, 32, 64)}


def element_type(op: Any) -> Any:
    """Return the element type of a result."""
    element = str(op.results[0].type.element_type)
    if element not in _TYPES:
        raise NotImplementedError(f"has elements of type {element}")
    return _TYPES[element]


def body_of(op: Any, region: int = 0) -> tuple[str, ...]:
    """Return the names of the operators in an operation's function, without the final return."""
    return tuple(inner.operation.name.removeprefix("stablehlo.") for inner in op.regions[region].blocks[0].operations)[
        :-1
    ]


def is_known(value: Any) -> bool:
    """Return whether a value is constant."""
    if isinstance(value, Spread) and not isinstance(value.shape, tuple):
        return False
    return isinstance(value.value if isinstance(value, Spread) else value, tf.__internal__.EagerTensor)


def known(value: Any) -> Any:
    """Return a constant's elements as an array; None if computed."""
    if not is_known(value):
        return None
    return np.broadcast_to(value.value.numpy(), value.shape) if isinstance(value, Spread) else value.numpy()
