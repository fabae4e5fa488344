"""``--page``: a command's tables as a page."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from litecl.delegate import DelegationReport
from litecl.report.sheet import Part, Sheet, sheet

_REPORT = "where nodes run"


def page(command: str, title: str, view: Sequence[RenderableType]) -> str:
    """Return what a command shows on a terminal as HTML: lines of text, warnings last, then tables, each under the line
    before it.
    """
    parts = [*_parts(view)]
    lead = (line for part in parts if not part.rows for line in part.title.splitlines())
    return sheet(Sheet(command, title, tuple(sorted(lead, key=lambda line: line.startswith("WARNING"))), tuple(parts)))


def _parts(view: Sequence[RenderableType], title: str = "") -> Iterator[Part]:
    """Yield tables, and other text as titles without one. title: of a table that comes first."""
    for position, each in enumerate(view):
        if isinstance(each, Table):
            rows = zip(*([*map(_text, column.cells)] for column in each.columns), strict=True)
            yield Part(title, tuple(str(column.header) for column in each.columns), tuple(rows))
        elif isinstance(each, DelegationReport):
            *lines, nodes = each.__rich__().renderables
            yield from (replace(part, lead=". ".join(map(_text, lines))) for part in _parts([nodes], _REPORT))
        elif isinstance(each, Group):
            yield from _parts(each.renderables)
        elif not isinstance(view[position + 1] if position + 1 < len(view) else None, Table):
            yield Part(_text(each))
        title = _text(each) if isinstance(each, Text) else ""


def _text(cell: RenderableType) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)
