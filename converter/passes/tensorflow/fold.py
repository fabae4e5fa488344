"""Folds constants: computes whatever doesn't depend on the model's inputs."""

from collections.abc import Callable, Container, Sequence

import numpy as np

from litecl.converter.fake_quant import FAKE_QUANTS, grid_of
from litecl.converter.graph import Function, Node, Value, constant
from litecl.converter.records import Callee
from litecl.converter.traits import Effects
from litecl.interpreter.graph import Array
from litecl.interpreter.schema import TensorType

# Runs nodes that read only constants and each other, and returns the wanted results.
Evaluate = Callable[[Sequence[Node], Sequence[Value]], list[Array]]

# Results far larger than their operands (a Fill, a Tile) are left to run time.
_LARGE_BYTES = 1 << 16
_GROWTH = 8
# Tensors of these types can't be constants; numpy has no bfloat16.
_NOT_CONSTANT = (TensorType.RESOURCE, TensorType.VARIANT, TensorType.BFLOAT16)


def fold_constants(function: Function, evaluate: Evaluate) -> bool:
    """Replace the results of operators on constants by constants; return whether there were any."""
    nodes: dict[Node, None] = {}
    folded: set[Value] = set()
    for node in function.nodes:
        if _is_foldable(node, folded):
            nodes[node] = None
            folded.update(node.outputs)
    results = [value for node in nodes for value in node.outputs]
    wanted = [v for v in results if function.is_output(v) or any(_must_see(user, nodes) for user in v.users)]
    if not wanted:
        return False
    for value, data in zip(wanted, evaluate(list(nodes), wanted), strict=True):
        assert value.producer is not None
        function.replace(value, constant(data, value.name, grid_of(value.producer, data)))
    function.tidy()
    return True


def _must_see(user: Node, nodes: Container[Node]) -> bool:
    """Return whether a reader is not folded, or is a FakeQuant, whose range is kept with its result."""
    return user not in nodes or user.op in FAKE_QUANTS


def _is_foldable(node: Node, folded: set[Value]) -> bool:
    if not isinstance(node.op, str) or node.effects is not Effects.PURE or not node.inputs or not node.outputs:
        return False
    if node.bodies or any(isinstance(value, Callee) for value in node.attrs.values()):
        return False
    if any(value.type in _NOT_CONSTANT for value in (*node.inputs, *node.outputs) if value is not None):
        return False
    known = all(value is not None and (value.data is not None or value in folded) for value in node.inputs)
    return known and not _is_too_large(node)


def _is_too_large(node: Node) -> bool:
    size = sum(_size_bytes(value) for value in node.outputs)
    return size > _LARGE_BYTES and size > _GROWTH * sum(_size_bytes(v) for v in node.inputs if v is not None)


def _size_bytes(value: Value) -> int:
    shape = value.static_shape
    return 0 if shape is None else int(np.prod(shape, dtype=np.int64)) * value.type.dtype.itemsize
