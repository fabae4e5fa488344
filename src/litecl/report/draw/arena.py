"""Draws a region's arena: the placement and lifetime of its blocks."""

from collections.abc import Mapping
from typing import Any

from litecl.report.draw import units
from litecl.report.draw.svg import line, linear, picture, rect, text, ticks

_WIDTH, _HEIGHT = 900.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 8.0, 10.0, 34.0


def arena(region: Mapping[str, Any]) -> str:
    """Draw an arena's blocks, addresses upwards and steps to the right."""
    blocks = region["blocks"]
    if not blocks:
        return ""
    most = max(region["arena_bytes"], 1)
    x = linear((0, region["steps"]), (_LEFT, _WIDTH - _RIGHT))
    y = linear((0, most), (_HEIGHT - _BOTTOM, _TOP))
    parts = []
    for size in _sizes(most):
        parts += [
            line(_LEFT, y(size), _WIDTH - _RIGHT, y(size), "grid"),
            text(_LEFT - 8, y(size) + 4, units.size(size), "tick", "end"),
        ]
    for step in ticks(0, region["steps"], 10):
        if step == int(step):
            anchor = "middle" if x(step) < _WIDTH - 24 else "end"
            parts.append(text(x(step), _HEIGHT - 18, f"{step:g}", "tick", anchor))
    parts.append(text(_WIDTH - _RIGHT, _HEIGHT - 4, "launches, in order", "tick", "end"))
    for block in blocks:
        bottom, top = y(block["offset"]), y(block["offset"] + block["size_bytes"])
        title = f"{block['name']}: {block['kind']}, {units.size(block['size_bytes'])}, "
        title += f"steps {block['first']} to {block['last']}"
        start, end = x(block["first"]), x(block["last"] + 1)
        parts.append(
            rect(
                start,
                top,
                max(0.8, end - start - 0.5),
                max(0.8, bottom - top - 0.5),
                title,
                class_=f"block {block['kind']}",
                rx=1.5,
            )
        )
    return picture(_WIDTH, _HEIGHT, parts, "Memory of the arena over the steps of a run", "wide")


def _sizes(most: int) -> list[float]:
    """Return about four round sizes in binary units."""
    unit = 1
    while most / unit >= 1024:
        unit *= 1024
    return [t * unit for t in ticks(0, most / unit, 4)]
