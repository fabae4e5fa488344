"""Fuses layer norms and RMS norms: the nodes that normalise rows become one node, layer norms on a GPU only.

Files have them in many forms, such as ``(x - m) r``, ``x r + (beta - m r)`` or ``x r + (-m r + beta)``. So the pass
tracks nodes' results as linear combinations of x, the mean m, and these times the inverse deviation r. In an RMS norm,
r is the inverse root of the mean of squares, and there is no m.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from heapq import heappop, heappush

import numpy as np

from litecl.delegate.cl_op import ClOp
from litecl.delegate.ops.layer_norm import LAYER_NORM, RMS_NORM, LayerNormOptions
from litecl.delegate.plan.fusion import fuse, may_be_one
from litecl.delegate.plan.graph import NONE, RegionGraph, RegionNode
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Array
from litecl.interpreter.ops import binary, unary
from litecl.interpreter.ops.reduce import MEAN
from litecl.interpreter.ops.reshape import EXPAND_DIMS, RESHAPE
from litecl.interpreter.schema import TensorType

_Sum = Mapping[str, Array]
"""The coefficients of x, m, r, xr, mr and 1: one per element of a row, or one for all."""

_ZERO, _ONE = np.zeros(1, np.float32), np.ones(1, np.float32)
_X, _M, _SQUARES, _VARIANCE, _SHIFTED, _ROOT = ({name: _ONE} for name in ("x", "m", "d2", "v", "v+", "1/r"))
_TIMES_R = {"x": "xr", "m": "mr", "1": "r"}


def layer_norms(graph: RegionGraph) -> RegionGraph:
    """Fuse the nodes of layer norms, from the mean to the result, and those of RMS norms."""
    return fuse(graph, _norm, _rms_norm)


def rms_norms(graph: RegionGraph) -> RegionGraph:
    """Fuse the nodes of RMS norms, from the mean of squares to the result."""
    return fuse(graph, _rms_norm)


@dataclass
class _Known:
    """The known tensors of a candidate norm of x. sums: their values. kernel: the norm's. flat: tensors with a number
    per row, but no last dimension of 1. epsilon: the addend of the variance.
    """

    x: int
    sums: dict[int, _Sum]
    kernel: ClOp = LAYER_NORM
    flat: set[int] = field(default_factory=set)
    epsilon: float | None = None


def _norm(graph: RegionGraph, mean: RegionNode) -> RegionNode | None:
    """Return the node for the layer norm that begins with a mean; None if none does."""
    if not _is_mean(graph, mean):
        return None
    x, m = mean.inputs[0], mean.outputs[0]
    return _followed(graph, _Known(x, {x: _X, m: _M}), mean)


def _rms_norm(graph: RegionGraph, mean: RegionNode) -> RegionNode | None:
    """Return the node for the RMS norm that begins with a mean of squares; None if none does."""
    squares = graph.producer(mean.inputs[0]) if graph.is_a(mean, MEAN) else None
    x = None if squares is None else _squared_by(graph, squares)
    columns = _is_mean(graph, mean)
    if squares is None or x is None or not (columns or _is_flat_mean(graph, mean)):
        return None
    m = mean.outputs[0]
    sums: dict[int, _Sum] = {x: _X, squares.outputs[0]: _SQUARES, m: _VARIANCE}
    return _followed(graph, _Known(x, sums, RMS_NORM, set() if columns else {m}), mean)


def _squared_by(graph: RegionGraph, node: RegionNode) -> int | None:
    """Return the tensor that a node squares; None if it computes anything else."""
    op, alone = node.node.op, node.cl_op is not None and node.is_plain
    square = op is unary.SQUARE or (op is binary.MUL and node.inputs[0] == node.inputs[1])
    return node.inputs[0] if alone and square else None


def _followed(graph: RegionGraph, known: _Known, mean: RegionNode) -> RegionNode | None:
    """Return the node for the longest norm that begins with a mean; None if none does."""
    if graph.specs[known.x].type != TensorType.FLOAT32:
        return None
    best = None
    queue: list[tuple[int, RegionNode]] = []
    seen: set[int] = set()
    reached = [mean.outputs[0]]
    while True:
        for reader in (node for t in reached for node in graph.consumers(t)):
            if reader.at not in seen:
                seen.add(reader.at)
                heappush(queue, (reader.at, reader))
        if not queue:
            return best
        _, node = heappop(queue)
        total = _total(graph, known, node)
        reached = [] if total is None else [node.outputs[0]]
        if total is not None:
            known.sums[node.outputs[0]] = total
            best = _whole(graph, known, node) or best


def _is_mean(graph: RegionGraph, node: RegionNode) -> bool:
    """Return whether a node computes the means of rows and keeps the last dimension, as 1."""
    if not graph.is_a(node, MEAN):
        return False
    before, after = (graph.specs[t].static_shape for t in (node.inputs[0], node.outputs[0]))
    return len(before) > 1 and before[-1] > 1 and after == (*before[:-1], 1)


def _is_flat_mean(graph: RegionGraph, node: RegionNode) -> bool:
    """Return whether a node computes the means of rows and drops the last dimension."""
    before, after = (graph.specs[t].static_shape for t in (node.inputs[0], node.outputs[0]))
    axes = graph.value(node.inputs[1])
    last = axes is not None and axes.size == 1 and int(axes.flat[0]) in (-1, len(before) - 1)
    return last and len(before) > 1 and before[-1] > 1 and after == before[:-1]


def _total(graph: RegionGraph, known: _Known, node: RegionNode) -> _Sum | None:
    """Return a node's result as a sum; None if it can't be expressed."""
    if node.node.op in (RESHAPE, EXPAND_DIMS):
        return _as_columns(graph, known, node)
    if not known.flat.isdisjoint(node.inputs):
        return _of_rows(graph, known, node)
    return _of_any(graph, known, node)


def _as_columns(graph: RegionGraph, known: _Known, node: RegionNode) -> _Sum | None:
    """Return the sum of a flat tensor that a node gives a last dimension of 1; else None."""
    given, shape = node.inputs[0], graph.specs[node.outputs[0]].static_shape
    columns = shape == (*graph.specs[known.x].static_shape[:-1], 1)
    return known.sums[given] if given in known.flat and columns else None


def _of_rows(graph: RegionGraph, known: _Known, node: RegionNode) -> _Sum | None:
    """Return a node's result from flat tensors and constant scalars; mark it flat too."""
    others = [graph.value(t) for t in node.inputs if t not in known.flat]
    if any(number is None or number.size != 1 or number.ndim > 1 for number in others):
        return None
    total = _of_any(graph, known, node)
    if total is not None:
        known.flat.add(node.outputs[0])
    return total


