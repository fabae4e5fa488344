"""Fuses rotary position embedding: the nodes that rotate the halves of rows by angles become one node."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litecl.delegate.kit.claims import integers
from litecl.delegate.ops.rope import MOST_DIMS, ROPE, RopeOptions
from litecl.delegate.plan.fusion import Found, fuse, matching
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.graph import Shape
from litecl.interpreter.match import AnyTensor, Behind, Constant, Pattern
from litecl.interpreter.op import Op
from litecl.interpreter.ops.binary import ADD, MUL, SUB
from litecl.interpreter.ops.cast import CAST
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.reshape import RESHAPE
from litecl.interpreter.ops.slice import SLICE
from litecl.interpreter.ops.split import SPLIT
from litecl.interpreter.ops.transpose import TRANSPOSE
from litecl.interpreter.ops.unary import COS, NEG, SIN
from litecl.interpreter.schema import TensorType

_FLOAT = TensorType.FLOAT32
_POSITIONS = (_FLOAT, TensorType.INT32, TensorType.INT64)


def _product(a: str, b: str) -> Pattern:
    return Pattern(MUL, [AnyTensor(a), AnyTensor(b)])


# (a + ib) (c + is), real and imaginary parts concatenated; and x c + (-b, a) s with the halves a and b of x.
_PARTS = Pattern(
    CONCATENATION,
    [Pattern(SUB, [_product("a", "c"), _product("b", "s")]), Pattern(ADD, [_product("b", "c"), _product("a", "s")])],
)
_NEGATIVES = (Pattern(NEG, [AnyTensor("b")]), Pattern(MUL, [AnyTensor("b"), Constant("minus")]))
_SUMS = tuple(
    Pattern(
        ADD, [_product("x", "c"), Pattern(MUL, [Pattern(CONCATENATION, [negative, AnyTensor("a")]), AnyTensor("s")])]
    )
    for negative in _NEGATIVES
)
_TURNED = Pattern(ROPE, [Pattern(TRANSPOSE, [AnyTensor("x"), Constant("turn")]), ...])
_RESHAPED = Pattern(ROPE, [Pattern(RESHAPE, [AnyTensor("x"), ...]), ...])
_ANGLES = Pattern(MUL, [Pattern(CAST, [AnyTensor("positions")]), Constant("frequencies")], name="angles")
_ANGLED = Pattern(
    ROPE,
    [
        AnyTensor("x"),
        Behind((RESHAPE,), Pattern(COS, [AnyTensor("angles")])),
        Behind((RESHAPE,), Pattern(SIN, [_ANGLES])),
    ],
)


def rope(graph: RegionGraph) -> RegionGraph:
    """Fuse rotations of halves of rows, with transpositions and reshapes around them, a scale after them, and cosines
    and sines that nothing else reads.
    """
    rotations = (matching(_PARTS, _of_parts), *(matching(pattern, _of_sum) for pattern in _SUMS))
    before = (matching(_TURNED, _turned_before), matching(_RESHAPED, _reshaped_before))
    around = (*before, _turned_after, _reshaped_after, _scaled, matching(_ANGLED, _angled))
    return fuse(graph, *rotations, *around)


def _of_parts(graph: RegionGraph, last: RegionNode, found: Found) -> RegionNode | None:
    """Return the node for a product of complex numbers, where one factor's parts are the halves of rows."""
    for names in ("abcs", "csab"):
        a, b, c, s = (found[name] for name in names)
        if (cuts := _cuts(graph, a, b)) is not None:
            return _rope(graph, last, [*found.nodes[1:], *cuts], (_cut(cuts[0]), c, s), 2)
    return None


def _of_sum(graph: RegionGraph, last: RegionNode, found: Found) -> RegionNode | None:
    """Return the node for rows times cosines plus rows with swapped halves, one negated, times sines."""
    minus = graph.value(found["minus"]) if "minus" in found else None
    cuts = _cuts(graph, found["a"], found["b"])
    if cuts is None or (minus is not None and np.any(minus != -1)):
        return None
    x = _cut(cuts[0])
    return _rope(graph, last, [*found.nodes[1:], *cuts], (x, found["c"], found["s"]), 1) if x == found["x"] else None


def _cut(node: RegionNode) -> int:
    """Return the tensor that a SPLIT or SLICE reads."""
    return node.inputs[1] if node.node.op is SPLIT else node.inputs[0]


