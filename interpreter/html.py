"""Tables and text as HTML without scripts, for notebooks."""

from collections.abc import Iterable, Sequence

from litecl.interpreter.visible import visible_lines

_STYLE = """<style>
.litecl table{border-collapse:collapse;margin:.3em 0 .8em}
.litecl.litecl th,.litecl.litecl td{border:1px solid #8886;padding:.15em .5em;text-align:left;vertical-align:top}
.litecl .warning{color:#b00;font-weight:bold}
.litecl .cpu td{background:#f802}
</style>"""


def block(*parts: str) -> str:
    """Join parts of HTML, and add the style of their tables."""
    return f'{_STYLE}<div class="litecl">{"".join(parts)}</div>'


def paragraph(text: str, kind: str = "") -> str:
    """Return a text as a paragraph that keeps line breaks. kind: its class."""
    return f"<p{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}>{_broken(text)}</p>"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], kinds: Iterable[str] = ()) -> str:
    """Return a table, empty without rows. kinds: the class of each row, if any."""
    lines = [[str(cell) for cell in row] for row in rows]
    classes = [f' class="{kind}"' if kind else "" for kind in kinds] or [""] * len(lines)
    head = "".join(f"<th>{_escaped(name)}</th>" for name in columns)
    body = "".join(
        f"<tr{kind}>{''.join(f'<td>{_broken(cell)}</td>' for cell in line)}</tr>"
        for kind, line in zip(classes, lines, strict=True)
    )
    return f"<table><tr>{head}</tr>{body}</table>" if lines else ""


def folded(title: str, content: str, *, opened: bool) -> str:
    """Return content that a reader can unfold."""
    return f"<details{' open' if opened else ''}><summary>{_escaped(title)}</summary>{content}</details>"


def _escaped(text: str) -> str:
    """Return a text with control characters and HTML's own escaped."""
    from html import escape  # few processes show anything

    return escape(visible_lines(text))


def _broken(text: str) -> str:
    return _escaped(text).replace("\n", "<br>")
