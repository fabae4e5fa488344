"""Formats numbers for people: three digits and a unit."""

import math

TIMES = "\u00d7"
INFINITE = "\u221e"
NOTHING = "\u2013"


def digits(value: float, count: int = 3) -> str:
    """Format a number with ``count`` significant digits and no exponent."""
    if not value or not math.isfinite(value):
        return "0" if not value else INFINITE
    decimals = max(0, count - 1 - math.floor(math.log10(abs(value))))
    rounded = f"{value:.{decimals}f}"
    return rounded if decimals else f"{value:,.0f}"


def ms(value: float, *beside: float) -> str:
    """Format milliseconds in the unit that fits the largest of the value and others in the same sentence."""
    largest = max(abs(each) for each in (value, *beside))
    if largest and largest < 1:
        return f"{digits(value * 1000)} µs"
    return f"{digits(value)} ms" if largest < 1000 else f"{digits(value / 1000)} s"


def seconds(value: float) -> str:
    """Format seconds in a fitting unit."""
    return ms(value * 1000)


def size(value: float) -> str:
    """Format bytes in the largest binary unit with a value of at least one."""
    for unit in ("B", "KiB", "MiB"):
        if abs(value) < 1024:
            return f"{digits(value) if unit != 'B' else f'{value:.0f}'} {unit}"
        value /= 1024
    return f"{digits(value)} GiB"


def scaled(value: float, unit: str = "") -> str:
    """Format a number with a decimal prefix: ``1.5 G``."""
    for prefix in ("", "k", "M", "G", "T"):
        if abs(value) < 1000:
            return f"{digits(value) if value % 1 else f'{value:.0f}'} {prefix}{unit}".rstrip()
        value /= 1000
    return f"{digits(value)} P{unit}"


def percent(value: float) -> str:
    """Format a fraction as per cent."""
    shown = value * 100
    return f"{shown:.0f} %" if shown >= 10 or not shown else f"{digits(shown, 2)} %"


def shape(dimensions: tuple[int, ...] | list[int] | None) -> str:
    """Format a shape with times signs; a scalar's is ``scalar``, an unknown one ``?``."""
    if dimensions is None:
        return "?"
    return TIMES.join("?" if n < 0 else str(n) for n in dimensions) or "scalar"
