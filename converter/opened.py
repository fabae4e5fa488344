"""Builds a model with open dimensions from two that were converted with different sizes.

Each difference between the two must follow from the sizes. Tensor shapes become open, and operators compute constants
that hold a size from their operands (-1 in RESHAPE and SLICE, the end of a dimension in STRIDED_SLICE, broadcasting in
arithmetic). Any other difference can't be kept open.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from litecl.converter.tensors import Tensors
from litecl.interpreter.errors import ConversionError
from litecl.interpreter.graph import ABSENT, Array, Model, Node, Subgraph, TensorSpec
from litecl.interpreter.op import ControlOp, Op
from litecl.interpreter.ops.binary import ADD, DIV, MUL, SUB
from litecl.interpreter.ops.broadcast_to import BROADCAST_TO
from litecl.interpreter.ops.concatenation import CONCATENATION, ConcatenationOptions
from litecl.interpreter.ops.fill import FILL
from litecl.interpreter.ops.gather import GATHER, GatherOptions
from litecl.interpreter.ops.reshape import RESHAPE
from litecl.interpreter.ops.shape import SHAPE, ShapeOptions
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.strided_slice import STRIDED_SLICE
from litecl.interpreter.schema import TensorType

_SHAPES: Mapping[Op | ControlOp, int] = {RESHAPE: 1, BROADCAST_TO: 1, FILL: 0, SLICE: 2}
"""The operands that are shapes."""

_FREE: Mapping[Op | ControlOp, Sequence[str]] = {RESHAPE: ("new_shape",)}  # options that repeat an operand


def opened(first: Model, second: Model) -> Model:
    """Return a model for all sizes. Raises ConversionError that names an operator which can't adapt."""
    if len(first.subgraphs) != len(second.subgraphs):
        raise ConversionError(_message("the model", "has other subgraphs"))
    pairs = zip(first.subgraphs, second.subgraphs, strict=True)
    return replace(first, subgraphs=tuple(_opened(a, b) for a, b in pairs))


def _opened(a: Subgraph, b: Subgraph) -> Subgraph:
    if [node.op for node in a.nodes] != [node.op for node in b.nodes]:
        raise ConversionError(_message("the model", "consists of other operators"))
    work = _Opening(a, b)
    for pair in zip(a.nodes, b.nodes, strict=True):
        work.add(_Pair(a, b, *pair))
    if [work.other.get(t) for t in a.outputs] != list(b.outputs):
        raise ConversionError(_message("the model", "has other outputs"))
    return replace(a, tensors=tuple(work.specs), nodes=tuple(work.nodes))


@dataclass(frozen=True, eq=False)
class _Pair:
    """The same node in both subgraphs."""

    a: Subgraph
    b: Subgraph
    node: Node
    other: Node

    def specs(self, position: int) -> tuple[TensorSpec, TensorSpec]:
        """Return an operand's specs in both models."""
        return self.a.tensors[self.node.inputs[position]], self.b.tensors[self.other.inputs[position]]

    def constants(self, position: int) -> tuple[Array, Array]:
        """Return a constant operand's data in both models."""
        a, b = self.specs(position)
        assert a.data is not None and b.data is not None
        return a.data, b.data

    def lengths(self, position: int, axis: int) -> list[int]:
        """Return an operand's size along an axis in both models."""
        return [spec.static_shape[axis] for spec in self.specs(position)]

    def changed(self) -> set[int]:
        """Return the positions of constants that differ."""
        present = [p for p, t in enumerate(self.node.inputs) if t != ABSENT and self.specs(p)[0].data is not None]
        return {p for p in present if not np.array_equal(*self.constants(p))}

    def error(self, how: str) -> ConversionError:
        """Return an error that names the node."""
        name = self.a.tensors[self.node.outputs[0]].name if self.node.outputs else ""
        return ConversionError(_message(f"{self.node.op.name} {name!r}", how))


