"""Lays out a graph's nodes in rows by depth, folded into columns like a newspaper."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ASPECT = 2.3  # target width over height
_PAGE = 1040  # page width, which graphs of large boxes try not to exceed
_MANY = 140  # above this many nodes, boxes are small
_WIDEST = 12  # boxes per row; longer rows wrap


@dataclass(frozen=True)
class Box:
    """The size of a node's box, and the gaps between boxes."""

    width: float
    height: float
    gap_x: float
    gap_y: float


LARGE, SMALL = Box(138, 34, 16, 16), Box(92, 17, 10, 9)


@dataclass(frozen=True)
class Layout:
    """Placed nodes. corners: their upper left corners. columns: their column numbers. width, height: of everything."""

    box: Box
    corners: Mapping[int, tuple[float, float]]
    columns: Mapping[int, int]
    width: float
    height: float


def layout(count: int, edges: Sequence[tuple[int, int]]) -> Layout:
    """Place nodes 0 to count - 1 of an acyclic graph."""
    box = LARGE if count <= _MANY else SMALL
    rows = _rows(count, edges)
    slots = _slots(rows, edges)
    lanes = 1 + max(slots.values(), default=0)
    step_x, step_y = box.width + box.gap_x, box.height + box.gap_y
    column_width = lanes * step_x + box.gap_x
    columns = max(1, round(math.sqrt(_ASPECT * len(rows) * step_y / column_width)))
    columns = min(columns, max(1, int(_PAGE / column_width))) if box is LARGE else columns
    each = math.ceil(len(rows) / columns) if rows else 1
    corners, column = {}, {}
    left = 0.0
    for number, start in enumerate(range(0, len(rows), each)):
        part = rows[start : start + each]
        nodes = [node for row in part for node in row]
        first, last = min(slots[n] for n in nodes), max(slots[n] for n in nodes)
        for y, row in enumerate(part):
            for node in row:
                corners[node] = left + (slots[node] - first) * step_x, y * step_y
                column[node] = number
        left += (last - first + 1) * step_x + box.gap_x
    return Layout(box, corners, column, max(left - 2 * box.gap_x, box.width), each * step_y - box.gap_y)


def _rows(count: int, edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return the nodes in rows by depth, each below all nodes that it reads."""
    before: dict[int, list[int]] = {}
    after: dict[int, list[int]] = {}
    for a, b in edges:
        before.setdefault(b, []).append(a)
        after.setdefault(a, []).append(b)
    waits = {node: len(before.get(node, ())) for node in range(count)}
    depth: dict[int, int] = {}
    ready = [node for node in range(count) if not waits[node]]
    while ready:
        node = ready.pop(0)
        depth[node] = 1 + max((depth[b] for b in before.get(node, ())), default=-1)
        for follower in after.get(node, ()):
            waits[follower] -= 1
            if not waits[follower]:
                ready.append(follower)
    rows: list[list[int]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
    for node in range(count):
        rows[depth.get(node, 0)].append(node)
    return [row[i : i + _WIDEST] for row in rows for i in range(0, len(row), _WIDEST)]


def _slots(rows: Sequence[Sequence[int]], edges: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Return each node's slot in its row: near the middle of the nodes that it reads, without overlaps."""
    before: dict[int, list[int]] = {}
    for a, b in edges:
        before.setdefault(b, []).append(a)
    slots: dict[int, int] = {}
    for row in rows:
        wanted = {n: _middle([slots[b] for b in before.get(n, ()) if b in slots]) for n in row}
        taken = -1
        for position, node in enumerate(sorted(row, key=lambda n: (wanted[n], n))):
            most = _WIDEST - (len(row) - position)
            slots[node] = taken = min(max(taken + 1, round(wanted[node])), most)
    return slots


def _middle(values: Sequence[int]) -> float:
    return sum(values) / len(values) if values else 0.0
