"""A bar chart as SVG text."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_ROW, _LEFT, _SCALE, _TOP = 22, 260, 150, 58  # pixels; _SCALE is one unit


@dataclass(frozen=True)
class Bar:
    """A value with its spread and the goal that is marked next to it."""

    name: str
    value: float
    low: float
    high: float
    goal: float


def chart(title: str, subtitle: str, bars: Sequence[Bar]) -> str:
    """Horizontal bars from 0, with a line at 1: green where a value reaches its goal, amber where it does not."""
    longest = max((bar.high for bar in bars), default=1.0)
    width, height = _LEFT + int(_SCALE * longest) + 80, _TOP + _ROW * len(bars) + 20
    rows = "".join(_row(i, bar) for i, bar in enumerate(bars))
    one = _LEFT + _SCALE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        f'font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="10" y="20" font-size="15">{escape(title)}</text>\n'
        f'<text x="10" y="40" fill="#555">{escape(subtitle)}</text>\n'
        f'{rows}<line x1="{one}" y1="{_TOP - 8}" x2="{one}" y2="{height - 12}" stroke="#333"/>\n</svg>\n'
    )


def _row(index: int, bar: Bar) -> str:
    y = _TOP + _ROW * index
    colour = "#2e8b57" if bar.value >= bar.goal else "#d9902f"
    low, high, goal = (_LEFT + _SCALE * value for value in (bar.low, bar.high, bar.goal))
    return (
        f'<text x="{_LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(bar.name)}</text>'
        f'<rect x="{_LEFT}" y="{y}" width="{_SCALE * bar.value:.0f}" height="14" fill="{colour}"/>'
        f'<line x1="{low:.0f}" y1="{y + 7}" x2="{high:.0f}" y2="{y + 7}" stroke="#222"/>'
        f'<line x1="{goal:.0f}" y1="{y - 2}" x2="{goal:.0f}" y2="{y + 16}" stroke="#222" stroke-dasharray="2 2"/>'
        f'<text x="{high + 6:.0f}" y="{y + 12}">{bar.value:.2f}</text>\n'
    )
