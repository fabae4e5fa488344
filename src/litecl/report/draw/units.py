"""Numbers as people read them: three digits and a unit."""

import math

TIMES = "\u00d7"
INFINITE = "\u221e"
NOTHING = "\u2013"


def digits(value: float, count: int = 3) -> str:
    """Return a number with some significant digits and no exponent."""
    if not value or not math.isfinite(value):
        return "0" if not value else INFINITE
    places = max(0, count - 1 - math.floor(math.log10(abs(value))))
    rounded = f"{value:.{places}f}"
    return rounded if places else f"{value:,.0f}"


def ms(value: float, *beside: float) -> str:
    """Return milliseconds in the unit that suits the largest of them and of others in the same sentence."""
    largest = max(abs(each) for each in (value, *beside))
    if largest and largest < 1:
        return f"{digits(value * 1000)} µs"
    return f"{digits(value)} ms" if largest < 1000 else f"{digits(value / 1000)} s"


def seconds(value: float) -> str:
    """Return seconds in the unit that suits."""
    return ms(value * 1000)


def size(value: float) -> str:
    """Return bytes in the largest binary unit that leaves at least one."""
    for unit in ("B", "KiB", "MiB"):
        if abs(value) < 1024:
            return f"{digits(value) if unit != 'B' else f'{value:.0f}'} {unit}"
        value /= 1024
    return f"{digits(value)} GiB"


def scaled(value: float, unit: str = "") -> str:
    """Return a number with a decimal prefix: ``1.5 G``."""
    for prefix in ("", "k", "M", "G", "T"):
        if abs(value) < 1000:
            return f"{digits(value) if value % 1 else f'{value:.0f}'} {prefix}{unit}".rstrip()
        value /= 1000
    return f"{digits(value)} P{unit}"


def percent(value: float) -> str:
    """Return a part of a whole."""
    shown = value * 100
    return f"{shown:.0f} %" if shown >= 10 or not shown else f"{digits(shown, 2)} %"


def shape(dimensions: tuple[int, ...] | list[int] | None) -> str:
    """Return a shape with times signs between its sizes; that of a scalar is ``scalar``."""
    if dimensions is None:
        return "?"
    return TIMES.join("?" if n < 0 else str(n) for n in dimensions) or "scalar"
