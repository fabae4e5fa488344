"""Draws times of invokes: as a histogram, in order, and beside other runtimes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from litecl.report.draw import units
from litecl.report.draw.svg import Scale, line, linear, path, picture, rect, tag, text, ticks

_WIDTH, _HEIGHT = 440.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 12.0, 22.0, 28.0
_MARK_WIDTH = 60.0  # of "median", the widest label of a mark, on phones


def histogram(latency: Mapping[str, Any]) -> str:
    """Draw a histogram of latencies with the median and the 95th percentile. Outliers share one bar."""
    times = sorted(latency["times_ms"])
    low, high = times[0], _fence(times)
    bins = max(6, min(28, round(2 * math.sqrt(len(times)))))
    high = high if high > low else low * 1.01 + 1e-9
    counts = [0] * bins
    beyond = sum(t > high for t in times)
    for t in times[: len(times) - beyond]:
        counts[min(bins - 1, int((t - low) / (high - low) * bins))] += 1
    right = _WIDTH - _RIGHT - (26 if beyond else 0)
    x, y = linear((low, high), (_LEFT, right)), linear((0, max(*counts, beyond)), (_HEIGHT - _BOTTOM, _TOP))
    step = (high - low) / bins
    parts = _axes(x, y, low, high, max(*counts, beyond), right - 24 if beyond else right)
    for i, n in enumerate(counts):
        start = low + i * step
        title = f"{n} invokes of {units.ms(start)} to {units.ms(start + step)}"
        parts.append(
            rect(x(start) + 0.5, y(n), x(start + step) - x(start) - 1, y(0) - y(n), title, class_="bar", rx=1.5)
        )
    if beyond:
        title = f"{beyond} invokes above {units.ms(high)}, up to {units.ms(times[-1])}"
        parts.append(rect(right + 8, y(beyond), 18, y(0) - y(beyond), title, class_="bar outlier", rx=1.5))
        parts.append(text(right + 17, _HEIGHT - 12, "more", "tick", "middle"))
    median, most = latency["median_ms"], latency["percentiles_ms"]["95"]
    crowded = x(most) - x(median) < _MARK_WIDTH
    for name, value, anchor in (("median", median, "end" if crowded else "start"), ("95 %", most, "start")):
        if value <= high:
            parts += _mark(x(value), name, anchor)
    return picture(_WIDTH, _HEIGHT, parts, "Histogram of latencies")


def _fence(times: Sequence[float]) -> float:
    """Return the outlier limit: three interquartile ranges above the upper quartile, at most the largest time."""
    lower, upper = times[len(times) // 4], times[(3 * len(times)) // 4]
    return min(times[-1], upper + 3 * max(upper - lower, upper * 0.01))


def _axes(x: Any, y: Any, low: float, high: float, most: float, last: float) -> list[str]:
    """Draw the grid and its labels. last: where the furthest label of a time may be, beside "more"."""
    parts = [line(_LEFT, y(n), _WIDTH - _RIGHT, y(n), "grid") for n in ticks(0, most, 4)]
    parts += [text(_LEFT - 6, y(n) + 3.5, f"{n:g}", "tick", "end") for n in ticks(0, most, 4) if n == int(n)]
    return parts + [
        text(x(t), _HEIGHT - 12, units.ms(t), "tick", "middle") for t in ticks(low, high, 4) if x(t) <= last
    ]


def _mark(x: float, name: str, anchor: str) -> list[str]:
    beside = x + (3 if anchor == "start" else -3)
    return [line(x, _TOP - 6, x, _HEIGHT - _BOTTOM, "mark"), text(beside, _TOP - 8, name, "tick", anchor)]


def series(latency: Mapping[str, Any]) -> str:
    """Draw the times in measured order."""
    times = latency["times_ms"]
    high = max(_fence(sorted(times)), max(times) if max(times) < 1.5 * min(times) else 0)
    x = linear((0, max(1, len(times) - 1)), (_LEFT, _WIDTH - _RIGHT))
    low = min(times)
    y = linear((low - (high - low) * 0.08, high), (_HEIGHT - _BOTTOM, _TOP))
    parts = []
    for t in ticks(low, high, 4):
        parts += [
            line(_LEFT, y(t), _WIDTH - _RIGHT, y(t), "grid"),
            text(_LEFT - 6, y(t) + 3.5, _short(t), "tick", "end"),
        ]
    unit = "µs" if high < 1 else "ms"
    parts += [
        text(_LEFT - 6, 10, unit, "tick", "end"),
        text(_WIDTH - _RIGHT, _HEIGHT - 12, f"{len(times)} invokes", "tick", "end"),
    ]
    parts.append(line(_LEFT, y(latency["median_ms"]), _WIDTH - _RIGHT, y(latency["median_ms"]), "mark"))
    parts.append(path([(x(i), y(min(t, high))) for i, t in enumerate(times)], "series"))
    for i, t in enumerate(times):
        if t > high:
            title = tag("title", f"invoke {i}: {units.ms(t)}")
            parts.append(tag("circle", title, cx=x(i), cy=y(high), r=3.0, class_="dot outlier"))
    return picture(_WIDTH, _HEIGHT, parts, "Latency of each invoke in order")


def _short(value_ms: float) -> str:
    return units.digits(value_ms * 1000 if value_ms < 1 else value_ms)


def contenders(latencies: Sequence[Mapping[str, Any]], *, narrow: bool = False) -> str:
    """Draw runtimes as box plots: a line from the 5th to the 95th percentile, a box for the quartiles, the median.

    narrow: for phones, with names above the bars.
    """
    row, left, width = (42.0, 4.0, 380.0) if narrow else (30.0, 230.0, 900.0)
    high = max(one["percentiles_ms"]["95"] for one in latencies) * 1.02
    x, height = linear((0, high), (left, width - 70)), row * len(latencies) + 22
    parts: list[str] = []
    for t in ticks(0, high, 3 if narrow else 6):
        words = units.ms(t) if t else "0"
        parts += [line(x(t), 0, x(t), height - 20, "grid"), text(x(t), height - 5, words, "tick", "middle")]
    for i, one in enumerate(latencies):
        middle = (i + 0.5) * row + (8 if narrow else 0)
        parts += _contender(one, x, middle, middle - 14 if narrow else middle + 4)
    return picture(width, height, parts, "Latency of each runtime", "narrow" if narrow else "wide")


def _contender(one: Mapping[str, Any], x: Scale, y: float, name_y: float) -> list[str]:
    p, median = one["percentiles_ms"], one["median_ms"]
    threads = "" if one["threads"] is None else f", {one['threads']} thread{'s' if one['threads'] != 1 else ''}"
    name = f"{one['name']}{threads}"
    kind = "ours" if one["name"].startswith("litecl") else "peer"
    box = rect(
        x(p["25"]),
        y - 7,
        max(2.0, x(p["75"]) - x(p["25"])),
        14,
        f"{name}: {units.ms(median)}",
        class_=f"box {kind}",
        rx=2,
    )
    return [
        text(0, name_y, name if len(name) < 38 else name[:37] + "...", "label"),
        line(x(p["5"]), y, x(p["95"]), y, "whisker"),
        box,
        line(x(median), y - 9, x(median), y + 9, "median"),
        text(x(p["95"]) + 8, y + 4, units.ms(median), "value"),
    ]
