"""Draws stacked bars of parts of a whole."""

from collections.abc import Sequence

from litecl.report.draw import units
from litecl.report.draw.svg import picture, rect, text

_WIDTH, _NARROW, _BAR = 900.0, 360.0, 26.0


def stacked(parts: Sequence[tuple[str, float, str]], whole: float, label: str, *, narrow: bool = False) -> str:
    """Draw parts (name, milliseconds, class) as a stacked bar. whole: the milliseconds of the full width."""
    x, drawn = 0.0, []
    long = _NARROW if narrow else _WIDTH
    for name, value, kind in parts:
        width = value / whole * long if whole else 0.0
        share = f"{units.ms(value)}, {units.percent(value / whole if whole else 0)}"
        drawn.append(rect(x, 0, max(0.0, width - 1.5), _BAR, f"{name}: {share}", class_=kind, rx=3))
        if width > 7.2 * len(name) + 12:
            drawn.append(text(x + 8, _BAR / 2 + 4, name, "inside"))
        x += width
    return picture(long, _BAR, drawn, label, "narrow" if narrow else "wide")