class _Opening:
    """The tensors of the first subgraph, being opened. other: maps them to tensors of the second."""

    def __init__(self, a: Subgraph, b: Subgraph) -> None:
        self._a, self._b = a, b
        self.specs = Tensors(a.tensors)
        self.nodes: list[Node] = []
        self.other: dict[int, int] = {ABSENT: ABSENT}
        for pair in zip(a.inputs, b.inputs, strict=True):
            self._pair(*pair)

    def _pair(self, t: int, other: int) -> None:
        a, b = self._a.tensors[t], self._b.tensors[other]
        if a.type != b.type or a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
            raise ConversionError(_message(f"tensor {a.name!r}", "has another rank or type"))
        if a.shape != b.shape:
            signature = tuple(m if m == n else -1 for m, n in zip(a.shape, b.shape, strict=True))
            self.specs[t] = replace(a, shape_signature=signature)
        self.other[t] = other

    def add(self, pair: _Pair) -> None:
        """Add a node for all sizes, after the nodes that compute its shape."""
        node, free = pair.node, _FREE.get(pair.node.op, ())
        if _options(node, free) != _options(pair.other, free) or not self._reads_alike(pair):
            raise pair.error("has other options or operands")
        for outputs in zip(node.outputs, pair.other.outputs, strict=True):
            self._pair(*outputs)
        changed = pair.changed()
        opens = _OPENS.get(node.op)
        opening = opens(pair, changed) if changed and opens is not None else None
        if opening is not None:
            node = replace(opening[0], inputs=self._with_constants(node.inputs, opening[1]))
        elif changed:
            node = self._with_shape(pair, changed)
        self.nodes.append(node)

    def _with_shape(self, pair: _Pair, changed: set[int]) -> Node:
        """Return a node that reads a shape computed from input sizes. Raises ConversionError if that is impossible."""
        position = _SHAPES.get(pair.node.op)
        sizes = None if position is None or changed != {position} else self._sizes(pair, position)
        if sizes is None or position is None:
            raise pair.error("has other constants")
        inputs, options = list(pair.node.inputs), _options(pair.node, _FREE.get(pair.node.op, ()))
        inputs[position] = self._gathered(sizes, self.specs[inputs[position]].name)
        return replace(pair.node, inputs=tuple(inputs), options=options)

    def _sizes(self, pair: _Pair, position: int) -> list[int | tuple[int, int]] | None:
        """Return the elements of a shape: numbers, or (input, axis) pairs."""
        known = {
            pair_: (t, axis)
            for t, other in zip(self._a.inputs, self._b.inputs, strict=True)
            for axis, pair_ in enumerate(
                zip(*(g.tensors[u].static_shape for g, u in self._sides(t, other)), strict=True)
            )
        }
        elements: list[int | tuple[int, int]] = []
        for m, n in zip(*(data.tolist() for data in pair.constants(position)), strict=True):
            elements.append(m if m == n else known.get((m, n), -1))
        unknown = elements.count(-1)
        return elements if unknown == 0 or (unknown == 1 and pair.node.op is RESHAPE) else None

    def _sides(self, t: int, other: int) -> tuple[tuple[Subgraph, int], tuple[Subgraph, int]]:
        return (self._a, t), (self._b, other)

    def _gathered(self, sizes: Sequence[int | tuple[int, int]], name: str) -> int:
        """Add nodes that compute a tensor [rank] of the sizes."""
        numbers = [size for size in sizes if isinstance(size, int)]
        read = list(dict.fromkeys(size[0] for size in sizes if not isinstance(size, int)))
        parts, places, first = [], {}, 0
        for t in read:
            rank = len(self.specs[t].static_shape)
            parts.append(self._node_of(SHAPE, (t,), ShapeOptions(TensorType.INT32), rank, name))
            places.update({(t, axis): first + axis for axis in range(rank)})
            first += rank
        parts += [self._constant(np.array(numbers, np.int32), name)] if numbers else []
        whole = parts[0]
        if len(parts) > 1:
            whole = self._node_of(CONCATENATION, parts, ConcatenationOptions(axis=0), first + len(numbers), name)
        rest = iter(range(first, first + len(numbers)))
        order = [next(rest) if isinstance(size, int) else places[size] for size in sizes]
        return self._node_of(
            GATHER, (whole, self._constant(np.array(order, np.int32), name)), GatherOptions(), len(order), name
        )

    def _node_of(self, op: Op, inputs: Sequence[int], options: Any, length: int, name: str) -> int:
        result = self._push(TensorSpec(TensorType.INT32, (length,), name))
        self.nodes.append(self.specs.versioned(Node(op, tuple(inputs), (result,), options)))
        return result

    def _constant(self, data: Array, name: str) -> int:
        return self._push(TensorSpec(TensorType.INT32, data.shape, name, data))

    def _push(self, spec: TensorSpec) -> int:
        return self.specs.push(replace(spec, name=f"{spec.name}/open{len(self.specs)}"))

    def _reads_alike(self, pair: _Pair) -> bool:
        """Return whether both nodes read constants or corresponding tensors."""
        operands = zip(pair.node.inputs, pair.other.inputs, strict=False)
        return len(pair.node.inputs) == len(pair.other.inputs) and all(
            self.other[t] == other
            if t in self.other
            else self._a.tensors[t].data is not None and other != ABSENT and self._b.tensors[other].data is not None
            for t, other in operands
        )

    def _with_constants(self, inputs: Sequence[int], constants: Mapping[int, Array]) -> tuple[int, ...]:
        """Return operands with new constants; the old ones stay, since other nodes may read them."""
        operands = list(inputs)
        for position, data in constants.items():
            operands[position] = self._push(replace(self.specs[operands[position]], shape=data.shape, data=data))
        return tuple(operands)


