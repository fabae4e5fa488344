"""Draws a roofline: launches below the device's peaks."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from litecl.report.draw import units
from litecl.report.draw.svg import decades, line, logarithmic, path, picture, tag, text, titled

_WIDTH, _HEIGHT = 900.0, 420.0
_NEAR = 2.2  # ratio of bandwidths below which two slopes' labels would touch
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 20.0, 24.0, 40.0


def roofline(launches: Sequence[Mapping[str, Any]], roofs: Mapping[str, Any], colours: Mapping[str, str]) -> str:
    """Draw each launch by operations per byte and operations per second. colours: CSS classes by operator."""
    shown = [launch for launch in launches if launch["work"]["flops"] and launch["work"]["flops_per_s"]]
    if not shown:
        return ""
    used = {launch["arithmetic"] for launch in shown}
    kinds = roofs["operations_per_s"]
    peaks = {kind: rate for kind, rate in kinds.items() if kind in used} or {"float32": kinds["float32"]}
    peak, rates = max(peaks.values()), {int(s): r for s, r in roofs["bytes_per_s"].items()}
    knees = [peak / rate for rate in rates.values()]
    xs = [*(launch["work"]["intensity"] for launch in shown), *knees]
    low, high = 10 ** math.floor(math.log10(min(xs) * 0.8)), 10 ** math.ceil(math.log10(max(xs) * 1.5))
    bottom = 10 ** math.floor(math.log10(min(launch["work"]["flops_per_s"] for launch in shown) * 0.8))
    fastest = max(launch["work"]["flops_per_s"] for launch in shown)
    top = max(peak, fastest) * 2
    x = logarithmic((low, high), (_LEFT, _WIDTH - _RIGHT))
    y = logarithmic((bottom, top), (_HEIGHT - _BOTTOM, _TOP))
    parts = []
    for value in decades(low, high):
        parts += [
            line(x(value), _TOP, x(value), y(bottom), "grid"),
            text(x(value), _HEIGHT - 22, f"{value:g}", "tick", "middle"),
        ]
    for value in decades(bottom, top):
        parts += [
            line(_LEFT, y(value), x(high), y(value), "grid"),
            text(_LEFT - 8, y(value) + 4, units.scaled(value), "tick", "end"),
        ]
    parts.append(text(x(high), _HEIGHT - 6, "operations per byte", "tick", "end"))
    parts.append(text(8, 12, "operations per second", "tick"))
    above = float("inf")
    for size, rate in sorted(rates.items(), key=lambda item: -item[1]):
        name = f"{units.scaled(rate, 'B/s')} from {units.size(size)}"
        parts += _roof(x, y, (low, bottom), peak, rate, name, below=above < _NEAR * rate)
        above = rate
    for kind, rate in peaks.items():
        parts.append(line(x(rate / max(rates.values())), y(rate), x(high), y(rate), "roof"))
        parts.append(text(x(high), y(rate) - 6, f"{units.scaled(rate, 'op/s')} {kind}", "label", "end"))
    for launch in sorted(shown, key=lambda launch: -launch["work"]["share"]):
        parts.append(_point(launch, x, y, colours))
    return picture(_WIDTH, _HEIGHT, parts, "Roofline of launches", "wide")


def _roof(
    x: Any, y: Any, corner: tuple[float, float], peak: float, rate: float, name: str, *, below: bool
) -> list[str]:
    """Draw a bandwidth's slope from the edge of the picture up to the peak. below: put its label below."""
    start = max(corner[0], corner[1] / rate)
    end = peak / rate
    at = start * (end / start) ** 0.04
    shift = 13 if below else -6
    angle = -math.degrees(math.atan2(y(start * rate) - y(peak), x(end) - x(start)))
    words = tag(
        "text", name, class_="label", transform=f"translate({x(at):.1f} {y(at * rate) + shift:.1f}) rotate({angle:.1f})"
    )
    return [path([(x(start), y(start * rate)), (x(end), y(peak))], "roof"), words]


def _point(launch: Mapping[str, Any], x: Any, y: Any, colours: Mapping[str, str]) -> str:
    work = launch["work"]
    radius = 3 + 16 * math.sqrt(work["share"])
    title = (
        f"{launch['op']} (node {launch['place'][1]}), {launch['kernel']}: {units.ms(work['ms'])}, "
        f"{units.percent(work['share'])} of the time; {units.scaled(work['flops_per_s'], 'op/s')}, "
        f"{units.digits(work['intensity'])} operations per byte"
        + (f"; {units.percent(work['of_bound'])} of the {work['bound']} peak" if work["of_bound"] else "")
    )
    centre = {"cx": x(work["intensity"]), "cy": y(work["flops_per_s"])}
    return tag("circle", titled(title), **centre, r=radius, class_=f"dot {colours.get(launch['op'], 'c0')}")
