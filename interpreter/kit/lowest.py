"""Rules for ``Op.lowest``: the lowest version of an operator that supports a node.

Source: tensorflow/lite/tools/versioning/op_version.cc, as far as the converter needs it.
"""

from collections.abc import Mapping
from typing import Any

from litecl.interpreter.op import Lowest, Specs
from litecl.interpreter.schema import TensorType

Versions = Mapping[TensorType, int]


def type_of(inputs: Specs, position: int = 0) -> TensorType | None:
    """Return the type of an input, None if it is absent."""
    spec = inputs[position] if position < len(inputs) else None
    return None if spec is None else spec.type


def most(*rules: Lowest) -> Lowest:
    """Return a rule that satisfies several rules."""
    return lambda options, inputs: max(rule(options, inputs) for rule in rules)


def at_least(version: int) -> Lowest:
    """Return the same version for all nodes."""
    return lambda options, inputs: version


def integers(int8: int, int16: int = 1) -> Lowest:
    """Return the versions for integer activations; all activations among several inputs have the same type."""
    return of_any({TensorType.INT8: int8, TensorType.INT16: int16})


def of_any(versions: Versions) -> Lowest:
    """Return the highest version for the types of the inputs."""
    return lambda options, inputs: max((versions.get(spec.type, 1) for spec in inputs if spec is not None), default=1)


def by_type(versions: Versions, position: int = 0) -> Lowest:
    """Return the version for the type of one input."""
    return lambda options, inputs: versions.get(type_of(inputs, position) or TensorType.FLOAT32, 1)


def beyond_4(version: int, versions: Versions | None = None) -> Lowest:
    """Return the version for more than four dimensions; for fewer, that of the type."""

    def rule(options: Any, inputs: Specs) -> int:
        return version if _rank(inputs[:1]) > 4 else by_type(versions or {})(options, inputs)

    return rule


def broadcast_beyond_4(version: int, versions: Versions | None = None) -> Lowest:
    """Return the version for operands that broadcast in more than four dimensions, and that of the type."""

    def rule(options: Any, inputs: Specs) -> int:
        a, b = inputs[0], inputs[1]
        assert a is not None and b is not None
        typed = (versions or {}).get(a.type, 1)
        return max(typed, version) if a.shape != b.shape and _rank(inputs) > 4 else typed

    return rule


def is_4d(otherwise: int) -> Lowest:
    """Return the version for any rank but four."""
    return lambda options, inputs: 1 if _rank(inputs[:1]) == 4 else otherwise


def is_hybrid(inputs: Specs) -> bool:
    """Return whether weights are integers and activations floats."""
    return type_of(inputs) == TensorType.FLOAT32 and type_of(inputs, 1) in (TensorType.INT8, TensorType.INT4)


def hybrid(version: int) -> Lowest:
    """Return the version for integer weights with float activations."""
    return lambda options, inputs: version if is_hybrid(inputs) else 1


def _rank(inputs: Specs) -> int:
    return max((len(spec.shape) for spec in inputs if spec is not None and spec.shape is not None), default=0)