def _of_any(graph: RegionGraph, known: _Known, node: RegionNode) -> _Sum | None:
    if node.node.op is MEAN:
        return _VARIANCE if known.sums.get(node.inputs[0]) is _SQUARES and _is_mean(graph, node) else None
    rule = _RULES.get(node.node.op)
    given = [known.sums.get(t) or _constant(graph, t) for t in node.inputs]
    if rule is None or node.cl_op is None or any(one is None for one in given):
        return None
    if given[0] is _VARIANCE or given[-1] is _VARIANCE:
        return _shifted(known, node, [one for one in given if one is not None])
    return rule(*given) if node.activation == NONE else None


def _shifted(known: _Known, node: RegionNode, given: Sequence[_Sum]) -> _Sum | None:
    """Return the variance plus epsilon, if a node computes that; else None."""
    numbers = [one["1"] for one in given if [*one] == ["1"]]
    alone = known.epsilon is None and len(numbers) == 1 and numbers[0].size == 1
    if node.node.op is not binary.ADD or node.activation != NONE or not alone:
        return None
    known.epsilon = float(numbers[0][0])
    return _SHIFTED


def _constant(graph: RegionGraph, tensor: int) -> _Sum | None:
    """Return a constant that is the same for every row as a sum; else None."""
    value = None if tensor < 0 else graph.value(tensor)
    if value is None or value.dtype != np.float32 or value.size != (value.shape[-1] if value.ndim else 1):
        return None
    return {"1": value.reshape(-1)}


