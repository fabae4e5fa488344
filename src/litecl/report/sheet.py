"""Renders a self-contained page of tables with a verdict, in the style of ``litecl report``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from litecl.report.draw.layers import layers
from litecl.report.page import environment, look


@dataclass(frozen=True)
class Part:
    """A section: a table, a picture above it, or both. Cells may have several lines.

    marked: the rows that failed. is_folded: whether the table is shown only when asked for.
    """

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    lead: str = ""
    picture: Markup | None = None
    marked: frozenset[int] = frozenset()
    is_folded: bool = False


@dataclass(frozen=True)
class Sheet:
    """The contents of a page: the command behind it, its title, the verdict in lines, and sections."""

    command: str
    title: str
    verdict: tuple[str, ...]
    parts: tuple[Part, ...]


def sheet(contents: Sheet) -> str:
    """Return the page as HTML, omitting empty parts."""
    shown = Sheet(contents.command, contents.title, contents.verdict, tuple(filter(_is_filled, contents.parts)))
    return environment().get_template("sheet.html").render(sheet=shown, **look())


def _is_filled(part: Part) -> bool:
    return bool(part.rows or part.picture)


def drawn(rows: Sequence[Mapping[str, Any]], limit: float) -> Markup:
    """Draw errors of nodes in order. rows: with ``node``, ``op``, ``name`` and ``error``; limit: errors above it are
    red.
    """
    bars = [
        {
            "relative": row["error"],
            "steps": None,
            "departs": row["error"] is None or row["error"] > limit,
            "place": (0, row["node"]),
            "op": row["op"],
            "tensor": {"name": row["name"]},
        }
        for row in rows
    ]
    return Markup(layers(bars, limit))
