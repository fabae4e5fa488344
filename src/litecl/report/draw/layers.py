"""Draws each layer's difference from the reference."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from litecl.report.draw.svg import decades, line, linear, logarithmic, picture, rect, text

_WIDTH, _HEIGHT = 900.0, 220.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 8.0, 14.0, 30.0
_LEAST = 1e-9


def layers(rows: Sequence[Mapping[str, Any]], tolerance: float) -> str:
    """Draw each layer's relative difference, in order, with the tolerance."""
    if not rows:
        return ""
    finite = [_value(row) for row in rows]
    high = 10 ** math.ceil(math.log10(max(*finite, tolerance) * 1.01))
    y = logarithmic((_LEAST, high), (_HEIGHT - _BOTTOM, _TOP))
    x = linear((0, len(rows)), (_LEFT, _WIDTH - _RIGHT))
    parts = []
    for value in decades(_LEAST, high):
        parts += [
            line(_LEFT, y(value), _WIDTH - _RIGHT, y(value), "grid"),
            text(_LEFT - 8, y(value) + 4, f"{value:.0e}", "tick", "end"),
        ]
    width = max(0.8, x(1) - x(0) - (1 if len(rows) < 200 else 0))
    for i, (row, value) in enumerate(zip(rows, finite, strict=True)):
        steps = "" if row["steps"] is None else f", {row['steps']} quantization steps"
        title = f"node {row['place'][1]} {row['op']}, {row['tensor']['name']}: {value:.2g}{steps}"
        kind = "bar departs" if row["departs"] else "bar"
        parts.append(rect(x(i), y(value), width, max(1.0, y(_LEAST) - y(value)), title, class_=kind))
    parts.append(line(_LEFT, y(tolerance), _WIDTH - _RIGHT, y(tolerance), "limit"))
    parts.append(text(_WIDTH - _RIGHT, y(tolerance) - 5, "tolerance", "tick", "end"))
    parts.append(text(_WIDTH - _RIGHT, _HEIGHT - 8, "layers, in the order of the model", "tick", "end"))
    return picture(_WIDTH, _HEIGHT, parts, "Difference of each layer from the reference", "wide")


def _value(row: Mapping[str, Any]) -> float:
    value = row["relative"]
    return 1.0 if value is None else max(float(value), _LEAST)