def _plus(a: _Sum, b: _Sum) -> _Sum | None:
    if not _is_linear(a, b):
        return None
    return {name: a.get(name, _ZERO) + b.get(name, _ZERO) for name in {**a, **b}}


def _minus(a: _Sum, b: _Sum) -> _Sum | None:
    return _plus(a, {name: -value for name, value in b.items()})


def _times(a: _Sum, b: _Sum) -> _Sum | None:
    """Multiply if one factor is a constant or a multiple of the inverse deviation; else return None."""
    if not _is_linear(a, b):
        return None
    for factor, other in ((a, b), (b, a)):
        if [*factor] == ["1"]:
            return {name: value * factor["1"] for name, value in other.items()}
        if [*factor] == ["r"] and {*other} <= {*_TIMES_R}:
            return {_TIMES_R[name]: value * factor["r"] for name, value in other.items()}
    return None


def _over(a: _Sum, b: _Sum) -> _Sum | None:
    return _times(a, {"r": _ONE}) if b is _ROOT else None


def _is_linear(*sums: _Sum) -> bool:
    return all({*one} <= {*_TIMES_R, *_TIMES_R.values()} for one in sums)


def _squared(a: _Sum, b: _Sum) -> _Sum | None:
    """Return the squares of a difference if it is x minus the mean, or the reverse; else None."""
    difference = _minus(a, b)
    if difference is None or {*difference} != {"x", "m"} or any(value.size > 1 for value in difference.values()):
        return None
    factors = {float(difference["x"][0]), -float(difference["m"][0])}
    return _SQUARES if factors in ({1.0}, {-1.0}) else None


_RULES: Mapping[object, Callable[..., _Sum | None]] = {
    binary.ADD: _plus,
    binary.SUB: _minus,
    binary.MUL: lambda a, b: _squared(a, {}) if a is b else _times(a, b),
    binary.DIV: _over,
    binary.SQUARED_DIFFERENCE: _squared,
    unary.NEG: lambda a: _minus({}, a),
    unary.SQUARE: lambda a: _squared(a, {}),
    unary.RSQRT: lambda a: {"r": _ONE} if a is _SHIFTED else None,
    unary.SQRT: lambda a: _ROOT if a is _SHIFTED else None,
}


def _whole(graph: RegionGraph, known: _Known, last: RegionNode) -> RegionNode | None:
    """Return the node for the norm that ends with ``last``; None if it is no norm or others read tensors within."""
    x, centred = known.x, known.kernel is LAYER_NORM
    total, shape = known.sums[last.outputs[0]], graph.specs[last.outputs[0]].static_shape
    least = {"xr", "mr"} if centred else {"xr"}
    if not least <= {*total} <= {*least, "1"} or shape != graph.specs[x].static_shape:
        return None
    gamma, beta = (np.broadcast_to(total.get(name, _ZERO), shape[-1:]) for name in ("xr", "1"))
    if centred and not np.array_equal(gamma, np.broadcast_to(-total["mr"], shape[-1:])):
        return None
    assert known.epsilon is not None, "an inverse deviation that no variance was shifted for"
    numbers = (np.ascontiguousarray(a, np.float32) for a in (gamma, beta))
    options = LayerNormOptions(known.epsilon, *numbers)
    whole = last.behind(*_parts(graph, known, last), kernel=known.kernel, inputs=(x,), options=options)
    return whole if may_be_one(graph, whole) else None


def _parts(graph: RegionGraph, known: _Known, last: RegionNode) -> Sequence[RegionNode]:
    """Return the nodes that ``last`` depends on, back to x."""
    parts: dict[int, RegionNode] = {}
    open_ = [last]
    while open_:
        for tensor in open_.pop().inputs:
            part = graph.producer(tensor) if tensor in known.sums and tensor != known.x else None
            if part is not None and part.at not in parts:
                parts[part.at] = part
                open_.append(part)
    return [*parts.values()]
