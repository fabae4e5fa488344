"""Matches the nodes of two graphs, whatever their numbers and names."""

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from difflib import SequenceMatcher

from litecl.diff.facts import Facts
from litecl.interpreter.graph import ABSENT

Pair = tuple[int, int]
_Key = Callable[[Facts, int], Hashable]


def pairs(a: Facts, b: Facts) -> list[Pair]:
    """Return matching nodes of both graphs, in the order of the first. A pair has one operator.

    Matches nodes with the same structure before and after them, told apart by constants and names. Then those with the
    same structure on one side or the same name, if unique, and neighbours of matched nodes. Of the rest, matching
    blocks in the sequences of operators and shapes.
    """
    matched: list[Pair] = []
    for key in (_whole_and_constants, _whole_and_name, _whole):
        matched += _agreeing(a, b, matched, key)
    for key in (_before_and_name, _before, _after_and_name, _after, _name):
        matched += _agreeing(a, b, matched, key, most=1)
        matched += _next_to(a, b, matched)
    for key in (_before, _after):
        matched += _agreeing(a, b, matched, key)
        matched += _next_to(a, b, matched)
    for key in (_shaped, _operator):
        matched += _in_sequence(a, b, matched, key)
    return sorted(matched)


def _rest(of: Facts, taken: Collection[int]) -> list[int]:
    return [i for i in range(len(of.graph.nodes)) if i not in taken]


def _by(of: Facts, taken: Collection[int], key: _Key) -> dict[Hashable, list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for i in _rest(of, taken):
        groups.setdefault((of.graph.nodes[i].op.name, key(of, i)), []).append(i)
    return groups


def _agreeing(a: Facts, b: Facts, done: Sequence[Pair], key: _Key, most: int | None = None) -> list[Pair]:
    """Pair nodes with equal keys in order, if both graphs have the same number of them, at most ``most``."""
    of_a, of_b = (_by(of, {pair[side] for pair in done}, key) for side, of in enumerate((a, b)))
    both = [(nodes, of_b[value]) for value, nodes in of_a.items() if value in of_b]
    return [pair for x, y in both if len(x) == len(y) <= (most or len(x)) for pair in zip(x, y, strict=True)]


def _next_to(a: Facts, b: Facts, done: Sequence[Pair]) -> list[Pair]:
    """Pair neighbours of pairs, of the same operator: producers of operands, and readers unique for their operator."""
    neighbours, waiting = [], [*done]
    taken = [{pair[side] for pair in done} for side in range(2)]
    while waiting:
        i, j = waiting.pop(0)
        for x, y in (*_sources(a, b, i, j), *_readers(a, b, i, j)):
            if x in taken[0] or y in taken[1] or a.graph.nodes[x].op.name != b.graph.nodes[y].op.name:
                continue
            taken[0].add(x)
            taken[1].add(y)
            neighbours.append((x, y))
            waiting.append((x, y))
    return neighbours


def _sources(a: Facts, b: Facts, i: int, j: int) -> list[Pair]:
    operands = zip(a.graph.nodes[i].inputs, b.graph.nodes[j].inputs, strict=False)
    producers = [(a.producer(s), b.producer(t)) for s, t in operands if ABSENT not in (s, t)]
    return [(s[0], t[0]) for s, t in producers if s is not None and t is not None and s[1] == t[1]]


def _readers(a: Facts, b: Facts, i: int, j: int) -> Iterator[Pair]:
    for s, t in zip(a.graph.nodes[i].outputs, b.graph.nodes[j].outputs, strict=False):
        of_a, of_b = _by_operator(a, s), _by_operator(b, t)
        for name, x in of_a.items():
            y = of_b.get(name, set())
            if len(x) == len(y) == 1:
                yield next(iter(x)), next(iter(y))


def _by_operator(of: Facts, tensor: int) -> dict[str, set[int]]:
    readers: dict[str, set[int]] = {}
    for reader, _ in of.readers.get(tensor, ()):
        readers.setdefault(of.graph.nodes[reader].op.name, set()).add(reader)
    return readers


def _in_sequence(a: Facts, b: Facts, done: Sequence[Pair], key: _Key) -> list[Pair]:
    rest = [_rest(of, {pair[side] for pair in done}) for side, of in enumerate((a, b))]
    keys = [[(of.graph.nodes[i].op.name, key(of, i)) for i in own] for of, own in zip((a, b), rest, strict=True)]
    blocks = SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_matching_blocks()
    return [(rest[0][block.a + k], rest[1][block.b + k]) for block in blocks for k in range(block.size)]


def _whole_and_constants(of: Facts, i: int) -> Hashable:
    return of.before[i], of.after[i], of.constants[i]


def _whole_and_name(of: Facts, i: int) -> Hashable:
    return of.before[i], of.after[i], of.name(i)


def _whole(of: Facts, i: int) -> Hashable:
    return of.before[i], of.after[i]


def _before_and_name(of: Facts, i: int) -> Hashable:
    return of.before[i], of.name(i)


def _before(of: Facts, i: int) -> Hashable:
    return of.before[i]


def _after_and_name(of: Facts, i: int) -> Hashable:
    return of.after[i], of.name(i)


def _after(of: Facts, i: int) -> Hashable:
    return of.after[i]


def _name(of: Facts, i: int) -> Hashable:
    return of.name(i) or ("", i, id(of))


def _shaped(of: Facts, i: int) -> Hashable:
    return tuple(of.graph.tensors[t].shape for t in of.graph.nodes[i].outputs)


def _operator(of: Facts, i: int) -> Hashable:
    return ""
