"""Represents complex numbers as two real tensors each.

TFLite has a transform that returns complex numbers, their parts and their magnitude, but few operators that take them.
Complex arguments are split; complex results are assembled from their bits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.records import Dims
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.schema import TensorType

_FLOAT, _COMPLEX = TensorType.FLOAT32, TensorType.COMPLEX64
_TRANSFORMS = ("RFFT", "RFFT2D")
# Operators that TFLite computes on complex numbers directly.
_NATIVE = (*_TRANSFORMS, "Real", "Imag", "ComplexAbs", "Cast", "Mul", "Reshape", "Slice", "StridedSlice")


@dataclass(frozen=True)
class Parts:
    """The real and the imaginary part of a tensor, of its shape; ``im`` is None if it is 0."""

    re: Value
    im: Value | None = None


class Splitter:
    """The parts of a function's complex values; every rule uses it."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self._parts: dict[Value, Parts] = {}

    def of(self, value: Value) -> Parts:
        """Return the parts of a complex value; a real value has no imaginary part."""
        if value.type != _COMPLEX:
            return Parts(value)
        if value not in self._parts:
            self._parts[value] = self._taken_apart(value)
        return self._parts[value]

    def set(self, value: Value, parts: Parts) -> None:
        """Set the parts of a complex value."""
        self._parts[value] = parts

    def is_whole(self, value: Value) -> bool:
        """Return whether a complex value has not been split."""
        return value not in self._parts

    def whole(self, value: Value) -> Value:
        """Return a value as complex numbers, assembled from its parts if it was split."""
        if value.type != _COMPLEX or value not in self._parts or value.data is not None:
            return value
        parts = self._parts[value]
        shape = None if value.shape is None else (*value.shape, 2)
        both = [parts.re, self.imaginary(parts)]
        packed = self.emit("Pack", both, shape, value.name, N=2, axis=-1)
        return self.function.emit("Bitcast", [packed], (_COMPLEX, value.shape), value.name, type=_COMPLEX)

    def imaginary(self, parts: Parts) -> Value:
        """Return the imaginary part, as zeros if there is none."""
        return self.emit("ZerosLike", [parts.re], parts.re.shape, parts.re.name) if parts.im is None else parts.im

    def number(self, number: float) -> Value:
        """Return a constant."""
        return constant(np.array(number, np.float32))

    def emit(self, op: str, inputs: Sequence[Value], shape: Dims | None, name: str, **attrs: object) -> Value:
        """Add a TensorFlow operator on real numbers and return its result."""
        return self.function.emit(op, inputs, (_FLOAT, shape), name, **attrs)

    def _taken_apart(self, value: Value) -> Parts:
        if value.data is not None:
            im = constant(np.ascontiguousarray(value.data.imag), value.name)
            re = constant(np.ascontiguousarray(value.data.real), value.name)
            return Parts(re, im if im.data is not None and im.data.any() else None)
        return Parts(*(self.emit(op, [value], value.shape, value.name) for op in ("Real", "Imag")))


# Returns the results, as parts if they are complex.
Rule = Callable[[Splitter, Node], Sequence[Parts | Value]]


def split_complex(function: Function, rules: Mapping[str, Rule]) -> None:
    """Replace operators on complex numbers by operators on their parts.

    Raises ConversionError that names an operator without a rule.
    """
    nodes = [node for node in function.nodes if _is_complex(node)]
    if all(_is_native(node) for node in nodes):
        return
    splitter = Splitter(function)
    for node in nodes:
        _split(splitter, node, rules)
    function.outputs = [splitter.whole(value) for value in function.outputs]
    function.tidy()


def _split(splitter: Splitter, node: Node, rules: Mapping[str, Rule]) -> None:
    operands = [value for value in node.inputs if value is not None]
    if node.bodies:
        node.rewire([splitter.whole(value) for value in operands])
        return
    is_kept = node.op in _TRANSFORMS or node.op in ("Real", "Imag", "ComplexAbs")
    if is_kept and _is_native(node) and all(splitter.is_whole(value) for value in operands):
        return
    if node.op_name not in rules:
        raise ConversionError(f"no TFLite operator computes {node} of complex numbers: {_HINT}")
    for value, result in zip(node.outputs, rules[node.op_name](splitter, node), strict=True):
        if isinstance(result, Parts):
            splitter.set(value, result)
        else:
            splitter.function.replace(value, result)


_HINT = "write it with products, sums and tf.signal's transforms, or compute with real and imaginary parts"


def _is_complex(node: Node) -> bool:
    return any(value is not None and value.type == _COMPLEX for value in (*node.inputs, *node.outputs))


def _is_native(node: Node) -> bool:
    if node.op in _TRANSFORMS:
        lengths = node.input(1).data
        if lengths is None:
            return True
        *_, last = sizes = lengths.reshape(-1).tolist()
        return last > 1 and all(n > 0 and not n & (n - 1) for n in sizes)
    return node.op in _NATIVE
