"""Fuses attention: two products with a softmax between them become one node, which never stores the scores."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litecl.delegate.kit.claims import integers
from litecl.delegate.matmul.attention import AttentionOptions
from litecl.delegate.ops import batch_matmul, softmax
from litecl.delegate.ops.attention import ATTENTION, JOINED_ATTENTION
from litecl.delegate.plan.fusion import Found, fuse, matching, without_unread
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.delegate.plan.masks import repeated
from litecl.interpreter.dataclass import dataclass
from litecl.interpreter.graph import Shape
from litecl.interpreter.match import AnyTensor, Behind, Pattern
from litecl.interpreter.ops.binary import ADD, DIV, MUL
from litecl.interpreter.ops.concatenation import CONCATENATION
from litecl.interpreter.ops.reshape import RESHAPE
from litecl.interpreter.ops.select import SELECT_V2
from litecl.interpreter.ops.slice import SLICE

(_PRODUCT,), _SOFTMAX = batch_matmul.CL_OPS, softmax.CL_OPS[0]
_SCORES = Behind((RESHAPE, ADD, MUL, DIV, SELECT_V2), Pattern(_PRODUCT, [AnyTensor("queries"), AnyTensor("keys")]))
_WEIGHTS = Behind((RESHAPE,), Pattern(_SOFTMAX, [_SCORES]))
_ATTENTION = Pattern(_PRODUCT, [_WEIGHTS, AnyTensor("values")])
_JOINED = Pattern(
    CONCATENATION,
    [Pattern(_PRODUCT, [AnyTensor("queries"), AnyTensor(keys)]) for keys in ("keys", "more keys")],
    name="joined",
)
_PARTED = Pattern(_SOFTMAX, [Behind((ADD, MUL, DIV, SELECT_V2), _JOINED)], name="weights")
_OF_TWO = Pattern(
    ADD,
    [
        Pattern(_PRODUCT, [Pattern(SLICE, [_PARTED, AnyTensor("begin"), ...]), AnyTensor("values")]),
        Pattern(
            _PRODUCT, [Pattern(SLICE, [AnyTensor("weights"), AnyTensor("more begin"), ...]), AnyTensor("more values")]
        ),
    ],
)


def attention(graph: RegionGraph) -> RegionGraph:
    """Fuse BATCH_MATMUL of floats, a scale, a mask (added or selecting), SOFTMAX and BATCH_MATMUL; also with keys and
    values in two tensors each.
    """
    rules = matching(_ATTENTION, _attention), matching(_OF_TWO, _of_two)
    return without_unread(graph, fuse(graph, *rules))


@dataclass(frozen=True)
class _Scores:
    """The scores after some nodes: ``tensor``, and what the nodes applied. seen: its dimensions before the last two.

    shown, fill: see ``AttentionOptions``.
    """

    tensor: int
    seen: Shape
    scale: float = 1.0
    mask: int | None = None
    shown: bool | None = None
    fill: float = 0.0

    def options(self, batch: Shape, *, keys_in_rows: bool, values_in_rows: bool) -> AttentionOptions:
        """Return the options of attention with these scores."""
        return AttentionOptions(
            self.scale, keys_in_rows, values_in_rows, batch, self.seen, shown=self.shown, fill=self.fill
        )

    def masks(self, graph: RegionGraph, reader: RegionNode) -> tuple[int, ...]:
        """Return the mask as further inputs."""
        return () if self.mask is None else (repeated(graph, self.mask, reader),)


def _attention(graph: RegionGraph, last: RegionNode, found: Found) -> RegionNode | None:
    """Return the node for two products and the nodes between them; None if no kernel computes exactly that."""
    *between, first = found.nodes[1:]
    scores = _scores(graph, first, between[::-1])
    operands = (found["queries"], found["keys"], found["values"])
    constant = any(graph.value(t) is not None for t in operands)  # it would be packed in advance
    if scores is None or constant or first.node.options.adj_x or last.node.options.adj_x:
        return None
    batch, in_rows = _shape(graph, first.outputs[0])[:-2], first.node.options.adj_y
    options = scores.options(batch, keys_in_rows=in_rows, values_in_rows=not last.node.options.adj_y)
    inputs = (*operands, *scores.masks(graph, last))
    return last.behind(first, *between, kernel=ATTENTION, inputs=inputs, options=options)


def _of_two(graph: RegionGraph, last: RegionNode, found: Found) -> RegionNode | None:
    """Return the node for attention with two tensors of keys, one softmax, and two of values; else None."""
    joined, softmax = (graph.producer(found[name]) for name in ("joined", "weights"))
    values = None if joined is None else _values(graph, found, joined)
    if joined is None or softmax is None or values is None or not last.is_plain:
        return None
    scores = _scores(graph, joined, found.nodes[found.nodes.index(softmax) : found.nodes.index(joined)][::-1])
    with_keys, others = [graph.producer(t) for t in joined.inputs], [n for n in found.nodes if graph.is_a(n, _PRODUCT)]
    in_rows = {node.node.options.adj_y for node in others if node in with_keys}
    in_columns = {node.node.options.adj_y for node in others if node not in with_keys}
    plain = all(node.is_plain and not node.node.options.adj_x for node in others)
    if scores is None or len(in_rows) != 1 or len(in_columns) != 1 or not plain:
        return None
    options = scores.options(scores.seen, keys_in_rows=in_rows.pop(), values_in_rows=not in_columns.pop())
    inputs = (found["queries"], found["keys"], found["more keys"], *values, *scores.masks(graph, last))
    return last.behind(*dict.fromkeys(found.nodes[1:]), kernel=JOINED_ATTENTION, inputs=inputs, options=options)


def _values(graph: RegionGraph, found: Found, joined: RegionNode) -> tuple[int, int] | None:
    """Return the values for the first and the second keys; None if weights are not sliced where scores are joined, or
    if operands broadcast.
    """
    *batch, rows, _ = whole = _shape(graph, found["joined"])
    first, second = (_shape(graph, t) for t in joined.inputs)
    by_start: dict[int, int] = {}
    for begin, values in (("begin", "values"), ("more begin", "more values")):
        start = graph.value(found[begin])
        if start is None or any(integers(start)[:-1]):
            return None
        by_start[integers(start)[-1]] = found[values]
    cuts = [node for node in found.nodes if graph.is_a(node, SLICE)]
    cut = {(integers(graph.value(node.inputs[1]))[-1], _shape(graph, node.outputs[0])) for node in cuts}
    along = joined.is_plain and joined.node.options.axis % len(whole) == len(whole) - 1
    operands = (found[name] for name in ("queries", "keys", "more keys", "values", "more values"))
    alike = all(_shape(graph, t)[:-2] == tuple(batch) for t in operands) and first[-2] == second[-2] == rows
    if not along or not alike or cut != {(0, first), (first[-1], second)}:
        return None
    return by_start[0], by_start[first[-1]]


def _scores(graph: RegionGraph, first: RegionNode, nodes: Sequence[RegionNode]) -> _Scores | None:
    """Return the scores after a sequence of nodes that follows a product; None if a node is unsupported."""
    batch = _shape(graph, first.outputs[0])[:-2]
    scores: _Scores | None = _Scores(first.outputs[0], seen=batch)
    for node in nodes:
        scores = None if scores is None else _next(graph, scores, node, batch)
    return scores


def _next(graph: RegionGraph, scores: _Scores, node: RegionNode, batch: Shape) -> _Scores | None:
    before, after = _shape(graph, scores.tensor), _shape(graph, node.outputs[0])
    then, op = replace(scores, tensor=node.outputs[0]), node.node.op
    if op is RESHAPE:  # regroups products
        return replace(then, seen=after[:-2]) if len(after) > 1 and before[-2:] == after[-2:] else None
    if before != after or not node.is_plain:
        return None
    if node.cl_op is _SOFTMAX:
        return then if node.node.options.beta == 1 else None
    if scores.mask is not None:
        return None
    if op is SELECT_V2:
        return _chosen(graph, then, node, scores.tensor) if scores.seen == batch else None
    if len(set(node.inputs)) != 2:
        return None
    (other,) = set(node.inputs) - {scores.tensor}
    if op is ADD:  # the mask broadcasts to the scores
        return replace(then, mask=other) if scores.seen == batch else None
    number = graph.value(other)
    if number is None or number.size != 1 or (op is DIV and node.inputs[0] != scores.tensor):
        return None
    factor = float(number.reshape(()))
    return replace(then, scale=scores.scale * factor if op is MUL else scores.scale / factor)


def _chosen(graph: RegionGraph, then: _Scores, node: RegionNode, scores: int) -> _Scores | None:
    """Return the scores after a node that replaces some of them by one number; else None."""
    condition, *choices = node.inputs
    if choices.count(scores) != 1 or condition == scores:
        return None
    shown = choices[0] == scores
    number = graph.value(choices[shown])
    if number is None or not number.size or np.any(number != number.flat[0]):
        return None
    return replace(then, mask=condition, shown=shown, fill=float(number.flat[0]))


def _shape(graph: RegionGraph, tensor: int) -> Shape:
    return graph.specs[tensor].static_shape
