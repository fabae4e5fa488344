"""SVG elements as text, scales, and round ticks."""

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape as escaped_html

from litecl.interpreter.visible import visible_lines

Scale = Callable[[float], float]


def escape(words: str) -> str:
    """Escape HTML, and characters that would hide or reorder text."""
    return escaped_html(visible_lines(words))


def tag(name: str, content: str = "", **attributes: object) -> str:
    """Return an element. attributes: ``class_`` is ``class``, ``stroke_width`` is ``stroke-width``; None is omitted."""
    given = "".join(f' {_key(k)}="{_value(v)}"' for k, v in attributes.items() if v is not None)
    return f"<{name}{given}>{content}</{name}>" if content else f"<{name}{given}/>"


def picture(width: float, height: float, parts: Iterable[str], label: str, class_: str = "") -> str:
    """Return a whole picture. label: for screen readers."""
    box = f"0 0 {number(width)} {number(height)}"
    return tag("svg", "".join(parts), viewBox=box, class_=class_ or None, role="img", aria_label=label)


def text(x: float, y: float, words: str, class_: str | None = None, anchor: str | None = None) -> str:
    """Return a text element."""
    return tag("text", escape(words), x=x, y=y, class_=class_, text_anchor=anchor)


def rect(x: float, y: float, width: float, height: float, title: str = "", **attributes: object) -> str:
    """Return a rectangle. title: its tooltip."""
    return tag("rect", titled(title), x=x, y=y, width=max(0.0, width), height=max(0.0, height), **attributes)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """Return a line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def path(points: Sequence[tuple[float, float]], class_: str) -> str:
    """Return a line through points."""
    steps = " ".join(f"{'L' if i else 'M'}{number(x)} {number(y)}" for i, (x, y) in enumerate(points))
    return tag("path", d=steps, class_=class_)


def titled(words: str) -> str:
    """Return a tooltip element, or nothing for no words."""
    return f"<title>{escape(words)}</title>" if words else ""


def number(value: float) -> str:
    """Format a coordinate with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if math.isfinite(value) else "0"


def linear(domain: tuple[float, float], span: tuple[float, float]) -> Scale:
    """Return a linear scale from a domain of numbers to a span of coordinates."""
    (a, b), (start, end) = domain, span
    factor = (end - start) / (b - a) if b != a else 0.0
    return lambda value: start + (value - a) * factor


def logarithmic(domain: tuple[float, float], span: tuple[float, float]) -> Scale:
    """Return a logarithmic scale."""
    inner = linear((math.log10(domain[0]), math.log10(domain[1])), span)
    return lambda value: inner(math.log10(max(value, 1e-300)))


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers within a domain. about: how many."""
    if high <= low:
        return [low]
    rough = (high - low) / about
    order = 10 ** math.floor(math.log10(rough))
    step = next(order * factor for factor in (1, 2, 5, 10) if order * factor >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def decades(low: float, high: float) -> list[float]:
    """Return the powers of ten within a domain."""
    return [10.0**n for n in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)]


def _key(name: str) -> str:
    return name.rstrip("_").replace("_", "-") if name != "viewBox" else name


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) else escape(str(value))
