"""Draws the frontier of a search for bit widths: signal-to-error ratio by file size."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from litecl.report.draw import units
from litecl.report.draw.svg import line, linear, path, picture, tag, text, ticks, titled

_WIDTH, _HEIGHT = 720.0, 420.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 24.0, 28.0, 44.0
_STYLE = """
text { font: 12px sans-serif; fill: #555 } .grid { stroke: #ddd } .curve { fill: none; stroke: #2a6fb0 }
.point { fill: #2a6fb0 } .chosen { fill: #c03a2b } .label { fill: #c03a2b }
"""


def frontier(search: Mapping[str, Any], name: str = "") -> str:
    """Draw a ``Frontier``, given as plain data, as a complete SVG file. name: of the model.

    Points without any error, such as the float file, go to the top.
    """
    points: Sequence[Mapping[str, Any]] = sorted(search["points"], key=lambda point: point["size_bytes"])
    chosen = search["chosen"]
    finite = [p["sqnr_db"] for p in points if _is_finite(p["sqnr_db"])]
    low, high = min([*finite, 0.0]), max(finite, default=1.0) * 1.05 + 1
    x = linear((0.0, max(p["size_bytes"] for p in points) * 1.02), (_LEFT, _WIDTH - _RIGHT))
    y = linear((low, high), (_HEIGHT - _BOTTOM, _TOP))
    dots = [(x(p["size_bytes"]), y(p["sqnr_db"] if _is_finite(p["sqnr_db"]) else high)) for p in points]
    parts = [tag("style", _STYLE), tag("rect", width="100%", height="100%", fill="white")]
    for value in ticks(low, high):
        parts += [line(_LEFT, y(value), _WIDTH - _RIGHT, y(value), "grid")]
        parts += [text(_LEFT - 8, y(value) + 4, f"{value:g}", anchor="end")]
    for value in ticks(0.0, max(p["size_bytes"] for p in points)):
        parts += [line(x(value), _TOP, x(value), y(low), "grid")]
        parts += [text(x(value), _HEIGHT - 26, units.size(value), anchor="middle")]
    parts += [text(8, 16, "signal to error of the worst output, dB"), path(dots, "curve")]
    parts.append(text(_WIDTH - _RIGHT, _HEIGHT - 8, f"size of the file{f' ({name})' if name else ''}", anchor="end"))
    for point, (across, down) in zip(points, dots, strict=True):
        label = f"{units.size(point['size_bytes'])}, {_words(point['sqnr_db'])}"
        is_chosen = point["picked"] == chosen["picked"]
        kind = {"class_": "chosen" if is_chosen else "point", "r": 6 if is_chosen else 4}
        parts.append(tag("circle", titled(label), cx=across, cy=down, **kind))
        if is_chosen:
            parts.append(text(min(across + 10, _WIDTH - 170), down + 18, label, "label"))
    return picture(_WIDTH, _HEIGHT, parts, f"Error by size{f' of {name}' if name else ''}").replace(
        "<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1
    )


def _is_finite(ratio: float | None) -> bool:
    return ratio is not None and math.isfinite(ratio)


def _words(ratio: float | None) -> str:
    return f"{ratio:.1f} dB" if ratio is not None and math.isfinite(ratio) else "no error"