def _cuts(graph: RegionGraph, a: int, b: int) -> Sequence[RegionNode] | None:
    """Return the nodes that split rows into halves ``a`` and ``b``; None if the tensors aren't such halves."""
    first, second = graph.producer(a), graph.producer(b)
    if first is None or second is None or not first.is_plain:
        return None
    if first is second and graph.is_a(first, SPLIT):
        axis, rank = graph.value(first.inputs[0]), len(graph.specs[a].static_shape)
        last = axis is not None and int(axis.flat[0]) in (-1, rank - 1)
        return (first,) if last and first.outputs == (a, b) else None
    if not (graph.is_a(first, SLICE) and graph.is_a(second, SLICE)) or first.inputs[0] != second.inputs[0]:
        return None
    *around, width = graph.specs[first.inputs[0]].static_shape
    half = (*around, width // 2)
    starts = [graph.value(node.inputs[1]) for node in (first, second)]
    expected = ([0] * len(half), [*[0] * len(around), width // 2])
    right = all(s is not None and [*integers(s)] == e for s, e in zip(starts, expected, strict=True))
    same = all(graph.specs[t].static_shape == half for t in (a, b))
    return (first, second) if right and same and width % 2 == 0 else None


def _rope(
    graph: RegionGraph, last: RegionNode, nodes: Sequence[RegionNode], operands: tuple[int, int, int], parts: int
) -> RegionNode | None:
    """Return the rotation of rows. operands: rows, cosines, sines. parts: of a row, which share cosines and sines."""
    shape, turns, sines = (graph.specs[t].static_shape for t in operands)
    (joined,) = (node for node in (last, *nodes) if graph.is_a(node, CONCATENATION))
    if joined.node.options.axis % len(shape) != len(shape) - 1 or len(shape) > MOST_DIMS:
        return None
    if sines != turns or not _broadcasts(turns, (*shape[:-1], shape[-1] // parts)):
        return None
    if graph.specs[last.outputs[0]].static_shape != shape or not all(node.is_plain for node in (last, *nodes)):
        return None
    if any(graph.specs[t].type != _FLOAT for t in operands):
        return None
    return last.behind(*dict.fromkeys(nodes), kernel=ROPE, inputs=operands, options=RopeOptions(shape, turns))


def _broadcasts(turns: Shape, rows: Shape) -> bool:
    """Return whether an array of full rows broadcasts to ``rows``."""
    pairs = zip(reversed(turns), reversed(rows), strict=False)
    return len(turns) <= len(rows) and turns[-1:] == rows[-1:] and all(a in (1, b) for a, b in pairs)


def _turned_before(graph: RegionGraph, node: RegionNode, found: Found) -> RegionNode | None:
    """Fuse the transposition of a rotation's rows."""
    o: RopeOptions = node.node.options
    turn = _turn(graph, found["turn"])
    if o.before or not turn or graph.specs[node.inputs[0]].static_shape != o.shape:
        return None
    inputs = (found["x"], *node.inputs[1:])
    return node.behind(found.nodes[1], kernel=ROPE, inputs=inputs, options=replace(o, before=turn))


def _reshaped_before(graph: RegionGraph, node: RegionNode, found: Found) -> RegionNode:
    """Fuse the reshaping of a rotation's rows, which moves no elements."""
    inputs = (found["x"], *node.inputs[1:])
    return node.behind(found.nodes[1], kernel=ROPE, inputs=inputs, options=node.node.options)


def _turned_after(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    """Fuse the transposition of a rotation's result, if it is the only reader."""
    reader = _reader(graph, node, TRANSPOSE)
    turn = () if reader is None else _turn(graph, reader.inputs[1])
    as_rows = graph.specs[node.outputs[0]].static_shape == node.node.options.shape if reader else False
    if reader is None or not turn or not as_rows or node.node.options.after:
        return None
    return reader.behind(node, kernel=ROPE, inputs=node.inputs, options=replace(node.node.options, after=turn))


def _reshaped_after(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    """Fuse the reshaping of a rotation's result, if it is the only reader."""
    reader = _reader(graph, node, RESHAPE)
    return None if reader is None else reader.behind(node, kernel=ROPE, inputs=node.inputs, options=node.node.options)


def _reader(graph: RegionGraph, node: RegionNode, op: Op) -> RegionNode | None:
    """Return the only reader of a rotation's result, if it has this operator."""
    reader = graph.only_reader(node.outputs[0]) if node.cl_op is ROPE else None
    return reader if reader is not None and graph.is_a(reader, op) and reader.is_plain else None


def _turn(graph: RegionGraph, permutation: int) -> Shape:
    """Return a permutation if it keeps the last dimension in place; else ()."""
    axes = graph.value(permutation)
    turn = () if axes is None else tuple(axis % axes.size for axis in integers(axes))
    return turn if turn and turn[-1] == len(turn) - 1 else ()


def _scaled(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    """Fuse the multiplication of a rotation's result by a scalar, if it is the only reader."""
    reader = _reader(graph, node, MUL)
    if reader is None or node.node.options.scale != 1:
        return None
    others = [graph.value(t) for t in reader.inputs if t != node.outputs[0]]
    same = graph.specs[reader.outputs[0]].static_shape == graph.specs[node.outputs[0]].static_shape
    if len(others) != 1 or others[0] is None or others[0].size != 1 or not same:
        return None
    options = replace(node.node.options, scale=float(others[0].flat[0]))
    return reader.behind(node, kernel=ROPE, inputs=node.inputs, options=options)


def _angled(graph: RegionGraph, node: RegionNode, found: Found) -> RegionNode | None:
    """Fuse the computation of cosines and sines from positions and frequencies."""
    o: RopeOptions = node.node.options
    positions, frequencies, angles = (found[name] for name in ("positions", "frequencies", "angles"))
    half, number = o.shape[-1] // 2, graph.specs[positions]
    cast, cosine = (next(n for n in found.nodes if graph.is_a(n, op)) for op in (CAST, COS))
    columns = graph.specs[cast.outputs[0]].static_shape
    alike = graph.specs[frequencies].size == half and graph.specs[angles].static_shape == (*columns[:-1], half)
    of_numbers = number.type in _POSITIONS and columns[-1:] == (1,) and graph.specs[cast.outputs[0]].type == _FLOAT
    reshaped = (graph.specs[n.outputs[0]].static_shape for n in found.nodes if graph.is_a(n, RESHAPE))
    plain = all(n.is_plain for n in found.nodes[1:]) and all(shape[-1:] == (half,) for shape in reshaped)
    if o.angles or o.turns[-1] != half or cosine.inputs[0] != angles or not (alike and of_numbers and plain):
        return None
    inputs = (node.inputs[0], positions, frequencies)
    return node.behind(*found.nodes[1:], kernel=ROPE, inputs=inputs, options=replace(o, angles=True))
