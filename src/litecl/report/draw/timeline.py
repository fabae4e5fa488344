"""Draws the timeline of an invoke: host, copies, queue, device."""

from collections.abc import Mapping, Sequence
from typing import Any

from litecl.report.draw import units
from litecl.report.draw.svg import line, linear, picture, rect, text, ticks

_WIDTH, _LEFT = 900.0, 56.0
_LANES = {"host": 26.0, "copies": 12.0, "queue": 12.0, "device": 34.0}
_GAP = 7.0


def timeline(spans: Sequence[Mapping[str, Any]], colours: Mapping[str, str]) -> str:
    """Draw an invoke's spans. colours: CSS classes by operator."""
    if not spans:
        return ""
    end = max(span["start_ms"] + span["ms"] for span in spans)
    x = linear((0, end), (_LEFT, _WIDTH - 8))
    lanes: dict[str, tuple[float, float]] = {}
    below = _GAP
    for lane in (lane for lane in _LANES if any(span["lane"] == lane for span in spans)):
        lanes[lane] = below, _LANES[lane]
        below += _LANES[lane] + _GAP
    height = below + 20
    parts = [text(0, top + tall / 2 + 4, lane, "label") for lane, (top, tall) in lanes.items()]
    for t in ticks(0, end, 8):
        parts += [
            line(x(t), 0, x(t), height - 20, "grid"),
            text(x(t), height - 5, units.ms(t) if t else "0", "tick", "end" if x(t) > _WIDTH - 30 else "middle"),
        ]
    for span in spans:
        parts += _span(span, lanes[span["lane"]], x, colours)
    return picture(_WIDTH, height, parts, "Timeline of one invoke", "wide")


def _span(span: Mapping[str, Any], bar: tuple[float, float], x: Any, colours: Mapping[str, str]) -> list[str]:
    top, height = bar
    width = x(span["ms"]) - x(0)
    times = f" {units.TIMES}{span['runs']}" if span["runs"] > 1 else ""
    title = f"{span['op']} {span['name']}{times}: {units.ms(span['ms'])} from {units.ms(span['start_ms'])} on"
    title += f" ({span['note']})" if span["note"] else ""
    kind = _class(span, colours)
    rounded = 3.0 if width > 8 else 0.0
    parts = [rect(x(span["start_ms"]), top, max(0.6, width - 0.4), height, title.strip(), class_=kind, rx=rounded)]
    name = f"{span['op'] or span['name']}{times}"
    if width > 6.6 * len(name) + 10 and span["lane"] in ("host", "device"):
        parts.append(text(x(span["start_ms"]) + 6, top + height / 2 + 4, name, "inside"))
    return parts


def _class(span: Mapping[str, Any], colours: Mapping[str, str]) -> str:
    if span["lane"] == "host":
        return "span host" if not span["op"] else "span cpu"
    return "span queue" if span["lane"] in ("queue", "copies") else f"span {colours.get(span['op'], 'c0')}"