def _options(node: Node, free: Iterable[str]) -> Any:
    return replace(node.options, **dict.fromkeys(free, ())) if free else node.options


_Opened = tuple[Node, Mapping[int, Array]] | None


def _reshape(pair: _Pair, changed: set[int]) -> _Opened:
    """Return a RESHAPE with -1 for the size that differs."""
    before, after = pair.constants(1)
    shape = np.where(before == after, before, -1).astype(np.int32)
    if changed != {1} or np.count_nonzero(shape == -1) != 1:
        return None
    return replace(pair.node, options=replace(pair.node.options, new_shape=tuple(shape.tolist()))), {1: shape}


def _slice(pair: _Pair, changed: set[int]) -> _Opened:
    """Return a SLICE that reaches to the end of dimensions whose sizes differ."""
    if changed != {2} or pair.specs(1)[0].data is None:
        return None
    begins, sizes = pair.constants(1), pair.constants(2)
    size = np.array(sizes[0])
    for axis in np.flatnonzero(sizes[0] != sizes[1]).tolist():
        if [b[axis] + s[axis] for b, s in zip(begins, sizes, strict=True)] != pair.lengths(0, axis):
            return None
        size[axis] = -1
    return pair.node, {2: size}


def _strided_slice(pair: _Pair, changed: set[int]) -> _Opened:
    """Return a STRIDED_SLICE without end in dimensions whose ends differ."""
    options = pair.node.options
    if changed != {2} or options.ellipsis_mask or options.new_axis_mask or pair.specs(3)[0].data is None:
        return None
    ends, steps = pair.constants(2), pair.constants(3)[0]
    end, mask = np.array(ends[0]), options.end_mask
    for axis in np.flatnonzero(ends[0] != ends[1]).tolist():
        if [e[axis] for e in ends] != pair.lengths(0, axis) or steps[axis] < 0:
            return None
        end[axis], mask = 0, mask | 1 << axis
    return replace(pair.node, options=replace(options, end_mask=mask)), {2: end}


def _arithmetic(pair: _Pair, changed: set[int]) -> _Opened:
    """Return a node that broadcasts a constant along the dimension whose size differs."""
    (position, *more) = changed
    before, after = pair.constants(position)
    if more or before.ndim != after.ndim or pair.specs(1 - position)[0].data is not None:
        return None
    axes = [axis for axis, (m, n) in enumerate(zip(before.shape, after.shape, strict=True)) if m != n]
    if len(axes) != 1 or 0 in before.shape:
        return None
    row, last = np.take(before, [0], axis=axes[0]), axes[0] - before.ndim
    rest, result = pair.specs(1 - position)[0].static_shape, pair.a.tensors[pair.node.outputs[0]].static_shape
    fills = len(rest) >= -last and rest[last] == result[last]  # the other operand must span the whole dimension
    return (pair.node, {position: row}) if fills and (before == row).all() and (after == row).all() else None


_OPENS: Mapping[Op | ControlOp, Callable[[_Pair, set[int]], _Opened]] = {
    RESHAPE: _reshape,
    SLICE: _slice,
    STRIDED_SLICE: _strided_slice,
    **dict.fromkeys((ADD, SUB, MUL, DIV), _arithmetic),
}


def _message(subject: str, how: str) -> str:
    return f"{subject} {how} for other sizes of an open dimension: give its size by input_shapes"
