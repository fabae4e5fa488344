"""Joins consecutive reshapes, transposes and reversals, and drops those that change nothing."""

from collections.abc import Callable

import numpy as np

from litecl.converter.graph import Function, Node, Operator, constant
from litecl.converter.records import Dims
from litecl.interpreter.ops.binary import ADD, DIV, MAXIMUM, MINIMUM, MUL, SUB
from litecl.interpreter.ops.reshape import RESHAPE, ReshapeOptions
from litecl.interpreter.ops.reverse import REVERSE_V2
from litecl.interpreter.ops.transpose import TRANSPOSE


def join_reshapes(function: Function) -> bool:
    """Apply the rules below; return whether one changed something."""
    changed = False
    for node in list(function.nodes):
        rule = _RULES.get(node.op)
        changed |= rule is not None and bool(node.inputs) and rule(function, node)
    function.tidy()
    return changed


def _reshape(function: Function, node: Node) -> bool:
    x, result = node.input(0), node.output
    if _certainly_equal(x.shape, result.shape):
        function.replace_node(node, [x])
        return True
    before = x.producer
    if before is not None and before.op is RESHAPE and node.input(1).data is not None:
        node.rewire([before.input(0), *node.inputs[1:]])
        return True
    return False


def _transpose(function: Function, node: Node) -> bool:
    x, order = node.input(0), node.input(1).data
    if order is None:
        return False
    if order.tolist() == sorted(order.tolist()):
        function.replace_node(node, [x])
        return True
    before = x.producer
    if before is not None and before.op is TRANSPOSE and before.input(1).data is not None:
        joined = before.input(1).data[order]  # type: ignore[index]
        node.rewire([before.input(0), constant(joined.astype(np.int32), node.input(1).name)])
        return True
    if _moves_only_ones(x.shape, order.tolist()) and node.output.shape is not None:
        target = tuple(-1 if d is None else d for d in node.output.shape)
        operands = [x, constant(np.array(target, np.int32), node.input(1).name)]
        node.become(RESHAPE, operands, ReshapeOptions(target))
        return True
    return False


def _broadcast(function: Function, node: Node) -> bool:
    """Remove a RESHAPE that only prepends ones to an operand's shape, which broadcasting does anyway."""
    for value, other in (node.inputs, node.inputs[::-1]):
        reshape = None if value is None else value.producer
        if value is None or other is None or reshape is None or reshape.op is not RESHAPE:
            continue
        x, shape = reshape.input(0), value.static_shape
        fits = shape is not None and x.static_shape == _stripped(shape) and (other.rank or 0) >= len(shape)
        if fits and value is not other:
            node.rewire([x if operand is value else operand for operand in node.inputs])
            return True
    return False


def _stripped(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without leading ones."""
    return shape[next((i for i, size in enumerate(shape) if size != 1), len(shape)) :]


def _reverse(function: Function, node: Node) -> bool:
    """Remove two consecutive reversals."""
    before, axes = node.input(0).producer, node.input(1).data
    if before is None or before.op is not REVERSE_V2 or axes is None or before.input(1).data is None:
        return False
    if not np.array_equal(axes, before.input(1).data):  # type: ignore[arg-type]
        return False
    function.replace_node(node, [before.input(0)])
    return True


def _moves_only_ones(shape: Dims | None, order: list[int]) -> bool:
    """Return whether dimensions other than 1 keep their order, so that no element moves."""
    if shape is None or shape.count(None) > 1:
        return False
    moved = [axis for axis in order if shape[axis] != 1]
    return moved == sorted(moved)


def _certainly_equal(a: Dims | None, b: Dims | None) -> bool:
    """Return whether two shapes of equal size are equal: they agree, and at most one dimension is unknown."""
    return a is not None and a == b and a.count(None) <= 1


_RULES: dict[Operator, Callable[[Function, Node], bool]] = {
    RESHAPE: _reshape,
    TRANSPOSE: _transpose,
    REVERSE_V2: _reverse,
    **dict.fromkeys((ADD, SUB, MUL, DIV, MAXIMUM, MINIMUM), _broadcast),
}
