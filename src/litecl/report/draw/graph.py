"""Draws a model's graph. The page's style colours nodes by where they ran or by their time."""

from collections.abc import Mapping, Sequence
from typing import Any

from litecl.report.draw import units
from litecl.report.draw.layout import LARGE, Layout, layout
from litecl.report.draw.svg import number, tag, text, titled

_MARGIN = 6.0
_MOST_LAUNCHES = 4  # per tooltip
_SHORT = {
    "DEPTHWISE_CONV_2D": "DEPTHWISE",
    "FULLY_CONNECTED": "DENSE",
    "AVERAGE_POOL_2D": "AVG_POOL",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "LSTM",
    "BIDIRECTIONAL_SEQUENCE_LSTM": "BI-LSTM",
    "CONCATENATION": "CONCAT",
}


def graph(nodes: Sequence[Mapping[str, Any]], most: float) -> str:
    """Draw a subgraph's nodes. most: the share of the costliest node of all subgraphs."""
    edges = edges_of(nodes)
    boxes = layout(len(nodes), edges)
    lines = [_line(boxes, a, b) for a, b in edges]
    parts = [_edge(kind, points) for kind, points in lines]
    parts += [_node(node, boxes, i, most or 1.0) for i, node in enumerate(nodes)]
    right = max([boxes.width, *(x for _, points in lines for x, _ in points)])
    width, height = right + 2 * _MARGIN, boxes.height + 2 * _MARGIN
    box = f"{number(-_MARGIN)} {number(-_MARGIN)} {number(width)} {number(height)}"
    return tag(
        "svg", "".join(parts), viewBox=box, width=width, height=height, role="img", aria_label="Graph of the model"
    )


def edges_of(nodes: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """Return pairs of writer and reader positions. A reader is paired with the latest writer of its tensor."""
    producers: dict[int, int] = {}
    edges: dict[tuple[int, int], None] = {}
    for i, node in enumerate(nodes):
        for tensor in node["inputs"]:
            if not tensor["constant"] and tensor["tensor"] in producers:
                edges[producers[tensor["tensor"]], i] = None
        producers |= {tensor["tensor"]: i for tensor in node["outputs"]}
    return [*edges]


def _line(boxes: Layout, a: int, b: int) -> tuple[str, Sequence[tuple[float, float]]]:
    """Return an edge's CSS class and its curve: start, two control points, end."""
    (x1, y1), (x2, y2) = boxes.corners[a], boxes.corners[b]
    w, h = boxes.box.width, boxes.box.height
    if boxes.columns[a] != boxes.columns[b]:
        turn = boxes.box.gap_x + 14
        start, end = (x1 + w, y1 + h / 2), (x2, y2 + h / 2)
        bends = (start[0] + turn, start[1]), (end[0] - turn, end[1])
        kind = "edge far"
    elif x1 == x2 and y2 - y1 > h + boxes.box.gap_y + 1:  # around the boxes in between
        turn = min(boxes.box.gap_x * 0.95 + 4, 6 + (y2 - y1) / 40)
        start, end = (x1 + w, y1 + h * 0.6), (x2 + w, y2 + h * 0.4)
        bends = (start[0] + turn, start[1]), (end[0] + turn, end[1])
        kind = "edge"
    else:
        turn = (y2 - y1 - h) / 2
        start, end = (x1 + w / 2, y1 + h), (x2 + w / 2, y2)
        bends = (start[0], start[1] + turn), (end[0], end[1] - turn)
        kind = "edge"
    return kind, (start, *bends, end)


def _edge(kind: str, points: Sequence[tuple[float, float]]) -> str:
    start, *rest = (f"{number(x)} {number(y)}" for x, y in points)
    return tag("path", d=f"M{start}C{' '.join(rest)}", class_=kind)


def _node(node: Mapping[str, Any], boxes: Layout, position: int, most: float) -> str:
    (x, y), box = boxes.corners[position], boxes.box
    large = box is LARGE
    words = [text(x + 8 if large else x + 5, y + (14.5 if large else 12.2), _name(node["op"], large), "op")]
    share = units.percent(node["share"]) if large and node["share"] >= 0.001 else ""
    if large and node["outputs"]:
        words.append(text(x + 8, y + 27, _fit(units.shape(node["outputs"][0]["shape"]), 14 if share else 20), "shape"))
    if share:
        words.append(text(x + box.width - 7, y + 27, share, "share", "end"))
    shape = tag("rect", x=x, y=y, width=box.width, height=box.height, rx=5 if large else 3)
    heat = f"--t:{node['share'] / most:.3f}"
    content = titled(tooltip(node)) + shape + "".join(words)
    kind = (
        f"node {node['where'].lower()}"
        + (" hot" if node["share"] / most > 0.55 else "")
        + (" into" if node["into"] else "")
    )
    subgraph, number_ = node["place"]
    return tag("g", content, class_=kind, style=heat, data_place=f"{subgraph}:{number_}")


def _name(op: str, large: bool) -> str:
    name = _SHORT.get(op, op)
    return _fit(name, 15 if large else 14)


def _fit(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


def tooltip(node: Mapping[str, Any]) -> str:
    """Return a node's tooltip: place, time, kernels and tensors."""
    subgraph, position = node["place"]
    where = node["where"] if node["region"] is None else f"region {node['region']}"
    lines = [f"{node['op']} (node {position}{f' of subgraph {subgraph}' if subgraph else ''}), {where}"]
    if node["ms"]:
        lines.append(f"{units.ms(node['ms'])}, {units.percent(node['share'])} of the time")
    lines += [node["reason"]] if node["reason"] else []
    lines += node["launched"][:_MOST_LAUNCHES] or ([f"kernel {', '.join(node['kernels'])}"] if node["kernels"] else [])
    lines += [f"part of the launch of node {node['into'][1]}"] if node["into"] else []
    for mark, tensors in (("→", node["outputs"]), ("←", [t for t in node["inputs"] if not t["constant"]])):
        lines += [f"{mark} {t['name'][-60:]} {t['type']} {units.shape(t['shape'])}" for t in tensors]
    constants = sum(t["size_bytes"] for t in node["inputs"] if t["constant"])
    return "\n".join([*lines, *([f"constants {units.size(constants)}"] if constants else [])])
