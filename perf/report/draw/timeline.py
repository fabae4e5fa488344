"""One invoke on a line of time: host, queue, device."""

from collections.abc import Mapping, Sequence
from typing import Any

from litecl.perf.report.draw import units
from litecl.perf.report.draw.svg import line, linear, picture, rect, text, ticks

_WIDTH, _LEFT = 900.0, 56.0
_LANES = {"host": (6.0, 26.0), "queue": (38.0, 12.0), "device": (56.0, 34.0)}
_HEIGHT = 116.0


def timeline(spans: Sequence[Mapping[str, Any]], colours: Mapping[str, str]) -> str:
    """Draw the spans of an invoke. colours: a class for each operator."""
    if not spans:
        return ""
    end = max(span["start_ms"] + span["ms"] for span in spans)
    x = linear((0, end), (_LEFT, _WIDTH - 8))
    used = [lane for lane in _LANES if any(span["lane"] == lane for span in spans)]
    parts = [text(0, top + height / 2 + 4, lane, "label") for lane, (top, height) in _LANES.items() if lane in used]
    for t in ticks(0, end, 8):
        parts += [
            line(x(t), 0, x(t), _HEIGHT - 20, "grid"),
            text(x(t), _HEIGHT - 5, units.ms(t) if t else "0", "tick", "middle"),
        ]
    for span in spans:
        parts += _span(span, x, colours)
    return picture(_WIDTH, _HEIGHT, parts, "Timeline of one invoke", "wide")


def _span(span: Mapping[str, Any], x: Any, colours: Mapping[str, str]) -> list[str]:
    top, height = _LANES[span["lane"]]
    width = x(span["ms"]) - x(0)
    times = f" {units.TIMES}{span['runs']}" if span["runs"] > 1 else ""
    title = f"{span['op']} {span['name']}{times}: {units.ms(span['ms'])} from {units.ms(span['start_ms'])} on"
    title += f" ({span['note']})" if span["note"] else ""
    kind = _class(span, colours)
    rounded = 3.0 if width > 8 else 0.0
    parts = [rect(x(span["start_ms"]), top, max(0.6, width - 0.4), height, title.strip(), class_=kind, rx=rounded)]
    name = f"{span['op'] or span['name']}{times}"
    if width > 6.6 * len(name) + 10 and span["lane"] != "queue":
        parts.append(text(x(span["start_ms"]) + 6, top + height / 2 + 4, name, "inside"))
    return parts


def _class(span: Mapping[str, Any], colours: Mapping[str, str]) -> str:
    if span["lane"] == "host":
        return "span host" if not span["op"] else "span cpu"
    return "span queue" if span["lane"] == "queue" else f"span {colours.get(span['op'], 'c0')}"
