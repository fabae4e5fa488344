"""Computes now what does not depend on the model's inputs."""

from collections.abc import Callable, Sequence

import numpy as np

from litecl.converter.graph import Function, Node, Value, constant
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import Array

Evaluate = Callable[[Node, Sequence[Array]], list[Array]]

# Results far larger than what they are made of (a Fill, a Tile) are left to be computed when the model runs.
_LARGE_BYTES = 1 << 16
_GROWTH = 8
_NEVER_PREFIXES = ("Random", "Stateless", "Stateful", "TensorList", "TensorArray", "Assign", "Var", "Print", "Assert")


def fold_constants(function: Function, evaluate: Evaluate) -> None:
    """Replaces the results of operators on constants by constants."""
    for node in function.nodes:
        known = _constants(node)
        if known is None or not isinstance(node.op, str) or node.op.startswith(_NEVER_PREFIXES):
            continue
        if _too_large(node, known):
            continue
        try:
            results = evaluate(node, known)
        except Exception as error:
            raise ConversionError(f"{node} fails on its constant operands: {error}") from error
        values = [constant(np.asarray(result), value.name) for result, value in zip(results, node.outputs, strict=True)]
        function.replace_node(node, values)
    function.tidy()


def _constants(node: Node) -> list[Array] | None:
    """The operands' values, if there are operands and all are constants that numpy can hold."""
    values: list[Array] = []
    for value in node.inputs:
        if value is None or value.data is None:
            return None
        values.append(value.data)
    return values or None


def _too_large(node: Node, operands: Sequence[Array]) -> bool:
    size = sum(_size_bytes(value) for value in node.outputs)
    return size > _LARGE_BYTES and size > _GROWTH * sum(operand.nbytes for operand in operands)


def _size_bytes(value: Value) -> int:
    shape = value.static_shape
    return 0 if shape is None else int(np.prod(shape, dtype=np.int64)) * value.type.dtype.itemsize
