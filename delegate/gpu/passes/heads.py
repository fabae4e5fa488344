"""Fuses transpositions around attention, on a GPU: it accesses words in the layers' order, with heads side by side."""

from dataclasses import replace
from functools import partial

from litecl.delegate.kit.claims import integers
from litecl.delegate.matmul.attention import AttentionOptions
from litecl.delegate.ops.attention import ATTENTION
from litecl.delegate.plan.fusion import Found, Rule, fuse, matching
from litecl.delegate.plan.graph import RegionGraph, RegionNode
from litecl.interpreter.match import AnyTensor, Constant, Pattern
from litecl.interpreter.ops.transpose import TRANSPOSE

_QUERIES, _KEYS, _VALUES, _RESULT = range(4)
_TURNED = Pattern(TRANSPOSE, [AnyTensor("x"), Constant("turn")])


def heads(graph: RegionGraph) -> RegionGraph:
    """Fuse transpositions before and after attention that keep the elements of a word contiguous."""
    return fuse(graph, *(_operand(position) for position in (_QUERIES, _KEYS, _VALUES)), _result)


def _operand(position: int) -> Rule:
    """Return the rule that fuses an operand's transposition."""
    others = [AnyTensor(str(i)) for i in range(position)]
    return matching(Pattern(ATTENTION, [*others, _TURNED, ...]), partial(_read, position))


def _read(position: int, graph: RegionGraph, node: RegionNode, found: Found) -> RegionNode | None:
    turn = _turn(graph, found["turn"], _inner(node.node.options, position))
    inputs = (*node.inputs[:position], found["x"], *node.inputs[position + 1 :])
    options = _with_turn(node.node.options, position, turn)
    return None if options is None else node.behind(found.nodes[1], kernel=ATTENTION, inputs=inputs, options=options)


def _result(graph: RegionGraph, node: RegionNode) -> RegionNode | None:
    """Fuse the transposition of the result, if it is the only reader."""
    reader = graph.only_reader(node.outputs[0]) if node.cl_op is ATTENTION else None
    if reader is None or not graph.is_a(reader, TRANSPOSE):
        return None
    options = _with_turn(node.node.options, _RESULT, _turn(graph, reader.inputs[1], -1))
    return None if options is None else reader.behind(node, kernel=ATTENTION, inputs=node.inputs, options=options)


def _inner(options: AttentionOptions, position: int) -> int | None:
    """Return the dimension of an operand that must stay contiguous, a word's elements; None if unsupported."""
    values = -1 if options.values_in_rows else None
    return {_QUERIES: -1, _KEYS: -1 if options.keys_in_rows else -2, _VALUES: values}[position]


def _turn(graph: RegionGraph, permutation: int, inner: int | None) -> tuple[int, ...]:
    """Return a permutation if it moves the last dimension to ``inner``; else ()."""
    axes = graph.value(permutation)
    if axes is None or inner is None:
        return ()
    rank = axes.size
    turn = tuple(axis % rank for axis in integers(axes))
    return turn if rank > 2 and turn[inner] == rank - 1 else ()


def _with_turn(options: AttentionOptions, position: int, turn: tuple[int, ...]) -> AttentionOptions | None:
    """Set a permutation in the options; return None if it is empty or one is set already."""
    turns = [*options.turns]
    if not turn or turns[position]:
        return None
    turns[position] = turn
    return replace(options, turns=tuple(turns))
