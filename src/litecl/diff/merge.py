"""Matches nodes that are fused, split or replaced in the other graph."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from litecl.diff.facts import Facts, changes_type
from litecl.diff.pair import Pair
from litecl.diff.values import error
from litecl.interpreter.graph import Array

Values = Mapping[int, Array]


@dataclass(frozen=True)
class Merged:
    """Groups of nodes of both graphs that compute the same but don't match one to one. results: the tensors of both
    graphs that correspond, if any.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    results: tuple[int, int] | None = None


@dataclass(frozen=True)
class _Part:
    """Connected nodes without a match in the other graph. sources: pairs that compute their operands. readers: pairs
    that read their results. ends: the graph outputs among their results. result: the tensor that others read, if only
    one.
    """

    nodes: tuple[int, ...]
    sources: frozenset[Pair]
    readers: frozenset[Pair]
    ends: frozenset[int]
    result: int | None


def merged(a: Facts, b: Facts, pairs: Sequence[Pair], values: Sequence[Values]) -> list[Merged]:
    """Match nodes without a pair to nodes of the other graph.

    Nodes of both graphs between the same pairs replace each other. Others join the pair before or after them if that
    brings its results closer together, such as a RELU that the other graph fuses into a convolution.
    """
    parts = [_parts(of, pairs, side) for side, of in enumerate((a, b))]
    groups, left = _replacing(*parts)
    for side, own in enumerate(left):
        groups += [whole for part in own if (whole := _absorbed((a, b), part, side, values)) is not None]
    return groups


def _parts(of: Facts, pairs: Sequence[Pair], side: int) -> list[_Part]:
    pair_of = {pair[side]: pair for pair in pairs}
    left = [i for i, node in enumerate(of.graph.nodes) if i not in pair_of and not changes_type(node)]
    return [_part(of, nodes, pair_of) for nodes in _connected(of, left)]


def _connected(of: Facts, left: Sequence[int]) -> Iterator[tuple[int, ...]]:
    rest = dict.fromkeys(left)
    while rest:
        first = next(iter(rest))
        del rest[first]
        group, waiting = [first], [first]
        while waiting:
            near = {*_sources(of, at := waiting.pop()), *_readers(of, at)} & {*rest}
            for other in near:
                del rest[other]
            group += near
            waiting += near
        yield tuple(sorted(group))


def _sources(of: Facts, node: int) -> set[int]:
    producers = (of.producer(t) for t in of.graph.nodes[node].inputs if t >= 0)
    return {result[0] for result in producers if result is not None}


def _readers(of: Facts, node: int) -> set[int]:
    return {reader for t in of.graph.nodes[node].outputs for reader, _ in of.readers.get(t, ())}


def _part(of: Facts, nodes: tuple[int, ...], pair_of: Mapping[int, Pair]) -> _Part:
    outward = [
        t
        for i in nodes
        for t in of.graph.nodes[i].outputs
        if t in of.ends or any(reader not in nodes for reader, _ in of.readers.get(t, ()))
    ]
    sources = {pair_of[n] for i in nodes for n in _sources(of, i) if n in pair_of}
    readers = {pair_of[n] for i in nodes for n in _readers(of, i) if n in pair_of}
    ends = {of.ends[t] for t in outward if t in of.ends}
    result = outward[0] if len(outward) == 1 else None
    return _Part(nodes, frozenset(sources), frozenset(readers), frozenset(ends), result)


def _replacing(of_a: Sequence[_Part], of_b: Sequence[_Part]) -> tuple[list[Merged], list[list[_Part]]]:
    """Match parts of both graphs between the same pairs; return those and the parts left over."""
    groups, left_a, left_b = [], [], [*of_b]
    for part in of_a:
        other = next((b for b in left_b if _between_the_same(part, b)), None)
        if other is None:
            left_a.append(part)
            continue
        left_b.remove(other)
        results = None if part.result is None or other.result is None else (part.result, other.result)
        groups.append(Merged(part.nodes, other.nodes, results))
    return groups, [left_a, left_b]


def _between_the_same(a: _Part, b: _Part) -> bool:
    behind = (a.readers, a.ends) == (b.readers, b.ends) and bool(a.readers or a.ends)
    return behind or (a.sources == b.sources and bool(a.sources) and not (a.readers ^ b.readers) and a.ends == b.ends)


def _absorbed(graphs: tuple[Facts, Facts], part: _Part, side: int, values: Sequence[Values]) -> Merged | None:
    """Join a part to the pair whose node in the other graph does the part's work too; None if there is none."""
    for pair in part.sources:
        own, other = (graphs[s].graph.nodes[pair[s]].outputs[0] for s in (side, 1 - side))
        if part.result is not None and _apart(part.result, other, side, values) < _apart(own, other, side, values):
            results = (part.result, other) if side == 0 else (other, part.result)
            return _with(part, pair, side, results)
    for pair in part.readers:
        nodes = [graphs[s].graph.nodes[pair[s]] for s in (side, 1 - side)]
        own, other = (node.outputs[0] for node in nodes)
        if nodes[0].options != nodes[1].options and _apart(own, other, side, values) < 1:
            return _with(part, pair, side, (own, other) if side == 0 else (other, own))
    return None


def _with(part: _Part, pair: Pair, side: int, results: tuple[int, int]) -> Merged:
    nodes = [(pair[0],), (pair[1],)]
    nodes[side] = tuple(sorted((*part.nodes, pair[side])))  # type: ignore[assignment]
    return Merged(nodes[0], nodes[1], results)


def _apart(own: int, other: int, side: int, values: Sequence[Values]) -> float:
    return error(values[side].get(own), values[1 - side].get(other))
